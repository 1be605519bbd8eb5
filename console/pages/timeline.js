/** Timeline: what happened, in order, until now? */

import '../detail.js';
import {FAMILIES, GLYPHS} from '../families.js';
import {count, plural} from '../format.js';
import {button, h, replace} from '../h.js';
import '../list.js';
import {RowsModel} from '../rows_model.js';
import {empty, failed, loading, noMatch, stale} from '../states.js';
import {COLUMNS} from '../timeline_row.js';
import {TimelineFolds} from '../timeline_folds.js';
import {get, threadPath} from '../api.js';

const FILTERS = ['family', 'status', 'run', 'q', 'from', 'to'];
const STATUSES = ['running', 'waiting', 'ok', 'cancelled', 'error'];

/** The page element. */
class TimelinePage extends HTMLElement {
  #app;
  #model = null;
  #loading = null;               // the model that is read, until it is the one on show
  #folds = new TimelineFolds();
  #query = null;
  #selected = null;
  #waiting = 0;
  #list = h('bs-list', {class: 'timeline'});
  #filters = h('form', {class: 'filters', role: 'search', 'aria-label': 'Filter the timeline'});
  #notice = h('div', {class: 'notice'});
  #place = h('div', {class: 'fill'});
  #detail = h('bs-detail', {hidden: true});
  #newest = button('', () => this.#follow(true), {class: 'newest', hidden: true});
  #followButton = button('Follow', () => this.#follow(!this.#list.following), {'aria-keyshortcuts': 'f'});

  /** @param {import('../main.js').App} app @param {import('../route.js').Route} route */
  start(app, route) {
    this.#app = app;
    this.append(h('h1', {class: 'unseen'}, 'Timeline'), this.#filters, this.#notice,
      h('div', {class: 'split'}, h('div', {class: 'fill'}, this.#place, this.#newest), this.#detail));
    this.#detail.build({close: () => this.#app.params({seq: null}), copy: (text, said) => app.copy(text, said)});
    this.#buildFilters();
    this.#buildList();
    app.frame.onReload = () => this.#load();
    replace(app.frame.tools, this.#followButton);
    app.frame.status.keys([['↑↓', 'row'], ['Enter', 'detail'], ['←→', 'fold'], ['e', 'next error'], ['f', 'follow'], ['?', 'keys']]);
    this.change(route);
  }

  disconnectedCallback() {
    this.#model?.stop();
    this.#loading?.stop();
  }

  /** @param {import('../route.js').Route} route */
  change(route) {
    this.#showFilters(route.params);
    const query = FILTERS.map((key) => `${key}=${route.params.get(key) ?? ''}`).join('&');
    if (query !== this.#query) {
      this.#query = query;
      this.#load();
      return;
    }
    this.#showSelected(route);
  }

  /** Where the reader is, for coming back. */
  get place() { return this.#list.isConnected ? this.#list.place : null; }

  /** @param {string} action */
  act(action) {
    if (action === 'follow') this.#follow(!this.#list.following);
    else if (action === 'copy-json') this.#detail.copyJson();
    else if (action === 'close' && !this.#detail.hidden) this.#app.params({seq: null});
    else if (action === 'next-error' || action === 'previous-error') this.#step(action === 'next-error' ? 1 : -1);
    else if (action === 'right' || action === 'left') return this.#fold(action === 'left');
    else return this.#list.isConnected && this.#list.act(action);
    return true;
  }

  #buildList() {
    const page = this;
    this.#list.configure({
      label: 'Timeline', createRow: () => h('bs-timeline-row'),
      header: h('div', {role: 'row', class: 'list-head timeline-head', 'aria-rowindex': '1'},
        COLUMNS.map(([column, label]) => h('span', {role: 'columnheader', class: `cell ${column}`}, label))),
      source: {
        get count() { return page.#folds.count(page.#model); },
        key: (index) => String(this.#folds.position(index)),
        at: (index) => this.#folds.item(this.#model, this.#folds.position(index)),
        indexOf: (key) => this.#folds.indexOf(Number(key)),
      },
      onPick: (key, how) => this.#pick(Number(key), how),
      onFollow: (on) => this.#followed(on),
      onWindow: (first, end) => this.#model && this.#model.want(this.#folds.position(first), this.#folds.position(end - 1) + 1),
    });
    this.#list.addEventListener('click', (event) => {
      if (event.target.closest('[data-fold]')) this.#toggle(Number(event.target.closest('[data-key]').dataset.key));
    });
  }

  #buildFilters() {
    const chip = (family) => h('button', {
      type: 'button', class: 'chip', 'aria-pressed': 'false', data: {family}, on: {click: () => this.#toggleFamily(family)},
    }, h('span', {class: 'glyph', 'aria-hidden': 'true'}, GLYPHS[family]), ` ${family}`);
    replace(this.#filters,
      h('label', {class: 'grow'}, h('span', {class: 'unseen'}, 'Search'), h('input', {
        type: 'search', name: 'q', placeholder: 'Search this timeline', autocomplete: 'off',
        on: {change: (event) => this.#app.params({q: event.target.value})},
      })),
      h('label', null, h('span', {class: 'unseen'}, 'Status'), h('select', {name: 'status', on: {change: (event) => this.#app.params({status: event.target.value})}},
        h('option', {value: ''}, 'any status'), STATUSES.map((value) => h('option', {value}, value)))),
      h('div', {class: 'chips', role: 'group', 'aria-label': 'Families'}, FAMILIES.map(chip)));
    this.#filters.addEventListener('submit', (event) => event.preventDefault());
  }

  #showFilters(params) {
    const families = params.get('family')?.split(',') ?? [];
    for (const chip of this.#filters.querySelectorAll('.chip')) {
      chip.setAttribute('aria-pressed', String(families.includes(chip.dataset.family)));
    }
    this.#filters.elements.q.value = params.get('q') ?? '';
    this.#filters.elements.status.value = params.get('status') ?? '';
  }

  #toggleFamily(family) {
    const now = new Set(this.#app.route.params.get('family')?.split(',').filter(Boolean) ?? []);
    if (!now.delete(family)) now.add(family);
    this.#app.params({family: [...now].join(',')});
  }

  async #load() {
    const {thread, params} = this.#app.route;
    this.#model?.stop();
    this.#loading?.stop();
    const model = new RowsModel({
      thread, feed: this.#app.feed, params,
      changed: (what) => this.#changed(what), failed: (error) => this.#stale(error), reload: () => this.#load(),
    });
    this.#loading = model;
    const first = !this.#list.isConnected;
    if (first) replace(this.#place, loading('the timeline'));
    let seq = Number(params.get('seq')) || null;
    try {
      seq ??= await this.#seqOfMessage(params.get('m'));
      await model.start(seq);
    } catch (error) {
      model.stop();
      if (error.name !== 'AbortError') this.#failed(error);
      return;
    }
    if (!this.isConnected || model !== this.#loading) {
      model.stop();
      return;
    }
    this.#model = model;
    this.#folds.reset(model);
    replace(this.#notice);
    const {place} = history.state ?? {};
    const live = params.get('live') !== '0' && !seq && !place;
    this.#arrange();
    this.#follow(live);
    if (place && !seq) this.#list.place = place;
    if (seq && !params.get('seq')) this.#app.params({seq});
    else this.#showSelected(this.#app.route);
  }

  async #seqOfMessage(id) {
    if (!id) return null;
    const {messages} = await get(threadPath(this.#app.route.thread, '/messages', {ids: id}));
    return messages[0]?.seq ?? null;
  }

  #failed(error) {
    if (this.#model && this.#list.isConnected) this.#stale(error);
    else replace(this.#place, failed('The timeline', error, () => this.#load()));
  }

  #stale(error) {
    replace(this.#notice, stale('the timeline', error, () => this.#load()));
  }

  #arrange(keys) {
    const {params} = this.#app.route;
    const given = FILTERS.filter((key) => params.get(key));
    if (this.#model.total) {
      if (this.#place.firstChild !== this.#list) replace(this.#place, this.#list);
      this.#list.refresh(keys);
    } else if (given.length) {
      replace(this.#place, noMatch(given.join(', '), () => this.#app.params(Object.fromEntries(FILTERS.map((key) => [key, null])))));
    } else {
      replace(this.#place, empty('Nothing has happened yet', h('p', null, 'Entries appear here as soon as a run begins.')));
    }
    this.#app.frame.status.counts(plural(this.#model.total, 'row'), `head ${count(this.#model.head)}`);
  }

  #changed({entries, errors, positions}) {
    if (!this.#model) return;
    if (entries && !this.#list.following) this.#waiting += entries;
    this.#folds.changed(this.#model);
    this.#arrange(this.#folds.any ? undefined : positions?.map(String));
    if (!positions && this.#selected !== null) this.#select(this.#model.positionOf(this.#selected));
    this.#showWaiting();
    if (entries && this.#list.following) {
      this.#app.frame.status.announce(`${plural(entries, 'new entr').replace(/entrs$/, 'entries').replace(/entr$/, 'entry')}${errors ? `, ${plural(errors, 'error')}` : ''}`);
    }
  }

  #follow(on) {
    if (on) this.#waiting = 0;
    this.#list.follow(on);
    this.#followed(on);
  }

  #followed(on) {
    if (on) this.#waiting = 0;
    this.#followButton.setAttribute('aria-pressed', String(on));
    this.#showWaiting();
  }

  #showWaiting() {
    const paused = !this.#list.following;
    this.#newest.hidden = !paused || !this.#waiting;
    this.#newest.textContent = `↓ ${count(this.#waiting)} new`;
    this.#app.frame.following(paused, this.#waiting);
  }

  #pick(position, how) {
    this.#list.follow(false);
    const row = this.#model.at(position);
    if (!row || (how === 'move' && this.#detail.hidden)) return;
    this.#app.params({seq: row.seq[0], m: null});
  }

  #showSelected(route) {
    const seq = Number(route.params.get('seq')) || null;
    const position = seq ? this.#model?.positionOfSeq(seq) ?? -1 : -1;
    const row = position >= 0 ? this.#model.at(position) : null;
    this.#detail.hidden = !row;
    this.#select(row ? position : -1);
    if (!row) {
      this.#selected = null;
      return;
    }
    if (this.#selected === row.row) return;
    this.#selected = row.row;
    this.#folds.open(this.#model, row);
    requestAnimationFrame(() => this.#list.reveal(String(position)));
    this.#detail.show(route.thread, row);
  }

  #select(position) {
    this.#list.select(position >= 0 ? String(position) : null);
  }

  #toggle(position) {
    this.#folds.toggle(this.#model, position);
    this.#list.refresh();
  }

  #fold(close) {
    const position = Number(this.#list.active ?? -1);
    if (!this.#folds.canFold(this.#model, position)) return false;
    if (this.#folds.isFolded(this.#model, position) !== close) this.#toggle(position);
    return true;
  }

  /** To the next or previous error among the rows that were read. */
  #step(by) {
    const from = Number(this.#list.active ?? (by > 0 ? -1 : this.#model.total));
    for (let at = from + by; at >= 0 && at < this.#model.total; at += by) {
      if (this.#model.at(at)?.status !== 'error') continue;
      this.#folds.open(this.#model, this.#model.at(at));
      this.#list.follow(false);
      this.#list.moveTo(this.#folds.indexOf(at));
      return;
    }
    this.#app.frame.status.announce('No further error among the rows read');
  }
}

customElements.define('bs-timeline-page', TimelinePage);

/** The page, not started yet. */
export const create = () => h('bs-timeline-page');
