/** A list of any length with rows of one height: only the rows in sight are in the document. */

import {h, perFrame} from './h.js';
import {anchorOf, atEnd, maxScroll, rowsInSight, scrollTo} from './window.js';

/**
 * @typedef {{count: number, key: (index: number) => string, at: (index: number) => any,
 *   indexOf: (key: string) => number}} Source
 * @typedef {{label: string, role?: 'grid' | 'feed', header?: HTMLElement, source: Source,
 *   createRow: () => HTMLElement & {show: (item: any, index: number) => void},
 *   onPick?: (key: string, how: 'move' | 'open') => void, onWindow?: (first: number, end: number) => void,
 *   onScroll?: (list: VirtualList) => void, onFollow?: (following: boolean) => void,
 *   staysAtTop?: boolean}} Options  `staysAtTop`: a list at its top shows what comes in above
 */

/** The list element. Rows are keyed and reused; after each change the top row stays where it was. */
export class VirtualList extends HTMLElement {
  /** Whether the list stays at its end. */
  following = false;
  #options;
  #body = h('div', {class: 'list-body', role: 'presentation'}); #probe = h('div', {class: 'list-probe', 'aria-hidden': 'true'});
  #shown = new Map();            // key -> element
  #state = new WeakMap();        // element -> {index, version}
  #pool = [];
  #version = 0;
  #stale = new Set();            // keys of rows to show again
  #rowHeight = 28;
  #headerHeight = 0;
  #measured = false;
  #anchor = null;                // {key, offset} of the top row
  #active = null;
  #selected = null;
  #abort = new AbortController();
  #resize = new ResizeObserver(() => this.#measure());
  #draw = perFrame(() => this.#render());
  #expected = 0;

  /** @param {Options} options */
  configure(options) {
    this.#options = options;
    this.setAttribute('role', options.role ?? 'grid');
    this.setAttribute('aria-label', options.label);
    if (options.header) this.append(options.header);
    this.append(this.#body, this.#probe);
    const {signal} = this.#abort;
    this.addEventListener('scroll', () => this.#scrolled(), {passive: true, signal});
    this.addEventListener('click', (event) => this.#clicked(event), {signal});
    this.addEventListener('focusin', (event) => this.#focused(event), {signal});
    this.#resize.observe(this);
    this.#resize.observe(this.#probe);
    return this;
  }

  disconnectedCallback() {
    this.#abort.abort();
    this.#resize.disconnect();
  }

  /** How many rows there are. */
  get count() { return this.#options.source.count; }
  /** The height of a row in pixels. */
  get rowHeight() { return this.#rowHeight; }
  /** Height of what stands above the rows and stays. */
  get headerHeight() { return this.#headerHeight; }
  /** The key of the row that the keyboard is on. */
  get active() { return this.#active; }

  #geometry() {
    return {
      scrollTop: this.scrollTop, viewport: Math.max(0, this.clientHeight - this.#headerHeight),
      rowHeight: this.#rowHeight, count: this.count,
    };
  }

  /** Where the rows stand now. */
  get geometry() { return this.#geometry(); }

  /**
   * Items changed: draw again in the next frame, with the top row where it was.
   * @param {Iterable<string>} [keys] the rows that changed; without them all are shown again
   */
  refresh(keys) {
    if (keys) for (const key of keys) this.#stale.add(key);
    else this.#version += 1;
    this.#draw();
  }

  /** Mark a row as the selected one. @param {string | null} key */
  select(key) {
    if (this.#selected === key) return;
    this.#selected = key;
    if (key !== null) this.#active = key;
    this.refresh();
  }

  /** Bring a row into sight. @param {string} key */
  reveal(key) {
    const index = this.#options.source.indexOf(key);
    if (index < 0) return;
    if (!this.#measured) this.#measure();
    this.#size();
    this.#moveTo(scrollTo(this.#geometry(), index));
  }

  /** Go to the end and stay there, or stop staying. @param {boolean} on */
  follow(on) {
    if (this.following === on) return;
    this.following = on;
    this.#options.onFollow?.(on);
    if (on) this.refresh();
  }

  /** Scroll to a position without taking it for the reader's wish. @param {number} top */
  scrollQuietly(top) {
    this.#moveTo(Math.max(0, Math.min(top, maxScroll(this.#geometry()))));
  }

  /** Carry out a key's action. @param {string} action @returns {boolean} whether it was one of ours */
  act(action) {
    const last = this.count - 1;
    if (last < 0) return false;
    const page = Math.max(1, Math.floor(this.#geometry().viewport / this.#rowHeight) - 1);
    const steps = {down: 1, up: -1, 'page-down': page, 'page-up': -page, first: -Infinity, last: Infinity};
    if (action === 'open') {
      if (this.#active === null) return false;
      this.#options.onPick?.(this.#active, 'open');
      return true;
    }
    if (!(action in steps)) return false;
    const at = this.#active === null ? -1 : this.#options.source.indexOf(this.#active);
    const from = at < 0 ? anchorOf(this.#geometry()).index - (steps[action] > 0 ? 1 : 0) : at;
    this.moveTo(Math.max(0, Math.min(last, from + steps[action])));
    return true;
  }

  /** Put the keyboard on a row. @param {number} index */
  moveTo(index) {
    const key = this.#options.source.key(index);
    this.#active = key;
    this.reveal(key);
    this.#version += 1;
    this.#render();
    this.#shown.get(key)?.focus({preventScroll: true});
    this.#options.onPick?.(key, 'move');
  }

  /** The top row, to come back to it. @returns {{key: string, offset: number} | null} */
  get place() { return this.following ? null : this.#anchor; }

  /** Go back to a top row; one that is not there is no matter. */
  set place(place) {
    if (!place || this.#options.source.indexOf(place.key) < 0) return;
    if (!this.#measured) this.#measure();
    this.#size();
    this.#moveTo(this.#options.source.indexOf(place.key) * this.#rowHeight + place.offset);
  }

  /** Put the keyboard into the list, on the row it was on before. */
  enter() {
    const index = this.#active === null ? -1 : this.#options.source.indexOf(this.#active);
    if (this.count) this.moveTo(index < 0 ? anchorOf(this.#geometry()).index : index);
  }

  #measure() {
    const height = this.#probe.getBoundingClientRect().height;
    if (!height) return;
    this.#measured = true;
    const anchor = this.#anchor;
    const offsetRows = anchor && anchor.offset / this.#rowHeight;
    this.#rowHeight = height;
    this.#headerHeight = this.#options.header?.offsetHeight ?? 0;
    this.style.scrollPaddingBlockStart = `${this.#headerHeight}px`;
    if (anchor) anchor.offset = offsetRows * height;
    this.refresh();
  }

  #size() {
    const height = `${this.count * this.#rowHeight}px`;
    if (this.#body.style.height !== height) this.#body.style.height = height;
  }

  #moveTo(top) {
    if (Math.abs(this.scrollTop - top) < 0.5) return;
    this.scrollTop = top;
    this.#expected = this.scrollTop;
    this.#keepAnchor();
    this.#draw();
  }

  #keepAnchor() {
    if (!this.count) return;
    const {index, offset} = anchorOf(this.#geometry());
    this.#anchor = {key: this.#options.source.key(index), offset};
  }

  #scrolled() {
    const ours = Math.abs(this.scrollTop - this.#expected) < 1;
    if (!ours) {
      this.#expected = this.scrollTop;
      this.#keepAnchor();
      if (this.#options.onFollow) this.follow(atEnd(this.#geometry()));
    }
    this.#draw();
  }

  #clicked(event) {
    const row = event.target.closest('[data-key]');
    if (!row || event.target.closest('a, button, input')) return;
    this.#active = row.dataset.key;
    this.#options.onPick?.(row.dataset.key, 'open');
  }

  #focused(event) {
    const row = event.target.closest('[data-key]');
    if (row && row.dataset.key !== this.#active) {
      this.#active = row.dataset.key;
      this.refresh();
    }
  }

  /** Everything that is written to the document, once per frame: first size and position, then rows. */
  #render() {
    const {source} = this.#options;
    if (!this.isConnected) return;
    if (!this.#measured) this.#measure();
    this.#size();
    this.#restore(source);
    const {first, end} = rowsInSight(this.#geometry());
    const wanted = this.#wanted(source, first, end);
    this.#release(wanted);
    this.#place(source, wanted);
    this.#stale.clear();
    const name = this.getAttribute('role') === 'grid' ? 'aria-rowcount' : null;
    if (name) this.setAttribute(name, String(source.count + (this.#options.header ? 1 : 0)));
    this.tabIndex = this.#active !== null && this.#shown.has(this.#active) ? -1 : 0;
    this.#options.onWindow?.(first, end);
    this.#options.onScroll?.(this);
  }

  #restore(source) {
    if (this.following) {
      this.#moveTo(maxScroll(this.#geometry()));
    } else if (this.#anchor && !(this.#options.staysAtTop && this.scrollTop < 1)) {
      const index = source.indexOf(this.#anchor.key);
      if (index >= 0) this.#moveTo(Math.min(index * this.#rowHeight + this.#anchor.offset, maxScroll(this.#geometry())));
    }
    if (!this.#anchor) this.#keepAnchor();
  }

  /** Key -> index of the rows to have; the one with the focus stays, however far away. */
  #wanted(source, first, end) {
    const wanted = new Map();
    const focused = document.activeElement?.closest?.('[data-key]');
    const kept = focused && this.contains(focused) ? source.indexOf(focused.dataset.key) : -1;
    if (kept >= 0 && kept < first) wanted.set(source.key(kept), kept);
    for (let index = first; index < end; index += 1) wanted.set(source.key(index), index);
    if (kept >= end) wanted.set(source.key(kept), kept);
    return wanted;
  }

  #release(wanted) {
    for (const [key, row] of this.#shown) {
      if (wanted.has(key)) continue;
      this.#shown.delete(key);
      row.remove();
      if (this.#pool.length < 64) this.#pool.push(row);
    }
  }

  #place(source, wanted) {
    const focused = document.activeElement;
    let cursor = this.#body.firstChild;
    for (const [key, index] of wanted) {
      let row = this.#shown.get(key);
      if (!row) {
        row = this.#pool.pop() ?? this.#options.createRow();
        row.dataset.key = key;
        this.#state.delete(row);
        this.#shown.set(key, row);
      }
      if (row === cursor) cursor = cursor.nextSibling;
      else this.#body.insertBefore(row, cursor);
      this.#fill(row, source, key, index);
    }
    if (focused !== document.activeElement && this.#body.contains(focused)) focused.focus({preventScroll: true});
  }

  #fill(row, source, key, index) {
    const state = this.#state.get(row);
    if (state && state.index === index && state.version === this.#version && !this.#stale.has(key)) return;
    this.#state.set(row, {index, version: this.#version});
    row.style.transform = `translateY(${index * this.#rowHeight}px)`;
    row.tabIndex = key === this.#active ? 0 : -1;
    if (this.getAttribute('role') === 'grid') {
      row.setAttribute('aria-rowindex', String(index + (this.#options.header ? 2 : 1)));
      row.setAttribute('aria-selected', String(key === this.#selected));
    } else {
      row.setAttribute('aria-posinset', String(index + 1));
      row.setAttribute('aria-setsize', String(source.count));
      if (key === this.#selected) row.setAttribute('aria-current', 'true');
      else row.removeAttribute('aria-current');
    }
    row.show(source.at(index), index);
  }
}

customElements.define('bs-list', VirtualList);
