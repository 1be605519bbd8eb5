/** The budget of one attempt: a number line, one stacked bar, and the same as a table. */

import {change, count, percent} from './format.js';
import {button, h, replace} from './h.js';

const NAMES = {
  system: 'system', tools: 'tool definitions', response_format: 'response format', summary: 'summary',
  messages: 'messages', results: 'tool results', notes: 'injected notes',
};

/** What the provider says beside the estimate. @param {any} call @param {any} attempt @returns {string} */
export function providerWords(call, attempt) {
  const tokens = (attempt.usage ?? call.usage)?.input_tokens;
  if (tokens !== undefined) return `provider ${count(tokens)} · ${attempt.budget.source} ${change(tokens, attempt.sent.tokens)}`;
  return call.status === 'running' ? 'provider pending' : 'provider: not reported';
}

/** What compaction did to the size. @param {any} attempt @returns {{text: string, grew: boolean}} */
export function changeWords({history, sent, spans}) {
  const touched = spans.some((span) => !['kept', 'injected'].includes(span.fate));
  if (!touched) return {text: `nothing compacted · history ${count(history.tokens)} tok`, grew: false};
  const grew = sent.tokens > history.tokens;
  return {
    text: `before compaction ${count(history.tokens)} → ${count(sent.tokens)} (${change(history.tokens, sent.tokens)})`, grew,
  };
}

const triggersOf = (budget) => budget.triggers ?? [];

/** Where the size of the window comes from. @param {any} budget */
function windowWords({window, window_source: source}) {
  return window ? `window from ${source}` : 'no window known';
}

/** The strip. */
export class BudgetStrip extends HTMLElement {
  #table = h('div', {class: 'budget-table', hidden: true});
  #toggle = button('Show as table', () => this.#switch(), {'aria-expanded': 'false'});

  /** @param {any} call @param {any} attempt @param {{chosen: string | null, choose: (part: string | null) => void}} parts */
  show(call, attempt, {chosen, choose}) {
    const {budget, sent} = attempt;
    const {text, grew} = changeWords(attempt);
    replace(this,
      h('div', {class: 'budget-numbers'},
        h('p', null, h('strong', null, count(sent.tokens)), budget.window ? ` / ${count(budget.window)} tok · ${percent(sent.tokens, budget.window)}` : ' tok'),
        h('p', {class: 'faint'}, providerWords(call, attempt)),
        h('p', {class: 'faint'}, windowWords(budget))),
      h('div', {class: 'budget-main'}, bar(budget, sent.tokens), legend(budget, chosen, choose),
        h('div', {class: 'budget-foot'}, h('strong', {class: grew ? 'error' : null}, text), this.#toggle)),
      this.#table);
    replace(this.#table, table(budget, sent.tokens));
  }

  #switch() {
    this.#table.hidden = !this.#table.hidden;
    this.#toggle.textContent = this.#table.hidden ? 'Show as table' : 'Hide the table';
    this.#toggle.setAttribute('aria-expanded', String(!this.#table.hidden));
  }
}

function segment(part, whole) {
  const piece = h('span', {class: 'segment', data: {part: part.part}});
  piece.style.inlineSize = `${(part.tokens / whole) * 100}%`;
  return piece;
}

/** The bar is as wide as the window; what is sent above it makes it wider, and is not clamped. */
function bar(budget, sent) {
  const whole = Math.max(budget.window ?? 0, sent + (budget.reserved ?? 0));
  const reserved = h('span', {class: 'segment reserved', data: {part: 'reserved'}});
  reserved.style.inlineSize = `${((budget.reserved ?? 0) / whole) * 100}%`;
  const ticks = [...triggersOf(budget).map((trigger) => [trigger.tokens, trigger.stage]), [budget.hard, 'hard']];
  const marks = ticks.filter(([tokens]) => tokens !== undefined).map(([tokens, stage]) => {
    const tick = h('span', {class: 'tick', data: {stage}});
    tick.style.insetInlineStart = `${(tokens / whole) * 100}%`;
    return tick;
  });
  return h('div', {class: 'bar', 'aria-hidden': 'true'}, budget.parts.map((part) => segment(part, whole)), reserved, marks);
}

/** The parts as buttons: pressing one shows only what belongs to it; again, everything. */
function legend(budget, chosen, choose) {
  const items = budget.parts.filter((part) => part.tokens).map(({part, tokens, count: n}) => {
    const share = budget.window ? `, ${percent(tokens, budget.window)} of the window` : '';
    return h('button', {
      type: 'button', class: 'part', 'aria-pressed': String(part === chosen), title: `${count(tokens)} tokens${share}, ${count(n)} in all`,
      on: {click: () => choose(part === chosen ? null : part)},
    }, h('span', {class: 'swatch', data: {part}}), `${NAMES[part] ?? part} ${count(tokens)}`);
  });
  const triggers = triggersOf(budget).map((trigger) => h('span', null,
    h('span', {class: 'swatch tick-swatch', data: {stage: trigger.stage}}), `${trigger.stage} at ${count(trigger.ratio * 100)} %`));
  const reserved = budget.reserved ? [h('span', null, h('span', {class: 'swatch', data: {part: 'reserved'}}), `reserved output ${count(budget.reserved)}`)] : [];
  return h('div', {class: 'legend'}, items, reserved, triggers);
}

function table(budget, sent) {
  const row = (label, tokens, n) => h('tr', null, h('th', {scope: 'row'}, label), h('td', {class: 'number'}, count(tokens)),
    h('td', {class: 'number'}, budget.window ? percent(tokens, budget.window) : ''), h('td', {class: 'number'}, n === undefined ? '' : count(n)));
  return h('table', null, h('caption', null, `Tokens by ${budget.source}`),
    h('thead', null, h('tr', null, ['Part', 'Tokens', 'Of the window', 'Count'].map((label) => h('th', {scope: 'col'}, label)))),
    h('tbody', null,
      budget.parts.map((part) => row(NAMES[part.part] ?? part.part, part.tokens, part.count)),
      row('sent in all', sent),
      budget.window && [row('free (derived)', budget.window - sent - (budget.reserved ?? 0)), row('reserved output', budget.reserved ?? 0)],
      triggersOf(budget).map((trigger) => row(`${trigger.stage} begins at ${count(trigger.ratio * 100)} %`, trigger.tokens)),
      budget.window && [row('hard limit', budget.hard), row(windowWords(budget), budget.window)]));
}

customElements.define('bs-budget', BudgetStrip);
