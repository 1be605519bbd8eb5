/** Threads: which conversation matters? */

import {get, withQuery} from '../api.js';
import {count, plural} from '../format.js';
import {button, h, replace} from '../h.js';
import '../list.js';
import {address} from '../route.js';
import {empty, failed, loading, noMatch, stale} from '../states.js';
import {COLUMNS} from '../thread_row.js';

const LIMIT = 200;
const FILTERS = ['q', 'status', 'has', 'owner', 'agent', 'from', 'to'];
const CHOICES = {status: ['running', 'waiting', 'error', 'ok'], has: ['compactions', 'failures', 'questions']};
const AGO_MS = 15_000;
const NEWEST = '-activity';
const EXAMPLE = JSON.stringify({
  threadId: 'my-thread', runId: 'run-1', messages: [{id: 'u1', role: 'user', content: 'Hello'}], tools: [], context: [],
}, null, 1);

/** The page element. */
class ThreadsPage extends HTMLElement {
  #app;
  #reading = new AbortController();
  #heads = [];
  #at = new Map();               // thread -> index
  #waiting = new Map();          // thread -> head that changed while nothing may move
  #next = null;
  #busy = false;
  #clock = 0;
  #read = false;                 // whether anything was read yet
  #list = h('bs-list', {class: 'threads'});
  #filters = h('form', {class: 'filters', role: 'search', 'aria-label': 'Filter threads'});
  #notice = h('div', {class: 'notice'});
  #place = h('div', {class: 'fill'});
  #stopHeads = () => {};

  /** @param {import('../main.js').App} app @param {import('../route.js').Route} route */
  start(app, route) {
    this.#app = app;
    this.append(h('h1', {class: 'unseen'}, 'Threads'), this.#filters, this.#notice, this.#place);
    this.#buildFilters(route.params);
    const page = this;
    this.#list.configure({
      label: 'Threads', header: this.#header(), createRow: () => h('bs-thread-row'), staysAtTop: true,
      source: {
        get count() { return page.#heads.length; },
        key: (index) => this.#heads[index].thread,
        at: (index) => this.#heads[index],
        indexOf: (key) => this.#at.get(key) ?? -1,
      },
      onPick: (key, how) => how === 'open' && app.go(address('thread', {thread: key})),
      onWindow: (_, end) => this.#next && end > this.#heads.length - 40 && this.#load(this.#next),
    });
    this.#clock = setInterval(() => this.#list.refresh(), AGO_MS);
    this.#stopHeads = app.feed.heads((heads, gone, begun) => (begun ? this.#catchUp() : this.#live(heads, gone)));
    app.frame.status.keys([['↑↓', 'row'], ['Enter', 'open'], ['/', 'search'], ['?', 'keys']]);
    this.change(route);
  }

  disconnectedCallback() {
    this.#reading.abort();
    clearInterval(this.#clock);
    this.#stopHeads();
  }

  /** @param {import('../route.js').Route} route */
  change(route) {
    for (const field of this.#filters.elements) {
      const value = route.params.get(field.name) ?? '';
      if (field.name && document.activeElement !== field) field.value = value;
    }
    this.#showSort();
    this.#load(null);
  }

  /** Where the reader is, for coming back. */
  get place() { return this.#list.isConnected ? this.#list.place : null; }

  /** @param {string} action */
  act(action) {
    return this.#list.isConnected && this.#list.act(action);
  }

  get #sort() { return this.#app.route.params.get('sort') ?? NEWEST; }

  #given() {
    return FILTERS.filter((filter) => this.#app.route.params.get(filter));
  }

  #buildFilters() {
    const select = (of, label) => h('label', null, h('span', {class: 'unseen'}, label),
      h('select', {name: of, on: {change: (event) => this.#app.params({[of]: event.target.value})}},
        h('option', {value: ''}, label), CHOICES[of].map((value) => h('option', {value}, of === 'has' ? `has ${value}` : value))));
    replace(this.#filters,
      h('label', {class: 'grow'}, h('span', {class: 'unseen'}, 'Search'), h('input', {
        type: 'search', name: 'q', placeholder: 'Search id, title, text', autocomplete: 'off',
        on: {input: (event) => this.#app.params({q: event.target.value})},
      })),
      select('status', 'any status'), select('has', 'with or without'));
    this.#filters.addEventListener('submit', (event) => event.preventDefault());
  }

  #header() {
    return h('div', {role: 'row', class: 'list-head threads-head', 'aria-rowindex': '1'}, COLUMNS.map(([column, label]) =>
      h('span', {role: 'columnheader', class: `cell ${column}`, data: {column}},
        button(label, () => this.#sortBy(column), {tabindex: '-1'}))));
  }

  #sortBy(column) {
    const [now, down] = [this.#sort.replace('-', ''), this.#sort.startsWith('-')];
    const next = now === column ? (down ? column : `-${column}`) : `-${column}`;
    this.#app.params({sort: next === NEWEST ? null : next});
  }

  #showSort() {
    for (const head of this.#list.querySelectorAll('[role=columnheader]')) {
      const mine = this.#sort.replace('-', '') === head.dataset.column;
      if (mine) head.setAttribute('aria-sort', this.#sort.startsWith('-') ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
    }
  }

  /** What changed before the feed began, or while it was away, is told by nobody: read the list again. */
  #catchUp() {
    const isAtRest = this.#read && !this.#busy;
    this.#load(null, isAtRest ? (answer) => this.#compare(answer) : undefined);
  }

  #compare({threads, next}) {
    const listed = new Set(threads.map((head) => head.thread));
    const gone = next ? [] : this.#heads.filter((head) => !listed.has(head.thread)).map((head) => head.thread);
    const changed = threads.filter((head) => differs(head, this.#heads[this.#at.get(head.thread)]));
    if (changed.length || gone.length) this.#live(changed, gone);
  }

  async #load(cursor, take = (answer) => this.#take(answer, cursor)) {
    if (cursor && this.#busy) return;
    this.#reading.abort();
    this.#reading = new AbortController();
    const {signal} = this.#reading;
    this.#busy = true;
    if (!this.#read) replace(this.#place, loading('threads'));
    const filters = Object.fromEntries(FILTERS.map((key) => [key, this.#app.route.params.get(key)]));
    try {
      const answer = await get(withQuery('/threads', {...filters, sort: this.#sort, limit: LIMIT, cursor}), {signal});
      take(answer);
    } catch (error) {
      if (!signal.aborted) this.#failed(error, cursor);
    } finally {
      if (!signal.aborted) this.#busy = false;
    }
  }

  #take({threads, next}, cursor) {
    this.#read = true;
    this.#next = next ?? null;
    this.#heads = cursor ? [...this.#heads, ...threads.filter((head) => !this.#at.has(head.thread))] : threads;
    if (!cursor) this.#waiting.clear();
    this.#arrange();
    if (!cursor) this.#list.place = history.state?.place;
    replace(this.#notice);
  }

  #arrange() {
    this.#at = new Map(this.#heads.map((head, index) => [head.thread, index]));
    const given = this.#given();
    if (this.#heads.length) {
      if (this.#place.firstChild !== this.#list) replace(this.#place, this.#list);
      this.#list.refresh();
    } else if (given.length) {
      replace(this.#place, noMatch(given.join(', '), () => this.#app.params(Object.fromEntries(FILTERS.map((key) => [key, null])))));
    } else {
      replace(this.#place, this.#nothing());
    }
    const running = this.#heads.filter((head) => head.status === 'running').length;
    this.#app.frame.status.counts(`${plural(this.#heads.length, 'thread')}${this.#next ? ' read so far' : ''}`, `${count(running)} running`);
  }

  #nothing() {
    const url = `${location.origin.replace(/^http/, 'ws')}/agui`;
    return empty('No conversation yet',
      h('p', null, 'Connect a frontend to ', h('code', null, url), ', or ', h('a', {href: address('chat')}, 'try it'), ' here.'),
      h('pre', {tabindex: '0'}, EXAMPLE), button('Copy the example', () => this.#app.copy(EXAMPLE, 'Example copied')));
  }

  #failed(error, cursor) {
    const again = () => this.#load(cursor);
    if (this.#heads.length) replace(this.#notice, stale('the list', error, again));
    else replace(this.#place, failed('The threads', error, again));
  }

  /** Rows move by themselves only where that is asked for: newest first, and the reader at the top. */
  #live(heads, gone) {
    if (!this.#read) return;
    for (const head of heads) this.#waiting.set(head.thread, head);
    for (const thread of gone) this.#waiting.set(thread, null);
    if (this.#sort === NEWEST && !this.#given().length && this.#list.scrollTop < 1) this.#apply();
    else this.#updateInPlace();
  }

  #apply() {
    const changed = this.#waiting;
    this.#waiting = new Map();
    const kept = this.#heads.filter((head) => !changed.has(head.thread));
    const fresh = [...changed.values()].filter(Boolean);
    this.#heads = [...kept, ...fresh].sort((a, b) => (b.activity ?? 0) - (a.activity ?? 0));
    replace(this.#notice);
    this.#arrange();
  }

  #updateInPlace() {
    for (const [thread, head] of this.#waiting) {
      const index = this.#at.get(thread);
      if (index !== undefined && head) this.#heads[index] = head;
    }
    this.#list.refresh();
    replace(this.#notice, h('div', {class: 'changed-line'},
      button(`${count(this.#waiting.size)} changed`, () => this.#load(null))));
  }
}

/** Whether a head says something else than the one that is known. */
function differs(head, known) {
  return JSON.stringify(head) !== JSON.stringify(known);
}

customElements.define('bs-threads-page', ThreadsPage);

/** The page, not started yet. */
export const create = () => h('bs-threads-page');
