/** What a conversation consists of on screen: one element per item, updated in place. */

import {body, bytes, clip, count, name, plural} from './format.js';
import {button, h, replace, say} from './h.js';
import {jsonTree} from './json_tree.js';
import {QuestionCard} from './question_card.js';

/** @typedef {import('./conversation.js').Item} Item */
/**
 * @typedef {{timeline: (item: Item) => string, context: (item: Item) => string | null,
 *   question: (call: import('./conversation.js').Call) => import('./question_card.js').Asked | null}} Links
 */

const RESULT = 2000;

/** A text that grows: what is new is appended to one text node. */
class GrowingText {
  element = h('div', {class: 'text', dir: 'auto'});
  #node = document.createTextNode('');
  #shown = '';

  constructor() {
    this.element.append(this.#node);
  }

  show(text) {
    const next = body(text);
    if (next.startsWith(this.#shown)) this.#node.appendData(next.slice(this.#shown.length));
    else this.#node.data = next;
    this.#shown = next;
  }
}

/** One item of the conversation. */
export class ChatItem extends HTMLElement {
  #text = new GrowingText();
  #calls = new Map();
  #foot = h('div', {class: 'chat-foot'});
  #cards = h('div', {class: 'cards'});
  #built = false;

  /** @param {Item} item @param {Links} links */
  show(item, links) {
    this.dataset.kind = item.kind;
    SHOW[item.kind]?.(this, item, links);
  }

  /** Build the parts once. @param {() => Node[]} make */
  once(make) {
    if (this.#built) return;
    this.#built = true;
    this.append(...make());
  }

  /** The parts that are shared. */
  get parts() { return {text: this.#text, foot: this.#foot, cards: this.#cards, calls: this.#calls}; }
}

customElements.define('bs-chat-item', ChatItem);

const SHOW = {
  user(element, item) {
    const {text, foot} = element.parts;
    element.once(() => [h('h2', {class: 'role'}, item.type && item.type !== 'user' ? name(item.type, 20) : 'You'), text.element, foot]);
    text.show(item.text);
    say(foot, item.status ?? '');
  },

  assistant(element, item, links) {
    const {text, foot, cards, calls} = element.parts;
    element.once(() => [h('h2', {class: 'role'}, 'Assistant'), text.element, cards, foot]);
    text.show(item.text);
    text.element.hidden = !item.text;
    for (const call of item.calls) {
      if (!calls.has(call.id)) {
        calls.set(call.id, new CallCard());
        cards.append(calls.get(call.id).element);
      }
      calls.get(call.id).show(call, links.question(call));
    }
    const context = links.context(item);
    replace(foot, item.incomplete && h('span', {class: 'flag', data: {flag: 'incomplete'}}, 'incomplete'),
      !item.open && h('a', {href: links.timeline(item)}, 'Timeline'), !item.open && context && h('a', {href: context}, 'Context'));
  },

  reasoning(element, item) {
    const {text} = element.parts;
    element.once(() => [h('details', null, h('summary', null), text.element)]);
    say(element.querySelector('summary'), `reasoning · ${plural(item.text.length, 'character')}${item.open ? ' …' : ''}`);
    text.show(item.text);
  },

  activity: showLine,
  line: showLine,

  end(element, item) {
    element.dataset.status = item.status;
    const words = item.status === 'error' ? `error · ${name(item.code ?? 'unknown', 60)}` : item.status + (item.code ? ` · ${name(item.code, 60)}` : '');
    replace(element, h('span', {class: 'end-word'}, words), item.text && h('span', {dir: 'auto'}, ` ${name(item.text, 500)}`));
  },
};

function showLine(element, item) {
  const status = item.value?.status ? ` · ${name(String(item.value.status), 20)}` : '';
  const size = bytes(JSON.stringify(item.value ?? null).length);
  element.once(() => [h('details', null, h('summary', null))]);
  const box = element.firstChild;
  say(box.querySelector('summary'), `${item.kind === 'activity' ? 'activity ' : ''}${name(item.type, 60)}${status} · ${size}`);
  box.querySelector('.json')?.remove();
  box.append(jsonTree(item.value, 'Content'));
}

/** A tool call: name, state, arguments, result. */
class CallCard {
  #name = h('code', {class: 'tool-name'});
  #state = h('span', {class: 'tool-state'});
  #args = h('div', {class: 'tool-args'});
  #result = h('div', {class: 'tool-result'});
  #argsText = new GrowingText();
  #tree = false;
  #shownResult;
  #question = null;
  element = h('section', {class: 'tool-card'}, h('div', {class: 'tool-head'}, this.#name, this.#state), this.#args, this.#result);

  show(call, asked) {
    const state = call.state === 'waiting' && asked?.decision ? 'decided' : call.state;
    this.element.setAttribute('aria-label', `Tool call ${name(call.name, 80)}, ${state}`);
    this.element.dataset.state = state;
    say(this.#name, name(call.name, 80));
    say(this.#state, state);
    this.#showArgs(call);
    if (call.result !== undefined && call.result !== this.#shownResult) this.#showResult(call.result);
    if (asked && !this.#question) {
      this.#question = new QuestionCard();
      this.#result.before(this.#question.element);
    }
    this.#question?.show(call.name, asked);
  }

  #showArgs({args, state}) {
    const value = state === 'arguments' ? undefined : parse(args);
    if (value !== undefined && !this.#tree) {
      this.#tree = true;
      replace(this.#args, jsonTree(value, 'Arguments'));
    } else if (!this.#tree) {
      if (!this.#args.firstChild) this.#args.append(this.#argsText.element);
      this.#argsText.show(args);
    }
  }

  #showResult(result) {
    this.#shownResult = result;
    const {head, left, tail} = clip(result, RESULT);
    const text = h('div', {class: 'text mono', dir: 'auto'}, body(head));
    if (left) text.append(button(`show ${count(left)} more characters`, () => { text.textContent = body(result); }), body(tail));
    replace(this.#result, h('p', {class: 'faint'}, `result · ${plural(result.length, 'character')}`), text);
  }
}

function parse(text) {
  try {
    const value = JSON.parse(text);
    return value !== null && typeof value === 'object' ? value : undefined;
  } catch {
    return undefined;
  }
}
