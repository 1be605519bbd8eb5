/** A divider between a pane and what stands before it: moved by pointer and by keyboard. */

import {h} from './h.js';

const LEAST_REM = 16;
const STEP_REM = 1;
const KEPT = 'backscroll.pane';

/**
 * The divider of a pane at the end of a row; this browser remembers the width.
 * @param {HTMLElement} pane @returns {HTMLElement}
 */
export function splitter(pane) {
  const divider = h('div', {
    class: 'splitter', role: 'separator', tabindex: '0', 'aria-orientation': 'vertical', 'aria-label': 'Width of the details',
    'aria-valuemin': String(LEAST_REM),
  });
  const root = () => parseFloat(getComputedStyle(document.documentElement).fontSize);
  const resize = (rem) => {
    const most = (pane.parentElement.clientWidth / root()) * 0.7;
    const width = Math.max(LEAST_REM, Math.min(rem, most));
    pane.style.setProperty('--pane', `${width}rem`);
    divider.setAttribute('aria-valuenow', String(Math.round(width)));
    divider.setAttribute('aria-valuemax', String(Math.round(most)));
    localStorage.setItem(KEPT, String(width));
  };
  const now = () => pane.getBoundingClientRect().width / root();
  divider.addEventListener('keydown', (event) => {
    const by = {ArrowLeft: STEP_REM, ArrowRight: -STEP_REM}[event.key];
    if (!by) return;
    event.preventDefault();
    resize(now() + by);
  });
  divider.addEventListener('pointerdown', (event) => {
    divider.setPointerCapture(event.pointerId);
    const [from, width] = [event.clientX, now()];
    const move = (moved) => resize(width + (from - moved.clientX) / root());
    divider.addEventListener('pointermove', move);
    divider.addEventListener('lostpointercapture', () => divider.removeEventListener('pointermove', move), {once: true});
  });
  const kept = Number(localStorage.getItem(KEPT));
  if (kept) pane.style.setProperty('--pane', `${kept}rem`);
  divider.setAttribute('aria-valuenow', String(Math.round(kept || 26)));
  return divider;
}
