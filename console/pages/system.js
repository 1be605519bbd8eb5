/** System: are the workers and Redis well? */

import {get} from '../api.js';
import {bytes, clock, count, duration, moment, name, plural} from '../format.js';
import {h, replace} from '../h.js';
import {failed, loading, stale} from '../states.js';

const EVERY_MS = 5000;

/** The page element. */
class SystemPage extends HTMLElement {
  #abort = new AbortController();
  #timer = 0;
  #notice = h('div', {class: 'notice'});
  #place = h('div', {class: 'fill system', tabindex: '0', role: 'region', 'aria-label': 'System'});
  #shown = false;
  #app;

  /** @param {import('../main.js').App} app */
  start(app) {
    this.#app = app;
    this.append(h('h1', {class: 'unseen'}, 'System'), this.#notice, this.#place);
    replace(this.#place, loading('the state of the system'));
    this.#load();
    this.#timer = setInterval(() => this.#load(), EVERY_MS);
  }

  disconnectedCallback() {
    clearInterval(this.#timer);
    this.#abort.abort();
  }

  /** Nothing in the address. */
  change() {}

  async #load() {
    try {
      const system = await get('/system', {signal: this.#abort.signal});
      this.#shown = true;
      replace(this.#notice, system.redis.subscribed ? null : h('p', {class: 'banner'}, 'The worker that answered has lost its Redis subscription: live entries arrive late, by reading.'));
      replace(this.#place, workers(system.workers), redis(system.redis), threads(system.threads), build(system.build));
      this.#app.frame.status.counts(plural(system.workers.length, 'worker'), `read at ${clock(Date.now())}`);
    } catch (error) {
      if (this.#abort.signal.aborted) return;
      const retry = () => this.#load();
      if (this.#shown) replace(this.#notice, stale('the state of the system', error, retry));
      else replace(this.#place, failed('The state of the system', error, retry));
    }
  }
}

function workers(all) {
  const heads = ['Worker', 'Version', 'Up for', 'Connections', 'Runs', 'Loop lag', 'State'];
  const row = (one) => h('tr', null, h('th', {scope: 'row'}, h('code', null, name(one.worker, 60))), h('td', null, name(one.version, 20)),
    h('td', {title: moment(one.started)}, duration(Date.now() - one.started)), h('td', {class: 'number'}, count(one.connections)),
    h('td', {class: 'number'}, count(one.runs)), h('td', {class: 'number'}, duration(one.lag_ms ?? 0)),
    h('td', null, one.draining ? h('span', {class: 'warning'}, 'draining') : 'serving'));
  return h('section', null, h('h2', null, 'Workers'), h('table', {class: 'plain'},
    h('thead', null, h('tr', null, heads.map((head) => h('th', {scope: 'col'}, head)))), h('tbody', null, all.map(row))));
}

function facts(title, pairs) {
  return h('section', null, h('h2', null, title), h('dl', {class: 'facts'}, pairs.map(([label, value]) => [h('dt', null, label), h('dd', null, value)])));
}

function redis({ping_ms: ping, bytes: used, persistence, subscribed}) {
  return facts('Redis', [
    ['round trip', ping === undefined ? 'not measured' : duration(ping)], ['memory', used === undefined ? 'not reported' : bytes(used)],
    ['persistence', name(persistence ?? 'not reported', 80)],
    ['subscription', subscribed ? h('span', {class: 'ok'}, 'healthy') : h('span', {class: 'error'}, 'lost')],
  ]);
}

function threads(byStatus) {
  const given = Object.entries(byStatus);
  return facts('Threads, of the newest', given.length ? given.map(([status, n]) => [status, count(n)]) : [['none', 'yet']]);
}

function build(hash) {
  return facts('Console', [['build', h('code', null, name(hash, 40))]]);
}

customElements.define('bs-system-page', SystemPage);

/** The page, not started yet. */
export const create = () => h('bs-system-page');
