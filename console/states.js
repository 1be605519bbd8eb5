/** What a pane shows when it has nothing to show: always in words, with a button where one helps. */

import {button, h} from './h.js';
import {name} from './format.js';

/** Loading, said only when it takes a while. @param {string} what @returns {HTMLElement} */
export function loading(what) {
  return h('div', {class: 'state state-loading', 'aria-busy': 'true'},
    h('p', {class: 'after-a-while'}, `Loading ${what} …`));
}

/** Nothing there: why, and what to do. @param {string} title @param {...any} children */
export function empty(title, ...children) {
  return h('div', {class: 'state'}, h('h2', null, title), ...children);
}

/** Nothing passes the filters. @param {string} filters @param {() => void} clear */
export function noMatch(filters, clear) {
  return h('div', {class: 'state'}, h('h2', null, 'No match'), h('p', null, `Left out by: ${filters}.`),
    button('Clear filters', clear));
}

/**
 * Something failed: what, with status, code and request id.
 * @param {string} what @param {import('./api.js').ApiError} error @param {() => void} retry
 */
export function failed(what, error, retry) {
  return h('div', {class: 'state state-error', role: 'alert'}, h('h2', null, `${what} could not be loaded`),
    h('p', null, name(error.message, 500)), facts(error), button('Retry', retry));
}

/** The same in one line, above rows that stay. */
export function stale(what, error, retry) {
  return h('div', {class: 'stale-line', role: 'alert'},
    h('span', null, `Stale: ${what} could not be refreshed. ${name(error.message, 300)} `), facts(error), button('Retry', retry));
}

function facts(error) {
  const parts = [error.status ? `HTTP ${error.status}` : 'no answer', error.code];
  if (error.requestId) parts.push(`request ${error.requestId}`);
  return h('p', {class: 'mono faint'}, parts.map((part) => name(part)).join(' · '));
}
