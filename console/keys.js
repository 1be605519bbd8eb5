/** All keys in one table: it drives the handler, the dialog that `?` opens, and the hints on buttons. */

/** @typedef {{keys: string[], where: 'everywhere' | 'lists' | 'context', does: string, action: string}} Key */

/** @type {Key[]} */
export const KEYS = [
  {keys: ['?'], where: 'everywhere', does: 'show the keys', action: 'help'},
  {keys: ['/'], where: 'everywhere', does: 'search', action: 'search'},
  {keys: ['g t'], where: 'everywhere', does: 'go to Threads', action: 'go-threads'},
  {keys: ['g c'], where: 'everywhere', does: 'go to Try it', action: 'go-chat'},
  {keys: ['g s'], where: 'everywhere', does: 'go to System', action: 'go-system'},
  {keys: ['1'], where: 'everywhere', does: 'Timeline', action: 'tab-1'},
  {keys: ['2'], where: 'everywhere', does: 'Context', action: 'tab-2'},
  {keys: ['3'], where: 'everywhere', does: 'Compactions', action: 'tab-3'},
  {keys: ['Escape'], where: 'everywhere', does: 'close the innermost thing', action: 'close'},
  {keys: ['.'], where: 'everywhere', does: 'change the theme', action: 'theme'},
  {keys: ['ArrowDown', 'j'], where: 'lists', does: 'next row', action: 'down'},
  {keys: ['ArrowUp', 'k'], where: 'lists', does: 'previous row', action: 'up'},
  {keys: ['PageDown'], where: 'lists', does: 'a page down', action: 'page-down'},
  {keys: ['PageUp'], where: 'lists', does: 'a page up', action: 'page-up'},
  {keys: ['Home'], where: 'lists', does: 'first row', action: 'first'},
  {keys: ['End'], where: 'lists', does: 'last row', action: 'last'},
  {keys: ['Enter'], where: 'lists', does: 'open the row', action: 'open'},
  {keys: ['ArrowRight'], where: 'lists', does: 'unfold, or go to the right list', action: 'right'},
  {keys: ['ArrowLeft'], where: 'lists', does: 'fold, or go to the left list', action: 'left'},
  {keys: ['n'], where: 'lists', does: 'next hit or change', action: 'next'},
  {keys: ['N'], where: 'lists', does: 'previous hit or change', action: 'previous'},
  {keys: ['e'], where: 'lists', does: 'next error', action: 'next-error'},
  {keys: ['E'], where: 'lists', does: 'previous error', action: 'previous-error'},
  {keys: ['c'], where: 'lists', does: 'copy as JSON', action: 'copy-json'},
  {keys: ['l'], where: 'lists', does: 'copy the link', action: 'copy-link'},
  {keys: ['v'], where: 'lists', does: 'next lens', action: 'next-lens'},
  {keys: ['f'], where: 'lists', does: 'follow, or stop following', action: 'follow'},
  {keys: ['['], where: 'context', does: 'previous call', action: 'previous-call'},
  {keys: [']'], where: 'context', does: 'next call', action: 'next-call'},
  {keys: ['d'], where: 'context', does: 'show the difference', action: 'difference'},
  {keys: ['y'], where: 'context', does: 'scroll the lists together, or not', action: 'together'},
];

const SHOWN = {ArrowDown: '↓', ArrowUp: '↑', ArrowRight: '→', ArrowLeft: '←', Escape: 'Esc', PageDown: 'PgDn', PageUp: 'PgUp'};
const SINGLE = 'backscroll.single_keys';
const SEQUENCE_MS = 1000;

/** A key as people read it. @param {string} key @returns {string} */
export function shown(key) {
  return SHOWN[key] ?? key;
}

/** The first key of an action, or an empty text. @param {string} action @returns {string} */
export function keyFor(action) {
  return KEYS.find((key) => key.action === action)?.keys[0] ?? '';
}

/** Whether single characters are keys at all. */
export function singleKeysOn() {
  return localStorage.getItem(SINGLE) !== 'off';
}

/** Switch single characters on or off; this browser remembers. @param {boolean} on */
export function setSingleKeys(on) {
  localStorage.setItem(SINGLE, on ? 'on' : 'off');
}

/**
 * The action of a key press, or null. `pending` is the first key of a sequence that was begun.
 * @param {{key: string, pending: string, typing: boolean, modified: boolean, singles: boolean}} press
 * @returns {{action: string | null, pending: string}}
 */
export function actionOf({key, pending, typing, modified, singles}) {
  const none = {action: null, pending: ''};
  if (modified || (typing && key !== 'Escape')) return none;
  if (key.length === 1 && !singles) return none;
  const wanted = pending ? `${pending} ${key}` : key;
  const found = KEYS.find((entry) => entry.keys.includes(wanted)) ?? KEYS.find((entry) => entry.keys.includes(key));
  if (found) return {action: found.action, pending: ''};
  return KEYS.some((entry) => entry.keys.some((k) => k.startsWith(`${key} `))) ? {action: null, pending: key} : none;
}

/** What keeps a key for itself: fields everything, controls the keys they are worked with. */
function owns(target, key) {
  if (!(target instanceof Element)) return 'none';
  if (target.closest('input, textarea, select, [contenteditable]')) return 'typing';
  const control = target.closest('a, button, summary, [role=tab], [role=treeitem], [role=separator]');
  return control && (key === 'Enter' || key.startsWith('Arrow')) ? 'control' : 'none';
}

/**
 * Listen to keys. `perform` says whether it did something.
 * @param {(action: string) => boolean} perform @param {AbortSignal} signal
 */
export function listen(perform, signal) {
  let pending = '';
  let until = 0;
  document.addEventListener('keydown', (event) => {
    const owner = owns(event.target, event.key);
    if (event.isComposing || event.defaultPrevented || owner === 'control') return;
    const result = actionOf({
      key: event.key, pending: event.timeStamp < until ? pending : '', typing: owner === 'typing',
      modified: event.ctrlKey || event.metaKey || event.altKey, singles: singleKeysOn(),
    });
    pending = result.pending;
    until = event.timeStamp + SEQUENCE_MS;
    if (result.action !== null && perform(result.action)) event.preventDefault();
  }, {signal});
}
