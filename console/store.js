/** State of a page: one plain object, changed in one place, rendered from it once per frame. */

import {perFrame} from './h.js';

/**
 * @template T
 * @param {T} initial @param {(state: T, changed: Set<string>) => void} render
 * @returns {{state: T, set: (patch: Partial<T>) => void, touch: (...keys: string[]) => void, stop: () => void}}
 */
export function createStore(initial, render) {
  let stopped = false;
  let changed = new Set();
  const flush = perFrame(() => {
    if (stopped) return;
    const now = changed;
    changed = new Set();
    render(initial, now);
  });
  const touch = (...keys) => {
    for (const key of keys) changed.add(key);
    flush();
  };
  return {
    state: initial,
    set(patch) {
      for (const [key, value] of Object.entries(patch)) {
        if (initial[key] === value) continue;
        initial[key] = value;
        touch(key);
      }
    },
    touch,
    stop() { stopped = true; },
  };
}
