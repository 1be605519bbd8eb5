/** Context: what did the model see, and why? Anchored on one model call. */

import '../budget_strip.js';
import '../compare.js';
import '../context_lists.js';
import {ContextModel} from '../context_model.js';
import {FATES} from '../fates.js';
import {count, duration, name, plural} from '../format.js';
import {button, h, replace} from '../h.js';
import '../request_view.js';
import {address} from '../route.js';
import {countFates} from '../spans.js';
import {empty, failed, loading, stale} from '../states.js';

const LEGEND = ['summarised', 'placeholder', 'truncated', 'dropped', 'rewritten', 'kept', 'injected'];
const LENSES = ['compare', 'history', 'sent', 'wire'];

/** The page element. */
class ContextPage extends HTMLElement {
  #app;
  #model;
  #showing = '';                 // call and attempt on show
  #loads = 0;                    // only the newest one counts
  #stopFeed = null;
  #strip = h('bs-budget');
  #banner = h('div', {class: 'notice'});
  #place = h('div', {class: 'fill'});
  #lists = h('bs-lists');
  #request = h('bs-request');
  #detail = h('bs-compare', {hidden: true});
  #search = h('input', {type: 'search', placeholder: 'Search the messages', autocomplete: 'off', on: {change: (event) => this.#app.params({q: event.target.value})}});
  #hits = {text: '', positions: []};

  /** @param {import('../main.js').App} app @param {import('../route.js').Route} route */
  start(app, route) {
    this.#app = app;
    this.append(h('h1', {class: 'unseen'}, 'Context'), this.#strip, this.#banner,
      h('div', {class: 'split'}, this.#place, this.#detail));
    this.#lists.build((left, right, how) => this.#picked(left, right, how), h('label', {class: 'search'}, h('span', {class: 'unseen'}, 'Search'), this.#search));
    this.#detail.build({close: () => app.params({m: null}), copy: (text, said) => app.copy(text, said), say: (said) => app.frame.status.announce(said)});
    this.#model = new ContextModel(route.thread, () => this.#lists.refresh(), (error) => this.#stale(error));
    app.frame.onReload = () => this.#load();
    app.frame.status.keys([['↑↓', 'row'], ['←→', 'side'], ['Enter', 'detail'], ['d', 'difference'], ['n', 'next change'], ['[ ]', 'call'], ['?', 'keys']]);
    replace(this.#place, loading('the call'));
    this.#load();
  }

  disconnectedCallback() {
    this.#model?.stop();
    this.#stopFeed?.();
  }

  /** Hear what the log says after what was read. @param {number | null} after */
  #follow(after) {
    this.#stopFeed ??= this.#app.feed.thread(this.#model.thread, after, {
      entries: (entries) => this.#live(entries), resync: () => this.#load(), reconnected: () => this.#load(),
    });
  }

  /** @param {import('../route.js').Route} route */
  change(route) {
    if (this.#wanted(route) !== this.#showing) this.#load();
    else this.#render();
  }

  /** @param {string} action */
  act(action) {
    const call = this.#model?.call?.call;
    if (action === 'previous-call' || action === 'next-call') this.#goto((call ?? 0) + (action === 'next-call' ? 1 : -1));
    else if (action === 'difference') this.#detail.showDifference();
    else if (action === 'together') this.#setTogether(!this.#lists.together);
    else if (action === 'copy-json') this.#detail.copyJson();
    else if (action === 'next-lens') this.#app.params({lens: LENSES[(LENSES.indexOf(this.#lens) + 1) % LENSES.length]});
    else if (action === 'close' && !this.#detail.hidden) this.#app.params({m: null});
    else return this.#lists.isConnected && this.#lists.act(action);
    return true;
  }

  get #fates() {
    return new Set((this.#app.route.params.get('fate') ?? '').split(',').filter(Boolean));
  }

  get #part() {
    return this.#app.route.params.get('part');
  }

  get #lens() {
    const lens = this.#app.route.params.get('lens');
    return LENSES.includes(lens) ? lens : 'compare';
  }

  #wanted({params}) {
    return `${params.get('call') ?? 'latest'} ${params.get('attempt') ?? ''}`;
  }

  async #load() {
    const wanted = this.#wanted(this.#app.route);
    const {params} = this.#app.route;
    this.#showing = wanted;
    this.#loads += 1;
    const mine = this.#loads;
    const isWanted = () => mine === this.#loads && this.isConnected;
    try {
      if (!this.#model.calls.length || !params.get('call') || params.get('call') === 'latest') await this.#model.readCalls();
      if (!isWanted()) return;
      this.#follow(this.#model.readTo);
      const number = Number(params.get('call')) || this.#model.calls.at(-1)?.call;
      if (number === undefined) {
        this.#nothing();
        return;
      }
      await this.#model.readCall(number, Number(params.get('attempt')) || null, isWanted);
    } catch (error) {
      if (error.name === 'AbortError' || !isWanted()) return;
      this.#follow(null);
      this.#failed(error);
      return;
    }
    if (!isWanted()) return;
    replace(this.#banner);
    this.#render();
  }

  #failed(error) {
    const has = this.#model.attempt !== null && error.status !== 404;
    if (has) this.#stale(error);
    else replace(this.#place, failed('The call', error, () => this.#load()));
  }

  #stale(error) {
    replace(this.#banner, stale('this call', error, () => this.#load()));
  }

  #nothing() {
    this.#strip.hidden = true;
    replace(this.#app.frame.tools);
    replace(this.#place, empty('No model call yet', h('p', null, 'Context shows what a call was sent. This thread has made none so far; the first one appears here by itself.')));
  }

  #render() {
    const {call, attempt} = this.#model;
    if (!call) return;
    this.#tools(call, attempt);
    this.#strip.hidden = !attempt;
    if (!attempt) {
      replace(this.#place, empty('Nothing is recorded of this call', h('p', null, `Call ${count(call.call)} ended as ${name(call.status)} before it was sent.`)));
      return;
    }
    this.#strip.show(call, attempt, {chosen: this.#part, choose: (part) => this.#app.params(part === 'tools' ? {lens: 'wire', part: null} : {part})});
    this.#warn(call, attempt);
    this.#counts(attempt);
    const lens = this.#lens;
    if (lens === 'sent' || lens === 'wire') {
      replace(this.#place, this.#request);
      if (lens === 'sent') this.#request.document(this.#model);
      else this.#request.wire(this.#model);
      return;
    }
    if (this.#place.firstChild !== this.#lists) replace(this.#place, this.#lists);
    this.#lists.dataset.lens = lens;
    this.#lists.show(this.#model, {fates: this.#fates, part: this.#part, hits: this.#hits.positions});
    this.#showSelected();
    this.#find();
  }

  /** Search when the text of the address is another one than that of the hits. */
  async #find() {
    const text = this.#app.route.params.get('q') ?? '';
    if (document.activeElement !== this.#search) this.#search.value = text;
    if (text === this.#hits.text) return;
    this.#hits = {text, positions: []};
    try {
      const positions = await this.#model.search(text);
      if (text !== this.#hits.text) return;
      this.#hits = {text, positions};
      this.#app.frame.status.announce(text ? `${plural(positions.length, 'message')} with this text` : 'No search');
      this.#render();
    } catch (error) {
      if (error.name !== 'AbortError') this.#stale(error);
    }
  }

  #warn(call, attempt) {
    const lines = [];
    if (attempt.derived) lines.push('Recorded before this was kept: derived from the store, may differ.');
    if (attempt.rewritten) {
      lines.push(['The history was rewritten by ', h('a', {href: address('timeline', {thread: this.#model.thread}, {seq: attempt.rewritten.seq})}, `compaction ${count(attempt.rewritten.compaction)}`), '.']);
    }
    if (attempt.missing?.length) lines.push(`Missing from the store, ${count(attempt.missing.length)} in all: ${attempt.missing.map((hash) => hash.slice(0, 12)).join(', ')}.`);
    for (const warning of attempt.warnings ?? []) lines.push(`Warning: ${name(typeof warning === 'string' ? warning : JSON.stringify(warning), 200)}`);
    if (call.error) lines.push(`The call failed: ${name(call.error.message ?? call.error.code ?? String(call.error), 300)}`);
    replace(this.#banner, lines.map((line) => h('p', {class: 'banner'}, line)));
  }

  /** The legend of the fates, with how many there are of each. */
  #counts(attempt) {
    const counts = countFates(attempt.spans);
    const chosen = this.#fates;
    this.#app.frame.status.counts(...LEGEND.map((fate) => h('button', {
      type: 'button', class: 'legend-fate', data: {fate}, title: FATES[fate].means, 'aria-pressed': String(chosen.has(fate)),
      on: {click: () => this.#app.params({fate: [...chosen.symmetricDifference(new Set([fate]))].join(',')})},
    }, `${FATES[fate].glyph} ${count(counts[fate] ?? 0)} ${fate}`)));
  }

  #tools(call, attempt) {
    const {calls} = this.#model;
    const last = calls.at(-1)?.call ?? call.call;
    const facts = [call.model, call.iteration && `it ${call.iteration}`, call.ms === undefined ? call.status : duration(call.ms)];
    replace(this.#app.frame.tools,
      h('span', {class: 'pager'},
        button('‹', () => this.#goto(call.call - 1), {'aria-label': 'Previous call', disabled: call.call <= (calls[0]?.call ?? 1)}),
        h('label', null, h('span', {class: 'unseen'}, 'Model call'), h('select', {class: 'mono', on: {change: (event) => this.#goto(Number(event.target.value))}}, this.#options(calls, call))),
        h('span', {class: 'mono faint'}, `/ ${count(last)}`),
        button('›', () => this.#goto(call.call + 1), {'aria-label': 'Next call', disabled: call.call >= last})),
      call.attempts.length > 1 && h('span', {class: 'pager', role: 'group', 'aria-label': 'Attempts'}, call.attempts.map((one, index) =>
        button(`attempt ${one.attempt}${index === 0 ? ' overflow' : ' forced'}`, () => this.#app.params({attempt: one.attempt}, {push: true}), {'aria-pressed': String(one === attempt)}))),
      h('span', {class: 'call-facts'}, name(facts.filter(Boolean).join(' · '), 80)),
      h('label', null, h('span', {class: 'unseen'}, 'Lens'), h('select', {on: {change: (event) => this.#app.params({lens: event.target.value === 'compare' ? null : event.target.value})}},
        LENSES.map((lens) => h('option', {value: lens, selected: lens === this.#lens}, lens)))),
      button('Scroll together', () => this.#setTogether(!this.#lists.together), {'aria-pressed': String(this.#lists.together), 'aria-keyshortcuts': 'y'}),
      button('Copy link', () => this.#app.copy(location.href, 'Link copied')));
  }

  /** The calls by run and iteration. */
  #options(calls, chosen) {
    const runs = Map.groupBy(calls, (one) => one.run ?? '');
    return [...runs].map(([run, ones]) => h('optgroup', {label: `run ${name(run, 40)}`}, ones.map((one) =>
      h('option', {value: String(one.call), selected: one.call === chosen.call}, `${count(one.call)} · it ${one.iteration ?? '?'} · ${one.status}`))));
  }

  #setTogether(on) {
    this.#lists.together = on;
    this.#render();
  }

  #goto(number) {
    const {calls} = this.#model;
    if (!calls.some((call) => call.call === number)) return;
    this.#app.params({call: number, attempt: null}, {push: true});
  }

  #picked(left, right, how) {
    if (how === 'move' && this.#detail.hidden) return;
    const head = left?.kind === 'message' ? this.#model.head(left.position) : null;
    this.#app.params({m: head?.id ?? `@${(left ?? right).key}`});
  }

  async #showSelected() {
    const id = this.#app.route.params.get('m');
    const [left, right] = id ? await this.#rowsOf(id) : [null, null];
    if (id !== this.#app.route.params.get('m')) return;
    this.#detail.hidden = !left && !right;
    this.#lists.select(left?.key ?? null, right?.key ?? null, Boolean(left || right));
    if (left || right) this.#detail.show(this.#model, left, right);
  }

  /** The rows of a selection: a message id, or the key of a row after "@". */
  async #rowsOf(id) {
    if (id.startsWith('@')) return this.#lists.pairOf(id[1] === 's' && id !== '@superseded' ? 'right' : 'left', id.slice(1));
    try {
      const position = await this.#model.positionOf(id);
      const row = position === null ? null : this.#lists.rowOf(position);
      return row ? this.#lists.pairOf('left', row.key) : [null, null];
    } catch (error) {
      if (error.name !== 'AbortError') this.#stale(error);
      return [null, null];
    }
  }

  #live(entries) {
    const mine = this.#model.call?.call;
    const latest = ['latest', null].includes(this.#app.route.params.get('call'));
    if (entries.some((entry) => entry.kind === 'message')) this.#model.forgetHeads();
    if (entries.some((entry) => entry.kind === 'call' && (latest || Number(entry.ref) === mine))) this.#load();
    else if (entries.some((entry) => entry.kind === 'call')) this.#model.readCalls().then(() => this.#render(), (error) => this.#stale(error));
  }
}

customElements.define('bs-context-page', ContextPage);

/** The page, not started yet. */
export const create = () => h('bs-context-page');
