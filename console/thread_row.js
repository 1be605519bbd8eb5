/** A row of the list of threads. */

import {ago, count, moment, name, percent} from './format.js';
import {h, say} from './h.js';
import {address} from './route.js';

/** The columns: name in the API, and heading. @type {[string, string][]} */
export const COLUMNS = [
  ['status', 'Status'], ['thread', 'Thread'], ['agent', 'Agent'], ['activity', 'Last activity'], ['runs', 'Runs'],
  ['messages', 'Messages'], ['entries', 'Entries'], ['compactions', 'Compactions'], ['model', 'Last model'],
  ['context', 'Context'], ['errors', 'Errors'], ['questions', 'Questions'],
];
const NUMBERS = ['runs', 'messages', 'entries', 'compactions', 'errors', 'questions'];

/** One thread. */
export class ThreadRow extends HTMLElement {
  #cells = Object.fromEntries(COLUMNS.map(([column]) => [column, h('span', {role: 'gridcell', class: `cell ${column}`})]));
  #dot = h('span', {class: 'dot', 'aria-hidden': 'true'});
  #word = h('span');
  #title = h('a', {class: 'title', dir: 'auto', tabindex: '-1'});
  #id = h('span', {class: 'mono faint'});
  #meter = h('span', {class: 'meter', 'aria-hidden': 'true'}, h('span', {class: 'meter-fill'}));
  #context = h('span');

  constructor() {
    super();
    this.#cells.status.append(this.#dot, this.#word);
    this.#cells.thread.append(this.#title, this.#id);
    this.#cells.context.append(this.#meter, this.#context);
  }

  connectedCallback() {
    if (this.firstChild) return;
    this.setAttribute('role', 'row');
    this.append(...Object.values(this.#cells));
  }

  /** @param {object} head */
  show(head) {
    const cells = this.#cells;
    this.dataset.status = head.status;
    say(this.#word, head.status ?? 'ok');
    say(this.#title, name(head.title || head.thread_id || head.thread, 160));
    this.#title.setAttribute('href', address('thread', {thread: head.thread}));
    say(this.#id, name(head.owner && head.owner !== 'local' ? `${head.owner} / ${head.thread_id}` : head.thread_id, 120));
    say(cells.agent, name(head.agent, 40));
    say(cells.activity, head.activity ? ago(head.activity, Date.now()) : '');
    cells.activity.title = head.activity ? moment(head.activity) : '';
    for (const column of NUMBERS) {
      say(cells[column], head[column] === undefined ? '' : count(head[column]));
      cells[column].toggleAttribute('data-none', !head[column]);
    }
    say(cells.model, name(head.model, 60));
    this.#showContext(head.context);
  }

  #showContext(context) {
    this.#meter.hidden = !context?.window;
    say(this.#context, context?.window ? percent(context.tokens, context.window) : '');
    if (!context?.window) return;
    const part = Math.min(1, context.tokens / context.window);
    this.#meter.firstChild.style.inlineSize = `${part * 100}%`;
    this.#meter.toggleAttribute('data-high', part > 0.85);
    this.#cells.context.title = `${count(context.tokens)} of ${count(context.window)} tokens sent by call ${context.call}, ${context.source}`;
  }
}
customElements.define('bs-thread-row', ThreadRow);
