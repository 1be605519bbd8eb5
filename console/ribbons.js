/** Ribbons between the two lists of Context: one SVG, as many paths as there are rows in sight. */

import {svg} from './h.js';


/**
 * The pairs that touch the window of either list.
 * @param {[number, number][]} pairs @param {{first: number, end: number}} left @param {{first: number, end: number}} right
 * @returns {[number, number][]}
 */
export function pairsInSight(pairs, left, right) {
  const inside = (index, range) => index >= range.first && index < range.end;
  const result = [];
  const ends = new Set();
  for (const pair of pairs) {
    if (inside(pair[0], left)) result.push(pair);
    else if (inside(pair[1], right) && !ends.has(pair[1])) result.push(pair);
    else continue;
    ends.add(pair[1]);
  }
  return result;
}

/**
 * The outline of a ribbon. @param {number} from top on the left @param {number} to top on the right
 * @param {number} height of a row @param {number} width of the gutter @returns {string}
 */
export function ribbonPath(from, to, height, width) {
  const middle = width / 2;
  return `M0 ${from}C${middle} ${from} ${middle} ${to} ${width} ${to}V${to + height}`
    + `C${middle} ${to + height} ${middle} ${from + height} 0 ${from + height}Z`;
}

/** The gutter. */
export class Ribbons extends HTMLElement {
  #svg = svg('svg', {'aria-hidden': 'true', focusable: 'false'});
  #paths = [];
  #width = 72;
  #resize = new ResizeObserver(() => { this.#width = this.clientWidth; });

  connectedCallback() {
    if (!this.firstChild) this.append(this.#svg);
    this.#resize.observe(this);
  }

  disconnectedCallback() {
    this.#resize.disconnect();
  }

  /**
   * @param {import('./spans.js').Pairing} pairing @param {import('./list.js').VirtualList} left
   * @param {import('./list.js').VirtualList} right
   */
  draw(pairing, left, right) {
    const [a, b] = [windowOf(left), windowOf(right)];
    const shapes = pairsInSight(pairing.pairs, a, b).map(([i, j]) => ({
      fate: pairing.left[i].fate, kind: pairing.left[i].kind, d: ribbonPath(a.top(i), b.top(j), a.height, this.#width), left: i, right: j,
    }));
    for (let i = a.first; i < a.end; i += 1) {
      if (pairing.left[i].fate === 'dropped' && !pairing.left[i].open) shapes.push({fate: 'dropped', d: dropPath(a.top(i) + a.height / 2), left: i});
    }
    for (let j = b.first; j < b.end; j += 1) {
      if (pairing.right[j].fate === 'injected') shapes.push({fate: 'injected', d: stubPath(b.top(j) + b.height / 2, this.#width), right: j});
    }
    this.#show(shapes);
  }

  #show(shapes) {
    while (this.#paths.length < shapes.length) {
      const path = svg('path');
      this.#paths.push(path);
      this.#svg.append(path);
    }
    this.#paths.forEach((path, index) => {
      const shape = shapes[index];
      if (!shape) {
        path.removeAttribute('d');
        path.setAttribute('class', 'ribbon-spare');
        return;
      }
      path.setAttribute('d', shape.d);
      path.setAttribute('class', 'ribbon');
      path.dataset.fate = shape.fate;
      path.dataset.kind = shape.kind ?? '';
      path.dataset.left = shape.left ?? '';
      path.dataset.right = shape.right ?? '';
    });
  }
}

function windowOf(list) {
  const {scrollTop, viewport, rowHeight, count} = list.geometry;
  return {
    first: Math.max(0, Math.floor(scrollTop / rowHeight)), end: Math.min(count, Math.ceil((scrollTop + viewport) / rowHeight)),
    height: rowHeight, top: (index) => index * rowHeight - scrollTop,
  };
}

function dropPath(y) {
  return `M0 ${y}H22M18 ${y - 4}L26 ${y + 4}M18 ${y + 4}L26 ${y - 4}`;
}

function stubPath(y, width) {
  return `M${width} ${y}h-24M${width - 22} ${y - 4}v8M${width - 26} ${y}h8`;
}

customElements.define('bs-ribbons', Ribbons);
