/** The dialog that `?` opens: all keys, and what this browser remembers. */

import {button, h} from './h.js';
import {KEYS, setSingleKeys, shown, singleKeysOn} from './keys.js';

const GROUPS = {everywhere: 'Everywhere', lists: 'In lists', context: 'In Context'};

/** Theme: the system's, light or dark. @returns {'system' | 'light' | 'dark'} */
export function theme() {
  return document.documentElement.dataset.theme ?? 'system';
}

/** Choose a theme; this browser remembers. @param {string} choice */
export function setTheme(choice) {
  if (choice === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = choice;
  localStorage.setItem('backscroll.theme', choice);
}

function setDense(on) {
  if (on) document.documentElement.dataset.density = 'dense';
  else delete document.documentElement.dataset.density;
  localStorage.setItem('backscroll.density', on ? 'dense' : '');
}

function keyTable(where) {
  return h('table', {class: 'keys'}, h('caption', null, GROUPS[where]), h('tbody', null,
    KEYS.filter((key) => key.where === where).map((key) => h('tr', null,
      h('td', null, key.keys.flatMap((k, index) => [index ? ' or ' : '', ...k.split(' ').flatMap((one) => [h('kbd', null, shown(one)), ' '])])),
      h('td', null, key.does)))));
}

function choice(label, checked, change) {
  return h('label', {class: 'choice'}, h('input', {type: 'checkbox', checked, on: {change: (event) => change(event.target.checked)}}), label);
}

/** Open the dialog; the focus goes back to where it was when it closes. */
export function showHelp() {
  if (document.querySelector('dialog[open]')) return;
  const opener = document.activeElement;
  const dialog = h('dialog', {class: 'help', 'aria-labelledby': 'help-title'},
    h('div', {class: 'dialog-head'}, h('h2', {id: 'help-title'}, 'Keys'), button('Close', () => dialog.close())),
    h('div', {class: 'key-tables'}, Object.keys(GROUPS).map(keyTable)),
    h('fieldset', null, h('legend', null, 'Remembered by this browser'),
      choice('Single characters are keys', singleKeysOn(), setSingleKeys),
      choice('Dense rows', document.documentElement.dataset.density === 'dense', setDense),
      h('label', {class: 'choice'}, 'Theme ', h('select', {on: {change: (event) => setTheme(event.target.value)}},
        ['system', 'light', 'dark'].map((value) => h('option', {value, selected: value === theme()}, value))))));
  dialog.addEventListener('close', () => {
    dialog.remove();
    opener?.focus?.();
  });
  document.body.append(dialog);
  dialog.showModal();
}
