/** What an operator may do about the compaction of a thread: the buttons on its store card. */

import {send, threadPath} from './api.js';
import {ask} from './ask.js';
import {count, plural} from './format.js';
import {button} from './h.js';

/**
 * The buttons that make sense for a card.
 * @param {string} thread @param {any} card @param {(said: string) => void} done
 * @returns {HTMLElement[]}
 */
export function compactionButtons(thread, card, done) {
  const path = (rest) => threadPath(thread, `/compact${rest}`);
  const then = (said) => (ok) => ok && done(said);
  const compact = () => ask({
    title: 'Compact now?',
    says: ['The summariser is asked once for a summary of what no summary stands for yet; the next calls are sent it in place of those messages.',
      'The stored history is not touched. If nothing is new, nobody is asked. A success resets the failures.'],
    label: 'Compact', field: 'Focus (optional)',
    act: (focus) => send('POST', path(''), focus ? {focus} : {}),
  }).then(then('Compaction asked for'));
  const reset = () => ask({
    title: 'Reset the breaker?', says: [`${plural(card.failures, 'failure')} will be forgotten, and the summariser is asked again when the trigger is passed.`],
    label: 'Reset', act: () => send('DELETE', path('/failures')),
  }).then(then('Breaker reset'));
  const target = card.ring?.find((old) => old.matches);
  const to = target?.sha256 ?? (card.cache ? 'history' : null);
  const undo = () => ask({
    title: 'Undo the summary?',
    says: [target ? `The summary of the first ${count(target.prefix_n)} messages will be used instead, until the trigger is passed again.`
      : 'The whole history will be sent instead, until the trigger is passed again.', 'What is in use now is kept and can be gone back to.'],
    label: 'Undo', act: () => send('POST', path('/undo'), {to}),
  }).then(then('Went back'));
  return [button('Compact now', compact), card.failures > 0 && button('Reset breaker', reset), to && button('Undo', undo)].filter(Boolean);
}

/**
 * The button that pins or unpins a message, and the group it belongs to.
 * @param {string} thread @param {string} id @param {Set<string>} pins @param {(said: string) => void} done
 */
export function pinButton(thread, id, pins, done) {
  const pinned = pins.has(id);
  const path = threadPath(thread, `/pins/${encodeURIComponent(id)}`);
  return button(pinned ? 'Unpin' : 'Pin', () => ask({
    title: pinned ? 'Unpin this message?' : 'Pin this message?',
    says: [pinned ? 'From the next call on it may be shortened, summarised or dropped again.'
      : 'From the next call on it is sent whole, with the call and results it belongs to.'],
    label: pinned ? 'Unpin' : 'Pin', act: () => send(pinned ? 'DELETE' : 'PUT', path),
  }).then((ok) => ok && done(pinned ? 'Unpinned' : 'Pinned')), {'aria-pressed': pinned});
}
