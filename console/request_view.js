/** Two ways to read what was sent: as one document, and as the provider's request body. */

import {count, messageText, plural, body} from './format.js';
import {h, replace} from './h.js';
import {jsonTree} from './json_tree.js';
import {failed, loading} from './states.js';

const CHUNK = 100;

/**
 * How the rebuilt request compares with the record: by its bytes, and where these cannot be compared
 * (a model without a wire, an encoder that is not here) by its messages.
 * @param {{matches?: boolean, sent_matches?: boolean}} request
 */
export function matchWords(request) {
  if (request.matches === true) return {text: 'derived · matches the recorded hash', wrong: false};
  if (request.matches === false) return {text: 'derived · differs from the recorded hash', wrong: true};
  if (request.sent_matches === false) {
    return {text: 'derived · messages differ from the recorded hash', wrong: true};
  }
  const messages = request.sent_matches ? ' · messages match theirs' : '';
  return {text: `derived · hash not comparable${messages}`, wrong: false};
}

/** The element for both. */
export class RequestView extends HTMLElement {
  #showing = 0;

  connectedCallback() {
    this.tabIndex = 0;
    this.setAttribute('role', 'region');
    this.setAttribute('aria-label', 'What was sent');
  }

  /** The messages as one document, in chunks that the browser lays out when they are seen. */
  async document(model) {
    const mine = this.#begin();
    const total = model.attempt.sent.messages;
    replace(this, loading('the request'));
    try {
      for (let from = 1; from <= total; from += CHUNK) {
        const to = Math.min(total, from + CHUNK - 1);
        await model.readSent(from, to);
        if (mine !== this.#showing) return;
        if (from === 1) replace(this, h('p', {class: 'faint'}, `${plural(total, 'message')}, in the order sent`));
        this.append(h('div', {class: 'chunk'}, numbers(from, to).map((at) => messageBlock(at, model.sent(at)))));
      }
    } catch (error) {
      this.#failed(error, mine, () => this.document(model));
    }
  }

  /** The provider's body, rebuilt from the record. */
  async wire(model) {
    const mine = this.#begin();
    replace(this, loading('the request'));
    try {
      const request = await model.readRequest();
      if (mine !== this.#showing) return;
      const {text, wrong} = matchWords(request);
      const value = typeof request.body === 'string' ? JSON.parse(request.body) : request.body;
      replace(this, h('p', {class: wrong ? 'error' : 'faint'}, `${request.provider} · ${text}`, request.sha256 && h('code', null, ` ${request.sha256.slice(0, 12)}`)),
        jsonTree(value, 'Request body'));
    } catch (error) {
      this.#failed(error, mine, () => this.wire(model));
    }
  }

  #begin() {
    this.#showing += 1;
    return this.#showing;
  }

  #failed(error, mine, retry) {
    if (error.name !== 'AbortError' && mine === this.#showing) replace(this, failed('The request', error, retry));
  }
}

function numbers(from, to) {
  return Array.from({length: to - from + 1}, (_, index) => from + index);
}

function messageBlock(at, message) {
  if (!message) return h('article', {class: 'sent-message'}, h('p', {class: 'warning'}, `Message ${count(at)} is missing.`));
  return h('article', {class: 'sent-message', data: {role: message.role}},
    h('h3', null, `${count(at)} `, h('span', {class: 'role'}, message.role)),
    h('div', {class: 'text', dir: 'auto'}, body(messageText(message))));
}

customElements.define('bs-request', RequestView);
