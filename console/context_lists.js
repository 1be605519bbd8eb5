/** Full history beside sent: two lists, the ribbons between them, and how they scroll together. */

import './context_row.js';
import {count, duration, plural} from './format.js';
import {button, h, say} from './h.js';
import './list.js';
import './ribbons.js';
import {inPart, pairUp, rising} from './spans.js';
import {mapPlace, maxScroll} from './window.js';

/** The element. `onPick(left, right, how)` gets the rows of a pair; either may be null. */
export class ContextLists extends HTMLElement {
  /** Whether the lists scroll together. */
  together = true;
  #model = null;
  #onPick;
  #pairing = {left: [], right: [], pairs: [], counts: {}};
  #indexes = {left: new Map(), right: new Map()};
  #maps = {left: [], right: []};
  #unfolded = new Set();
  #showing = {fates: new Set(), part: null, hits: []};
  #summary = '';
  #driver = 'left';
  #lists = {left: h('bs-list', {class: 'context-list'}), right: h('bs-list', {class: 'context-list'})};
  #facts = {left: h('span', {class: 'faint'}), right: h('span', {class: 'faint'})};
  #heads = {
    left: h('div', {class: 'column-head'}, h('h2', null, 'Full history'), this.#facts.left),
    right: h('div', {class: 'column-head'}, h('h2', null, 'Sent to the model'), this.#facts.right),
  };
  #panes = {left: button('History', () => this.#front('left')), right: button('Sent', () => this.#front('right'))};
  #ribbons = h('bs-ribbons');

  /** @param {(left: any, right: any, how: 'move' | 'open') => void} onPick @param {HTMLElement} search the search field */
  build(onPick, search) {
    this.#onPick = onPick;
    this.#heads.left.append(search);
    this.append(
      h('div', {class: 'context-heads'}, this.#heads.left, h('div', {class: 'gutter'}), this.#heads.right,
        h('div', {class: 'panes', role: 'group', 'aria-label': 'List on show'}, Object.values(this.#panes))),
      h('div', {class: 'context-body'}, this.#lists.left, this.#ribbons, this.#lists.right));
    for (const side of ['left', 'right']) this.#buildList(side);
    this.#front('left');
    return this;
  }

  /** The list that leads when both scroll, and where there is room for one only, the one on show. */
  #front(side) {
    this.#driver = side;
    this.dataset.pane = side;
    for (const [of, pane] of Object.entries(this.#panes)) pane.setAttribute('aria-pressed', String(of === side));
  }

  #buildList(side) {
    const lists = this;
    const list = this.#lists[side];
    list.configure({
      role: 'feed', label: side === 'left' ? 'Full history' : 'Sent to the model',
      createRow: () => h(side === 'left' ? 'bs-history-row' : 'bs-sent-row'),
      source: {
        get count() { return lists.#pairing[side].length; },
        key: (index) => this.#pairing[side][index].key,
        at: (index) => this.#item(side, this.#pairing[side][index]),
        indexOf: (key) => this.#indexes[side].get(key) ?? -1,
      },
      onPick: (key, how) => this.#picked(side, key, how),
      onWindow: (first, end) => this.#want(side, first, end),
      onScroll: () => this.#scrolled(side),
    });
    for (const type of ['wheel', 'pointerdown', 'touchstart', 'focusin', 'keydown']) {
      list.addEventListener(type, () => this.#front(side), {passive: true});
    }
  }

  /** The rows and pairs on show. */
  get pairing() { return this.#pairing; }

  /** The list that the keyboard was on last. */
  get current() { return this.#lists[this.#driver]; }

  /**
   * Show an attempt. @param {import('./context_model.js').ContextModel} model
   * @param {{fates?: Set<string>, part?: string | null, hits?: number[]}} [showing] only rows of these
   *   fates and this part of the budget; positions that a search found
   */
  show(model, {fates = new Set(), part = null, hits = []} = {}) {
    this.#model = model;
    Object.assign(this.#showing, {fates, part, hits});
    if (part !== null) this.#readRoles();
    this.#pair();
    const {history, sent} = model.attempt;
    say(this.#facts.left, `${plural(history.messages, 'message')} · ${count(history.tokens)} tok · store`);
    say(this.#facts.right, `${plural(sent.messages, 'message')} · ${count(sent.tokens)} tok · call ${count(model.call.call)}`);
    this.#readSummary();
  }

  /** Heads or bodies came. */
  refresh() {
    if (this.#showing.part !== null) this.#pairRows();
    for (const list of Object.values(this.#lists)) list.refresh();
  }

  /** Select a row and its counterpart. @param {string | null} left @param {string | null} right @param {boolean} [reveal] */
  select(left, right, reveal = false) {
    this.#lists.left.select(left);
    this.#lists.right.select(right);
    if (!reveal) return;
    const main = left !== null ? 'left' : 'right';
    requestAnimationFrame(() => {
      this.#front(main);
      if (left !== null) this.#lists.left.reveal(left);
      if (right !== null && (!this.together || left === null)) this.#lists.right.reveal(right);
    });
  }

  /** The row of a position, unfolding what holds it. @param {number} position */
  rowOf(position) {
    const fold = this.#pairing.left.find((row) => row.kind !== 'message' && !row.open && row.position <= position && row.to >= position
      && (row.kind === 'range' || !this.#indexes.left.has(`h${position}`)));
    if (fold) this.#toggle(fold.key);
    return this.#pairing.left[this.#indexes.left.get(`h${position}`)] ?? null;
  }

  /** A row and what belongs to it. @param {'left' | 'right'} side @param {string} key */
  pairOf(side, key) {
    const index = this.#indexes[side].get(key);
    if (index === undefined) return [null, null];
    const own = side === 'left' ? 0 : 1;
    const pair = this.#pairing.pairs.find((one) => one[own] === index);
    const [left, right] = pair ?? (side === 'left' ? [index, undefined] : [undefined, index]);
    return [this.#pairing.left[left] ?? null, this.#pairing.right[right] ?? null];
  }

  /** @param {string} action */
  act(action) {
    const list = this.current;
    if (action === 'right' || action === 'left') return this.#sideways(action);
    if (action === 'next' || action === 'previous') return this.#change(action === 'next' ? 1 : -1);
    return list.act(action);
  }

  #pair() {
    this.#pairRows();
    this.refresh();
  }

  #pairRows() {
    const {fates, part} = this.#showing;
    const keep = (row) => part === null || inPart(part, row, this.#role(row));
    this.#pairing = pairUp(this.#model.attempt.spans, {unfolded: this.#unfolded, fates, keep});
    const {left, right, pairs} = this.#pairing;
    this.#indexes = {left: index(left), right: index(right)};
    const middles = rising(pairs).map(([a, b]) => [a + 0.5, b + 0.5]);
    const points = [...middles, [left.length, right.length]];
    this.#maps = {left: points, right: points.map(([a, b]) => [b, a])};
  }

  /** To show one part only, the roles of all messages that were sent must be known. */
  #readRoles() {
    const positions = this.#model.attempt.spans.filter((span) => span.history && span.sent && span.fate !== 'summarised').flatMap((span) => span.history);
    if (positions.length) this.#model.wantHeads(Math.min(...positions), Math.max(...positions));
  }

  #role(row) {
    return this.#model.head(row.position)?.role ?? row.span?.role ?? this.#model.sent(row.sent)?.role;
  }

  #item(side, row) {
    const {hits} = this.#showing;
    const found = hits.filter((position) => position >= row.position && position <= (row.to ?? row.position)).length;
    if (side === 'left') return {row, hits: found, head: row.kind === 'message' ? this.#model.head(row.position) : undefined};
    return {
      row, hits: found, head: row.position === undefined ? undefined : this.#model.head(row.position),
      message: this.#model.sent(row.sent), summary: this.#summary,
    };
  }

  #want(side, first, end) {
    const rows = this.#pairing[side].slice(first, end);
    if (!this.#model || !rows.length) return;
    const positions = rows.map((row) => row.position).filter((position) => position !== undefined);
    if (positions.length) this.#model.wantHeads(Math.min(...positions), Math.max(...positions));
    if (side === 'right') this.#model.wantSent(rows.filter((row) => row.fate !== 'kept').map((row) => row.sent));
  }

  async #readSummary() {
    const row = this.#pairing.right.find((one) => one.range);
    this.#summary = row?.span.reason ?? '';
    if (!row) return;
    const model = this.#model;
    const call = model.call.call;
    try {
      const decision = await model.readDecision(row);
      if (decision && call === model.call.call) this.#summary = summaryWords(decision, call);
      this.refresh();
    } catch {
      // The reason of the span stays: the decision itself is shown, with its error, on its own page.
    }
  }

  #picked(side, key, how) {
    const [left, right] = this.pairOf(side, key);
    const fold = side === 'left' && left?.kind !== 'message' ? left : null;
    if (fold && how === 'open') this.#toggle(fold.key);
    this.#onPick(left, right, how);
  }

  #toggle(key) {
    if (!this.#unfolded.delete(key)) this.#unfolded.add(key);
    this.#pair();
  }

  #sideways(action) {
    const row = this.#pairing[this.#driver][this.#indexes[this.#driver].get(this.current.active)];
    const fold = this.#driver === 'left' && row && row.kind !== 'message';
    if (fold && row.open === (action === 'left')) {
      this.#toggle(row.key);
      return true;
    }
    const other = action === 'right' ? 'right' : 'left';
    if (other === this.#driver) return false;
    const pair = row && this.pairOf(this.#driver, row.key)[other === 'left' ? 0 : 1];
    this.#front(other);
    if (pair) this.#lists[other].moveTo(this.#indexes[other].get(pair.key));
    else this.#lists[other].enter();
    return true;
  }

  /** To the next hit of the search, or where there is none, to the next row that is not just kept. */
  #change(by) {
    if (this.#showing.hits.length) return this.#hit(by);
    const rows = this.#pairing[this.#driver];
    const from = this.#indexes[this.#driver].get(this.current.active) ?? (by > 0 ? -1 : rows.length);
    for (let at = from + by; at >= 0 && at < rows.length; at += by) {
      if (rows[at].fate === 'kept') continue;
      this.current.moveTo(at);
      return true;
    }
    return false;
  }

  #hit(by) {
    const rows = this.#pairing.left;
    const at = rows[this.#indexes.left.get(this.#lists.left.active)]?.position ?? (by > 0 ? 0 : Infinity);
    const {hits} = this.#showing;
    const next = by > 0 ? hits.find((position) => position > at) : hits.findLast((position) => position < at);
    const row = next === undefined ? null : this.rowOf(next);
    if (!row) return false;
    this.#front('left');
    this.#lists.left.moveTo(this.#indexes.left.get(row.key));
    return true;
  }

  /** The other list follows the one that the reader moves, by mapped row; both ends meet. */
  #scrolled(side) {
    if (this.together && side === this.#driver && this.#pairing.pairs.length) {
      const other = side === 'left' ? 'right' : 'left';
      const [own, far] = [this.#lists[side].geometry, this.#lists[other].geometry];
      const most = maxScroll(own);
      const part = most ? own.scrollTop / most : 0;
      const place = mapPlace((own.scrollTop + part * own.viewport) / own.rowHeight, this.#maps[side]);
      this.#lists[other].scrollQuietly(place * far.rowHeight - part * far.viewport);
    }
    this.#ribbons.draw(this.#pairing, this.#lists.left, this.#lists.right);
  }
}

function index(rows) {
  return new Map(rows.map((row, at) => [row.key, at]));
}

/** The source of a summary, in the words of the decision that made it. */
function summaryWords(decision, call) {
  const {summary, covers} = decision;
  const {usage} = summary;
  const words = [decision.call === call ? summary.source : 'cache', covers && plural(covers[1] - covers[0] + 1, 'message'),
    summary.sha256?.slice(0, 8), summary.model ?? summary.kind,
    usage?.input_tokens !== undefined && `${count(usage.input_tokens)} → ${count(usage.output_tokens ?? 0)} tok`,
    summary.ms !== undefined && duration(summary.ms), `made by call ${count(decision.call)}`];
  return words.filter(Boolean).join(' · ');
}

customElements.define('bs-lists', ContextLists);
