/** The status line at the bottom, and the one polite region that speaks. */

import {h, replace} from './h.js';
import {shown} from './keys.js';

const PAUSE_MS = 5000;

/** Counts on the left, the keys that work here on the right. */
export class StatusLine extends HTMLElement {
  #counts = h('div', {class: 'counts'});
  #keys = h('div', {class: 'key-hints', 'aria-hidden': 'true'});
  #region = h('div', {class: 'unseen', role: 'status', 'aria-live': 'polite'});
  #spoken = 0;
  #waiting = '';
  #timer = 0;

  connectedCallback() {
    if (!this.firstChild) this.append(this.#counts, this.#keys, this.#region);
  }

  disconnectedCallback() {
    clearTimeout(this.#timer);
  }

  /** @param {...any} parts what the page counts */
  counts(...parts) {
    replace(this.#counts, ...parts.map((part) => h('span', null, part)));
  }

  /** @param {[string, string][]} keys key and what it does */
  keys(keys) {
    replace(this.#keys, ...keys.map(([key, does]) => h('span', null, h('kbd', null, shown(key)), ` ${does}`)));
  }

  /** Say something, at most once in five seconds; of what comes between, the last. @param {string} text */
  announce(text) {
    this.#waiting = text;
    const wait = this.#spoken + PAUSE_MS - performance.now();
    clearTimeout(this.#timer);
    if (wait <= 0 || !this.#spoken) this.#speak();
    else this.#timer = setTimeout(() => this.#speak(), wait);
  }

  #speak() {
    this.#spoken = performance.now();
    this.#region.textContent = this.#waiting;
  }
}

customElements.define('bs-status', StatusLine);
