/** Compactions: what was decided, what did the summary say? */

import {get, threadPath} from '../api.js';
import {compactionButtons} from '../compaction_actions.js';
import {COLUMNS} from '../compaction_row.js';
import '../compaction_detail.js';
import {ago, bytes, count, moment, name, plural} from '../format.js';
import {h, replace} from '../h.js';
import '../list.js';
import {address} from '../route.js';
import {empty, failed, loading, stale} from '../states.js';

const BREAKER = 3;

/** The page element. */
class CompactionsPage extends HTMLElement {
  #app;
  #abort = new AbortController();
  #rows = [];
  #loads = 0;                    // only the newest one counts
  #stopFeed = null;
  #card = h('section', {class: 'card', 'aria-label': 'Compaction store'});
  #notice = h('div', {class: 'notice'});
  #place = h('div', {class: 'fill'});
  #list = h('bs-list', {class: 'compactions'});
  #detail = h('bs-compaction', {hidden: true});

  /** @param {import('../main.js').App} app @param {import('../route.js').Route} route */
  start(app, route) {
    this.#app = app;
    this.append(h('h1', {class: 'unseen'}, 'Compactions'), this.#card, this.#notice,
      h('div', {class: 'split'}, this.#place, this.#detail));
    this.#detail.build({close: () => this.#open(null), copy: (text, said) => app.copy(text, said)});
    this.#buildList();
    app.frame.onReload = () => this.#load();
    app.frame.status.keys([['↑↓', 'row'], ['Enter', 'detail'], ['c', 'copy JSON'], ['?', 'keys']]);
    replace(this.#place, loading('the decisions'));
    this.#load();
  }

  disconnectedCallback() {
    this.#abort.abort();
    this.#stopFeed?.();
  }

  /** Hear what the log says after what was read. @param {number | null} after */
  #follow(after) {
    this.#stopFeed ??= this.#app.feed.thread(this.#app.route.thread, after, {
      entries: (entries) => entries.some((entry) => entry.kind === 'compaction') && this.#load(),
      resync: () => this.#load(), reconnected: () => this.#load(),
    });
  }

  /** A decision is chosen by the address. */
  change() {
    this.#showSelected();
  }

  /** @param {string} action */
  act(action) {
    if (action === 'copy-json') this.#detail.copyJson();
    else if (action === 'close' && !this.#detail.hidden) this.#open(null);
    else return this.#list.isConnected && this.#list.act(action);
    return true;
  }

  #buildList() {
    const page = this;
    this.#list.configure({
      label: 'Decisions', createRow: () => h('bs-compaction-row'),
      header: h('div', {role: 'row', class: 'list-head compactions-head', 'aria-rowindex': '1'},
        COLUMNS.map(([column, label]) => h('span', {role: 'columnheader', class: `cell ${column}`}, label))),
      source: {
        get count() { return page.#rows.length; },
        key: (index) => String(this.#rows[index].compaction),
        at: (index) => this.#rows[index],
        indexOf: (key) => this.#rows.findIndex((row) => String(row.compaction) === key),
      },
      onPick: (key, how) => (how === 'open' || !this.#detail.hidden) && this.#open(Number(key)),
    });
  }

  #open(n) {
    const {thread, params} = this.#app.route;
    const to = address('compactions', {thread, ...(n !== null && {n})});
    const query = params.toString();
    this.#app.go(query ? `${to}?${query}` : to);
    this.#showSelected();
  }

  async #load() {
    const {thread} = this.#app.route;
    this.#loads += 1;
    const mine = this.#loads;
    try {
      const {card, compactions, head} = await get(threadPath(thread, '/compactions'), {signal: this.#abort.signal});
      if (mine !== this.#loads) return;
      this.#follow(head);
      this.#rows = [...compactions].sort((a, b) => b.compaction - a.compaction);
      this.#showCard(card);
      replace(this.#notice);
      this.#arrange();
    } catch (error) {
      if (this.#abort.signal.aborted || mine !== this.#loads) return;
      this.#follow(null);
      if (this.#rows.length) replace(this.#notice, stale('the list', error, () => this.#load()));
      else replace(this.#place, failed('The decisions', error, () => this.#load()));
    }
  }

  #arrange() {
    const result = (what) => this.#rows.filter((row) => row.result === what).length;
    this.#app.frame.status.counts(plural(this.#rows.length, 'decision'), ...['done', 'skipped', 'failed', 'cancelled'].filter(result).map((what) => `${count(result(what))} ${what}`));
    if (!this.#rows.length) {
      replace(this.#place, empty('No compaction yet', h('p', null, 'Every decision is listed here once the history comes near the budget, also those that did nothing.')));
      return;
    }
    if (this.#place.firstChild !== this.#list) replace(this.#place, this.#list);
    this.#list.refresh();
    this.#showSelected();
  }

  #showCard(card) {
    this.#card.hidden = !card;
    if (!card) return;
    const {cache, failures = 0, paused} = card;
    const matches = cache?.matches ? h('span', {class: 'ok'}, 'matches') : h('span', {class: 'warning'}, 'stale: the next call will summarise again');
    const breaker = paused ? h('span', {class: 'error'}, `paused after ${plural(failures, 'failure')}; automatic summaries are off`) : `${count(failures)} of ${BREAKER}`;
    const fact = (label, ...value) => h('div', null, h('dt', null, label), h('dd', null, ...value));
    replace(this.#card, h('h2', null, 'Store'), h('dl', {class: 'card-facts'},
      fact('cache', cache ? plural(cache.prefix_n, 'message') : 'none'),
      cache && fact('fits the history', matches),
      cache?.prefix_hash && fact('hash', h('code', null, name(cache.prefix_hash, 12))),
      cache?.made && fact('made', h('span', {title: moment(cache.made)}, ago(cache.made, Date.now()))),
      card.bytes !== undefined && fact('size', bytes(card.bytes)),
      card.expires && fact('expires', moment(card.expires).split(' · ')[0]),
      card.pins?.length > 0 && fact('pins', count(card.pins.length)),
      card.settings && fact('of this thread', Object.entries(card.settings).map(([key, value]) => `${name(key, 40)} ${value}`).join(', ')),
      fact('failures', breaker)),
    h('div', {class: 'card-actions'}, compactionButtons(this.#app.route.thread, card, (said) => this.#acted(said))));
  }

  #acted(said) {
    this.#app.frame.status.announce(said);
    this.#load();
  }

  #showSelected() {
    const {thread, n} = this.#app.route;
    const row = this.#rows.find((one) => one.compaction === n);
    this.#detail.hidden = n === undefined;
    this.#list.select(row ? String(n) : null);
    if (n === undefined) return;
    if (row) requestAnimationFrame(() => this.#list.reveal(String(n)));
    this.#detail.show(thread, n);
  }
}

customElements.define('bs-compactions-page', CompactionsPage);

/** The page, not started yet. */
export const create = () => h('bs-compactions-page');
