/** A row of the timeline. Reused for other rows while scrolling. */

import {bytes, clock, count, duration, moment, name} from './format.js';
import {GLYPHS} from './families.js';
import {h, say} from './h.js';

/** The columns of the timeline: class and heading. @type {[string, string][]} */
export const COLUMNS = [
  ['seq', 'Seq'], ['time', 'Time'], ['what', 'What'], ['subject', 'Subject'], ['preview', 'Preview'],
  ['flags', 'Flags'], ['duration', 'Duration'], ['size', 'Size'], ['worker', 'Worker'],
];

/** What is shown for one row of the fold. */
export class TimelineRow extends HTMLElement {
  #cells = Object.fromEntries(COLUMNS.map(([column]) => [column, h('span', {role: 'gridcell', class: `cell ${column}`})]));
  #fold = h('button', {type: 'button', class: 'fold', tabindex: '-1', data: {fold: ''}});
  #glyph = h('span', {class: 'glyph', 'aria-hidden': 'true'});
  #title = h('span');
  #inside = h('span', {class: 'faint'});

  constructor() {
    super();
    this.#cells.what.append(this.#fold, this.#glyph, this.#title, this.#inside);
    this.#cells.subject.dir = 'auto';
    this.#cells.preview.dir = 'auto';
  }

  connectedCallback() {
    if (this.firstChild) return;
    this.setAttribute('role', 'row');
    this.append(...Object.values(this.#cells));
  }

  /** @param {{row?: import('./fold.js').Row, runStart?: number, inside?: {rows: number, worst: string} | null,
   *   foldable?: boolean}} item `inside` of a folded row: what it hides */
  show({row, runStart, inside, foldable}) {
    this.toggleAttribute('data-skeleton', !row);
    const cells = this.#cells;
    if (!row) {
      for (const column of ['seq', 'time', 'subject', 'preview', 'flags', 'duration', 'size', 'worker']) say(cells[column], '');
      say(this.#title, '');
      say(this.#glyph, '');
      this.#fold.hidden = true;
      return;
    }
    Object.assign(this.dataset, {family: row.family, status: row.status, level: String(row.level)});
    say(cells.seq, row.seq[0] === row.seq[1] ? count(row.seq[0]) : `${count(row.seq[0])}–${count(row.seq[1])}`);
    const since = row.family !== 'run' && runStart !== undefined;
    say(cells.time, since ? `+${duration(row.started - runStart)}` : clock(row.started));
    cells.time.title = moment(row.started);
    say(this.#glyph, GLYPHS[row.family] ?? GLYPHS.custom);
    say(this.#title, row.title);
    say(cells.subject, name(row.subject, 80));
    say(cells.preview, name(row.preview, 160));
    say(cells.duration, this.#duration(row));
    say(cells.size, bytes(row.bytes ?? 0));
    say(cells.worker, name(row.worker, 24));
    this.#flags(row);
    this.#folding(foldable, inside);
  }

  #duration(row) {
    if (row.ended === undefined) return row.status;
    return row.ended === row.started && row.entries === 1 ? '' : duration(row.ended - row.started);
  }

  #flags(row) {
    const words = row.flags.filter((flag) => flag !== 'operator');
    if (row.status === 'error') words.unshift('error');
    if (row.status === 'cancelled' || row.status === 'waiting') words.unshift(row.status);
    if (row.flags.includes('operator')) words.push('operator');
    const cell = this.#cells.flags;
    if (cell.dataset.words === words.join(',')) return;
    cell.dataset.words = words.join(',');
    cell.replaceChildren(...words.map((word) => h('span', {class: 'flag', data: {flag: word}}, word)));
  }

  #folding(foldable, inside) {
    this.#fold.hidden = !foldable;
    say(this.#fold, inside ? '▸' : '▾');
    this.#fold.setAttribute('aria-label', inside ? 'Unfold' : 'Fold');
    say(this.#inside, inside ? `${count(inside.rows)} inside${inside.worst ? `, ${inside.worst}` : ''}` : '');
    this.#fold.setAttribute('aria-expanded', String(!inside));
  }
}

customElements.define('bs-timeline-row', TimelineRow);
