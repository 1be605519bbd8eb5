/** The frame around every page: header, connection badge, tabs, content, status line. */

import {badge} from './badge.js';
import {button, h, replace, say} from './h.js';
import {count, name} from './format.js';
import {keyFor} from './keys.js';
import {TABS, address, ownerAndId} from './route.js';
import './status.js';

const TAB_NAMES = {timeline: 'Timeline', context: 'Context', compactions: 'Compactions'};

/** The frame element. The page puts itself into `content` and what belongs beside the tabs into `tools`. */
export class Frame extends HTMLElement {
  /** Where the page stands. */
  content = h('main', {id: 'content', tabindex: '-1'});
  /** Controls of the page, at the end of the tab strip. */
  tools = h('div', {class: 'tools'});
  /** The status line. */
  status = h('bs-status', {role: 'contentinfo'});
  #crumbs = h('nav', {class: 'crumbs', 'aria-label': 'Where you are'});
  #badge = h('span', {class: 'badge', data: {tone: 'quiet'}}, 'connecting');
  #reload = button('reload', () => this.onReload?.(), {class: 'quiet', hidden: true});
  #worker = h('span', {class: 'worker', hidden: true});
  #questions = h('a', {class: 'quiet button waiting', hidden: true});
  #tabs = h('nav', {class: 'tabs', 'aria-label': 'Thread'});
  #strip = h('div', {class: 'strip', role: 'region', 'aria-label': 'Pages and controls'}, this.#tabs, this.tools);
  #feed = null;
  #following = {paused: false, waiting: 0};
  #timer = 0;
  /** What "reload" in the badge does. @type {(() => void) | undefined} */
  onReload;

  /** @param {(action: string) => void} perform what the buttons in the header do */
  build(perform) {
    const act = (label, action) => button(label, () => perform(action), {class: 'quiet', 'aria-keyshortcuts': keyFor(action)});
    const hint = (label, action) => h('button', {
      type: 'button', class: 'quiet', 'aria-keyshortcuts': keyFor(action), on: {click: () => perform(action)},
    }, label, ' ', h('kbd', {'aria-hidden': 'true'}, keyFor(action)));
    this.append(
      h('a', {class: 'skip', href: '#content', on: {click: (event) => this.#skip(event)}}, 'Skip to content'),
      h('header', null,
        h('a', {class: 'mark', href: address('threads')}, h('span', {class: 'logo', 'aria-hidden': 'true'}), 'Backscroll'),
        this.#crumbs,
        h('div', {class: 'connection'}, this.#badge, this.#reload, this.#worker),
        h('div', {class: 'header-end'},
          this.#questions,
          h('a', {class: 'quiet button', href: address('system')}, 'System'),
          h('a', {class: 'quiet button', href: address('chat')}, 'Try it'),
          hint('Search', 'search'), hint('Keys', 'help'), act('Theme', 'theme'))),
      this.#strip, this.content, this.status);
    this.#timer = setInterval(() => this.#showBadge(), 5000);
  }

  disconnectedCallback() {
    clearInterval(this.#timer);
  }

  /** Show where we are. @param {import('./route.js').Route} route @param {object | null} head */
  where(route, head) {
    const inThread = TABS.includes(route.page);
    const pageLink = (page, label) => h('a', {href: address(page), 'aria-current': route.page === page && !route.thread ? 'page' : false}, label);
    const parts = route.page === 'chat' ? [pageLink('chat', 'try it')] : route.page === 'system' ? [pageLink('system', 'system')] : [pageLink('threads', 'threads')];
    if (route.thread) parts.push(this.#threadId(route.thread));
    replace(this.#crumbs, ...parts.flatMap((part) => [h('span', {class: 'faint', 'aria-hidden': 'true'}, '/'), part]));
    this.#strip.hidden = !inThread;
    if (inThread) this.#showTabs(route, head);
    this.#worker.hidden = !(head?.run && head.worker);
    if (head?.worker) say(this.#worker, `worker ${name(head.worker, 40)}`);
  }

  #threadId(key) {
    const {id} = ownerAndId(key);
    return h('button', {
      type: 'button', class: 'thread-id mono', title: 'Copy the thread id', on: {
        click: async () => {
          await navigator.clipboard?.writeText(id);
          this.status.announce('Thread id copied');
        },
      },
    }, name(id, 120));
  }

  #showTabs(route, head) {
    replace(this.#tabs, ...TABS.map((page, index) => {
      const n = page === 'compactions' && head?.compactions;
      return h('a', {
        href: address(page, {thread: route.thread}), 'aria-current': page === route.page ? 'page' : false,
        'aria-keyshortcuts': String(index + 1),
      }, n ? `${TAB_NAMES[page]} ${n}` : TAB_NAMES[page], ' ', h('kbd', {'aria-hidden': 'true'}, String(index + 1)));
    }));
  }

  /** Show the state of the feed. @param {import('./feed.js').FeedState} state */
  feed(state) {
    this.#feed = state;
    this.#showBadge();
  }

  /** Say whether the page follows, and how many entries wait. @param {boolean} paused @param {number} waiting */
  following(paused, waiting) {
    this.#following = {paused, waiting};
    this.#showBadge();
  }

  #showBadge() {
    if (!this.#feed) return;
    const {tone, text, reload} = badge(this.#feed, this.#following, Date.now());
    this.#badge.dataset.tone = tone;
    say(this.#badge, text);
    this.#reload.hidden = !reload;
  }

  /** Say how many questions wait for somebody. @param {number} open @param {boolean} stale the list cannot be refreshed */
  questions(open, stale) {
    this.#questions.hidden = !open;
    this.#questions.setAttribute('href', address('threads', {}, {has: 'questions'}));
    say(this.#questions, `${count(open)} waiting${stale ? ' · cannot refresh' : ''}`);
  }

  #skip(event) {
    event.preventDefault();
    event.stopPropagation();
    this.content.focus();
  }
}

customElements.define('bs-frame', Frame);
