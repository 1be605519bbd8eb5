/** The console: shows the page of the address, and keeps address, frame and page together. */

import {get, threadPath} from './api.js';
import {Feed} from './feed.js';
import {h, replace} from './h.js';
import {setTheme, showHelp, theme} from './help.js';
import {listen} from './keys.js';
import {TABS, address, ownerAndId, parse, query} from './route.js';
import {empty} from './states.js';
import {name} from './format.js';
import './frame.js';

const PAGES = {
  threads: () => import('./pages/threads.js'),
  timeline: () => import('./pages/timeline.js'),
  context: () => import('./pages/context.js'),
  compactions: () => import('./pages/compactions.js'),
  chat: () => import('./pages/chat.js'),
  system: () => import('./pages/system.js'),
};
const TITLES = {
  threads: 'Threads', timeline: 'Timeline', context: 'Context', compactions: 'Compactions', chat: 'Try it', system: 'System',
};
const TAB = 'backscroll.tab';
const MISSING = 'missing';       // shown instead of a page
const THEMES = {system: 'light', light: 'dark', dark: 'system'};

/**
 * What a page gets. A page is an element with `start(app, route)`, `change(route)` for a new address of
 * the same page and thread, and `act(action)` for keys.
 */
export class App {
  feed = new Feed();
  frame = h('bs-frame');
  /** @type {import('./route.js').Route} */
  route = {page: 'threads', params: new URLSearchParams()};
  /** The head of the thread on show. @type {object | null} */
  head = null;
  #page = null;
  #shown = '';
  #open = new Set();             // questions that wait, by thread and id

  /** Build the frame, connect, show the page. */
  start() {
    const {signal} = new AbortController();
    this.frame.build((action) => this.perform(action));
    document.body.append(this.frame);
    this.feed.open();
    this.feed.watch((state) => this.#linked(state));
    this.feed.heads((heads, gone, begun) => (begun || gone.includes(this.route.thread) ? this.#readHead() : this.#heads(heads)));
    this.feed.questions((questions, whole) => this.#asked(questions, whole));
    listen((action) => this.perform(action), signal);
    addEventListener('popstate', () => this.#show());
    document.addEventListener('click', (event) => this.#clicked(event));
    this.#show();
  }

  /** Go to an address of the console. @param {string} to @param {{replace?: boolean}} [how] */
  go(to, how = {}) {
    if (how.replace) {
      history.replaceState(history.state, '', to);
    } else {
      history.replaceState({place: this.#page?.place ?? null}, '');
      history.pushState(null, '', to);
    }
    this.#show();
  }

  /** The page goes on under another address: a new conversation has got its thread. @param {string} to */
  become(to) {
    history.replaceState(history.state, '', to);
    this.route = parse(location.pathname, location.search);
    this.#shown = `${this.route.page} ${this.route.thread ?? ''}`;
    this.frame.where(this.route, null);
  }

  /**
   * Change parameters of the address: the page is told, and all other parameters stay.
   * @param {Record<string, string | number | null | undefined>} changes @param {{push?: boolean}} [how]
   */
  params(changes, {push = false} = {}) {
    this.go(location.pathname + query(this.route.params, changes), {replace: !push});
  }

  /** Carry out the action of a key or button. @param {string} action @returns {boolean} */
  perform(action) {
    if (document.querySelector('dialog[open]')) return false;
    if (this.#page?.act?.(action)) return true;
    const tab = action.startsWith('tab-') && TABS[Number(action.slice(4)) - 1];
    if (tab && this.route.thread && TABS.includes(this.route.page)) {
      this.go(address(tab, {thread: this.route.thread}));
      return true;
    }
    const does = {
      help: showHelp, 'go-threads': () => this.go(address('threads')), 'go-chat': () => this.go(address('chat')), 'go-system': () => this.go(address('system')),
      theme: () => this.#nextTheme(), search: () => this.#search(), 'copy-link': () => this.copy(location.href, 'Link copied'),
    }[action];
    does?.();
    return Boolean(does);
  }

  /** Put text on the clipboard and say so. @param {string} text @param {string} said */
  async copy(text, said) {
    try {
      await navigator.clipboard.writeText(text);
      this.frame.status.announce(said);
    } catch {
      this.frame.status.announce('The browser did not allow copying');
    }
  }

  #nextTheme() {
    setTheme(THEMES[theme()]);
    this.frame.status.announce(`Theme: ${theme()}`);
  }

  #search() {
    const field = this.frame.content.querySelector('input[type=search]');
    if (field) field.focus();
    else this.go(address('threads'));
  }

  #clicked(event) {
    const link = event.target.closest?.('a[href^="/console"]');
    const plain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
    if (!link || !plain || link.target || link.hasAttribute('download')) return;
    event.preventDefault();
    this.go(link.getAttribute('href'));
  }

  #heads(heads) {
    const changed = heads.find((head) => head.thread === this.route.thread);
    if (!changed) return;
    this.head = changed;
    if (this.#shown === MISSING) this.#show();
    else this.frame.where(this.route, this.head);
  }

  #linked(state) {
    this.frame.feed(state);
    this.frame.questions(this.#open.size, state.link !== 'open');
  }

  #asked(questions, whole) {
    if (whole) this.#open.clear();
    for (const {thread, interrupt_id: id, decision} of questions) {
      if (decision) this.#open.delete(`${thread} ${id}`);
      else this.#open.add(`${thread} ${id}`);
    }
    this.frame.questions(this.#open.size, false);
  }

  async #show() {
    const route = parse(location.pathname, location.search);
    if (route.page === 'thread') {
      const last = localStorage.getItem(TAB);
      this.go(address(TABS.includes(last) ? last : TABS[0], {thread: route.thread}) + location.search, {replace: true});
      return;
    }
    const otherThread = route.thread !== this.route.thread || (this.head === null && TABS.includes(route.page));
    this.route = route;
    if (TABS.includes(route.page)) localStorage.setItem(TAB, route.page);
    if (otherThread) {
      this.head = null;
      this.#readHead();
    }
    this.frame.where(route, this.head);
    const key = `${route.page} ${route.thread ?? ''}`;
    if (key === this.#shown && this.#page) this.#page.change(route);
    else await this.#turnTo(route, key);
  }

  async #turnTo(route, key) {
    this.#shown = key;
    const of = route.thread ? `${name(ownerAndId(route.thread).id, 60)} · ` : '';
    document.title = `${of}${TITLES[route.page] ?? 'Not found'} · Backscroll`;
    const lost = this.frame.content.contains(document.activeElement);
    const page = route.page in PAGES ? (await PAGES[route.page]()).create() : notFound();
    if (key !== this.#shown) return;
    this.#page = page;
    this.frame.onReload = undefined;
    this.frame.following(false, 0);
    this.frame.status.counts();
    this.frame.status.keys([['?', 'keys']]);
    replace(this.frame.tools);
    replace(this.frame.content, page);
    if (lost) this.frame.content.focus();
    page.start?.(this, this.route);
  }

  #missing() {
    this.#page = null;
    this.#shown = MISSING;
    replace(this.frame.tools);
    replace(this.frame.content, notFound());
  }

  async #readHead() {
    const {page, thread} = this.route;
    if (thread === undefined || !TABS.includes(page)) return;
    const before = this.head;
    try {
      const head = await get(threadPath(thread));
      if (this.route.thread === thread) this.#heads([{...head, thread}]);
    } catch (error) {
      // A head that came meanwhile knows better.
      if (error.status === 404 && this.route.thread === thread && this.head === before) this.#missing();
    }
  }
}

function notFound() {
  return empty('Not found', h('p', null, 'There is no such page or thread.'), h('p', null, h('a', {href: address('threads')}, 'All threads')));
}

new App().start();
