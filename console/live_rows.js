/** The live compact timeline of a thread, small: what stands beside a conversation. */

import {h, replace} from './h.js';
import './list.js';
import {RowsModel} from './rows_model.js';
import {address} from './route.js';
import {stale} from './states.js';
import './timeline_row.js';

/** The element. */
export class LiveRows extends HTMLElement {
  #app;
  #thread;
  #model = null;
  #failure = false;
  #notice = h('div', {class: 'notice'});
  #place = h('div', {class: 'fill'});
  #list = h('bs-list', {class: 'timeline'});

  /** @param {import('./main.js').App} app */
  build(app) {
    this.#app = app;
    const model = () => this.#model;
    this.#list.configure({
      label: 'Timeline of this thread', createRow: () => h('bs-timeline-row'), onFollow: () => {},
      source: {
        get count() { return model()?.total ?? 0; },
        key: (index) => String(index), indexOf: (key) => Number(key),
        at: (index) => ({row: model().at(index), runStart: model().at(index) && model().runStart(model().at(index))}),
      },
      onPick: (key, how) => how === 'open' && model().at(Number(key))
        && app.go(address('timeline', {thread: this.#thread}, {seq: model().at(Number(key)).seq[0]})),
      onWindow: (first, end) => model()?.want(first, end),
    });
    this.append(h('div', {class: 'column-head'}, h('h2', null, 'Timeline')), this.#notice, this.#place);
    return this;
  }

  disconnectedCallback() {
    this.#model?.stop();
  }

  /** The keyboard's list. */
  get list() { return this.#list; }

  /** Show a thread, once it is there. @param {string} thread */
  async show(thread) {
    if (this.#model || this.#failure || !this.checkVisibility()) return;
    this.#thread = thread;
    const model = new RowsModel({
      thread, feed: this.#app.feed, params: new URLSearchParams(), changed: ({positions}) => this.#list.refresh(positions?.map(String)),
      failed: (error) => this.#failed(error), reload: () => this.#again(),
    });
    try {
      this.#model = model;
      await model.start(null);
      replace(this.#place, this.#list);
      replace(this.#notice);
      this.#list.follow(true);
    } catch (error) {
      this.#model = null;
      model.stop();
      if (error.name !== 'AbortError') this.#failed(error);
    }
  }

  #again() {
    this.#model?.stop();
    this.#model = null;
    this.#failure = false;
    this.show(this.#thread);
  }

  #failed(error) {
    this.#failure = true;
    replace(this.#notice, stale('the timeline', error, () => this.#again()));
  }
}

customElements.define('bs-live-rows', LiveRows);
