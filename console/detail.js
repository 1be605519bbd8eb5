/** The detail pane of the timeline: everything about one row, read when it is opened. */

import {get, rawMessage, threadPath} from './api.js';
import {bytes, contentText, count, duration, moment, name} from './format.js';
import {button, h, replace} from './h.js';
import {jsonTree, longText} from './json_tree.js';
import {address} from './route.js';
import {splitter} from './splitter.js';
import {failed, loading} from './states.js';

const MOST = 1000;

/** The pane. */
export class DetailPane extends HTMLElement {
  #abort = new AbortController();
  #title = h('h2');
  #content = h('div', {class: 'detail-content', tabindex: '0', role: 'region', 'aria-label': 'Details'});
  #value = null;

  /** @param {{close: () => void, copy: (text: string, said: string) => void}} actions */
  build({close, copy}) {
    this.copy = copy;
    this.className = 'detail';
    this.setAttribute('role', 'complementary');
    this.setAttribute('aria-label', 'Details');
    this.append(
      h('div', {class: 'detail-head'}, this.#title,
        button('Copy JSON', () => this.copyJson()), button('Copy link', () => copy(location.href, 'Link copied')),
        button('Close', close)),
      this.#content, splitter(this));
    return this;
  }

  disconnectedCallback() {
    this.#abort.abort();
  }

  /** Copy what is on show. */
  copyJson() {
    if (this.#value) this.copy(JSON.stringify(this.#value, null, 1), 'JSON copied');
  }

  /** Show a row. @param {string} thread @param {import('./fold.js').Row} row */
  async show(thread, row) {
    this.#abort.abort();
    this.#abort = new AbortController();
    const {signal} = this.#abort;
    const title = name(`${row.title} ${row.subject}`, 80);
    if (!this.#content.firstChild) replace(this.#content, loading('details'));
    this.#content.setAttribute('aria-busy', 'true');
    try {
      const {entries, partial} = await readEntries(thread, row, signal);
      this.#title.textContent = title;
      this.#value = entries.length === 1 ? entries[0] : entries;
      const parts = await PARTS[row.family]?.({thread, row, entries, signal}) ?? [];
      replace(this.#content, factsOf(row), ...parts, partial && h('p', {class: 'warning'}, partial), ...entriesOf(entries));
      this.#content.scrollTop = 0;
      this.#content.removeAttribute('aria-busy');
    } catch (error) {
      if (signal.aborted) return;
      this.#title.textContent = title;
      this.#content.removeAttribute('aria-busy');
      replace(this.#content, failed('The details', error, () => this.show(thread, row)));
    }
  }
}

customElements.define('bs-detail', DetailPane);

/** All entries of a row: those of its range that are about the same thing. */
async function readEntries(thread, row, signal) {
  if (row.entries === 1) return {entries: [await get(threadPath(thread, `/entries/${row.seq[0]}`), {signal})], partial: ''};
  const range = {after: row.seq[0] - 1, limit: Math.min(MOST, row.seq[1] - row.seq[0] + 1), fields: 'full'};
  const answer = await get(threadPath(thread, '/entries', range), {signal});
  const ends = row.family === 'run' || row.family === 'step';
  const mine = answer.entries.filter((entry) => entry.seq <= row.seq[1]
    && (ends ? entry.seq === row.seq[0] || entry.seq === row.seq[1] : entry.ref === row.ref && sameFamily(entry, row)));
  if (ends && !mine.some((entry) => entry.seq === row.seq[1])) {
    mine.push(await get(threadPath(thread, `/entries/${row.seq[1]}`), {signal}));
  }
  const partial = mine.length < row.entries ? `${count(mine.length)} of ${count(row.entries)} entries are shown.` : '';
  return {entries: mine, partial};
}

function sameFamily(entry, row) {
  return row.family === entry.kind || entry.kind === 'event';
}

function fact(label, ...value) {
  return [h('dt', null, label), h('dd', null, ...value)];
}

function factsOf(row) {
  const range = row.seq[0] === row.seq[1] ? count(row.seq[0]) : `${count(row.seq[0])}–${count(row.seq[1])}, ${count(row.entries)} entries`;
  return h('dl', {class: 'facts'},
    fact('seq', range), fact('status', row.status), row.flags.length > 0 && fact('flags', row.flags.join(', ')),
    row.ref !== undefined && fact('about', h('code', null, name(row.ref))),
    row.run !== undefined && fact('run', h('code', null, name(row.run))),
    fact('begun', moment(row.started)),
    row.ended !== undefined && row.ended !== row.started && fact('took', duration(row.ended - row.started)),
    fact('size', bytes(row.bytes ?? 0)), row.worker !== undefined && fact('worker', name(row.worker)));
}

function entriesOf(entries) {
  return entries.map((entry) => h('section', {class: 'entry'},
    h('h3', null, `${count(entry.seq)} · ${entry.kind} · ${name(entry.type, 60)}`, h('span', {class: 'faint'}, ` · ${entry.audience} · ${bytes(entry.bytes ?? 0)}`)),
    entry.body === undefined ? h('p', {class: 'faint'}, 'No body.') : jsonTree(entry.body, `Body of entry ${entry.seq}`),
    entry.cut && h('p', {class: 'warning'}, 'Long texts were cut by the server.')));
}

const deltas = (entries) => entries.map((entry) => entry.body?.delta ?? '').join('');

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function textOrTree(title, text) {
  const value = text.length < 1_000_000 ? parsed(text) : undefined;
  const shown = value !== null && typeof value === 'object' ? jsonTree(value, title) : h('div', {class: 'body'}, longText(text));
  return h('section', null, h('h3', null, title, h('span', {class: 'faint'}, ` · ${count(text.length)} characters`)), shown);
}

/** What a family shows besides its entries. */
const PARTS = {
  async text({thread, row, entries, signal}) {
    if (!row.flags.includes('deltas removed')) return [textOrTree('Text', deltas(entries))];
    const message = await get(threadPath(thread, `/messages/${encodeURIComponent(row.ref)}`), {signal});
    return [textOrTree('Text, from the history', contentText(message.content))];
  },
  reasoning: ({entries}) => [textOrTree('Reasoning', deltas(entries))],
  tool({thread, entries}) {
    const result = entries.find((entry) => entry.type === 'TOOL_CALL_RESULT');
    const id = result?.body?.messageId;
    return [h('div', {class: 'beside'}, textOrTree('Arguments', deltas(entries)),
      result ? textOrTree('Result', String(result.body?.content ?? '')) : h('p', {class: 'faint'}, 'No result yet.')),
    id && h('p', null, h('a', {href: rawMessage(thread, id)}, 'Raw result'), h('span', {class: 'faint'}, ', whole as it is stored'))];
  },
  call: ({thread, row}) => [h('p', null, h('a', {href: address('context', {thread}, {call: row.ref})}, 'Open in Context'))],
  compaction: ({thread, row}) => [h('p', null, h('a', {href: address('compactions', {thread, n: row.ref})}, 'Open in Compactions'))],
};
