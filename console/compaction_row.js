/** A row of the list of compaction decisions. */

import {change, clock, count, duration, moment, name, signed} from './format.js';
import {h, say} from './h.js';

/** The columns: class and heading. @type {[string, string][]} */
export const COLUMNS = [
  ['number', '#'], ['time', 'Time'], ['call', 'Call'], ['trigger', 'Trigger'], ['stages', 'Stages'], ['messages', 'Messages'],
  ['tokens', 'Tokens'], ['covers', 'Covers'], ['summary', 'Summary'], ['took', 'Took'], ['result', 'Result'],
];

/** What stands for the older messages, never in words that would suit something else. @param {any} row */
export function summaryLabel(row) {
  const {summary} = row;
  const dropped = row.stages?.some((stage) => (stage.stage ?? stage) === 'drop');
  if (!summary) return dropped ? 'dropped' : '';
  return `summary (${summary.kind ?? 'model'}) · ${summary.source}`;
}

/** The change in size, growth with its sign. @param {any} row */
export function tokensLabel({before, after}) {
  if (!before || !after) return '';
  return `${count(before.tokens)} → ${count(after.tokens)} (${change(before.tokens, after.tokens) || signed(0)})`;
}

/** One decision. */
export class CompactionRow extends HTMLElement {
  #cells = Object.fromEntries(COLUMNS.map(([column]) => [column, h('span', {role: 'gridcell', class: `cell ${column}`})]));

  connectedCallback() {
    if (this.firstChild) return;
    this.setAttribute('role', 'row');
    this.append(...Object.values(this.#cells));
  }

  /** @param {any} row */
  show(row) {
    const cells = this.#cells;
    this.dataset.result = row.result;
    say(cells.number, count(row.compaction));
    say(cells.time, row.time ? clock(row.time) : '');
    cells.time.title = row.time ? moment(row.time) : '';
    say(cells.call, row.call === undefined ? '' : `${count(row.call)}${row.attempt > 1 ? ` · attempt ${row.attempt}` : ''}`);
    say(cells.trigger, name(row.action && row.action !== 'compact' ? `${row.trigger} · ${row.action}` : row.trigger, 30) + (row.ratio ? ` ${count(row.ratio * 100)} %` : ''));
    say(cells.stages, (row.stages ?? []).map((stage) => name(stage.stage ?? stage, 20)).join(' · '));
    say(cells.messages, row.before && row.after ? `${count(row.before.messages)} → ${count(row.after.messages)}` : '');
    say(cells.tokens, tokensLabel(row));
    cells.tokens.toggleAttribute('data-grew', (row.after?.tokens ?? 0) > (row.before?.tokens ?? 0));
    say(cells.covers, row.covers ? `${count(row.covers[0])}–${count(row.covers[1])}` : '');
    say(cells.summary, name(summaryLabel(row), 60));
    say(cells.took, row.ms === undefined ? '' : duration(row.ms));
    say(cells.result, name(row.result === 'done' ? 'done' : `${row.result}: ${row.reason ?? 'no reason given'}`, 80));
  }
}

customElements.define('bs-compaction-row', CompactionRow);
