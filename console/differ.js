/** Word differences from a worker, and how they look. */

import {body, plural} from './format.js';
import {h} from './h.js';
import {longText} from './json_tree.js';

const WORKER = new URL('./diff_worker.js', import.meta.url).href;
const policy = globalThis.trustedTypes?.createPolicy('backscroll', {
  createScriptURL(url) {
    if (url === WORKER) return url;
    throw new TypeError('Only the console\'s own worker is trusted.');
  },
});

let worker = null;
let asked = 0;
const waiting = new Map();

/**
 * The difference of two texts, made beside the page.
 * @param {string} before @param {string} after
 * @returns {Promise<{pieces: import('./diff.js').Piece[], by: string}>}
 */
export function difference(before, after) {
  if (!worker) {
    worker = new Worker(policy ? policy.createScriptURL(WORKER) : WORKER, {type: 'module'});
    worker.addEventListener('message', ({data}) => {
      waiting.get(data.id)?.(data);
      waiting.delete(data.id);
    });
  }
  asked += 1;
  const id = asked;
  return new Promise((resolve) => {
    waiting.set(id, resolve);
    worker.postMessage({id, before, after});
  });
}

const LONG = 400;

/**
 * A difference as text with what went and what came; long equal stretches are shortened.
 * @param {{pieces: import('./diff.js').Piece[], by: string}} result @returns {HTMLElement}
 */
export function differenceView({pieces, by}) {
  const tags = {'-': 'del', '+': 'ins', '=': 'span'};
  const box = h('div', {class: 'difference body', dir: 'auto'}, pieces.map(({op, text}, index) => {
    const shown = op === '=' && text.length > LONG ? shorten(text, index > 0, index < pieces.length - 1) : text;
    return h(tags[op], null, shown.length > LONG ? longText(shown) : body(shown));
  }));
  const gone = pieces.filter((piece) => piece.op === '-').reduce((sum, piece) => sum + piece.text.length, 0);
  const came = pieces.filter((piece) => piece.op === '+').reduce((sum, piece) => sum + piece.text.length, 0);
  return h('div', null, h('p', {class: 'faint'}, `by ${by} · ${plural(gone, 'character')} gone, ${plural(came, 'character')} added`), box);
}

function shorten(text, before, after) {
  const head = before ? text.slice(0, LONG / 2) : '';
  const tail = after ? text.slice(-LONG / 2) : '';
  return `${head}\n⋯ ${plural(text.length - head.length - tail.length, 'equal character')} ⋯\n${tail}`;
}
