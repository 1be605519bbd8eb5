/** The rows of Context: a stored message or a folded range on the left, a sent message on the right. */

import {FATES} from './fates.js';
import {contentText, count, name, plural, signed} from './format.js';
import {h, say} from './h.js';
import {tokenChange} from './spans.js';

/** A fate as glyph and word, with the token difference where the record has it. */
export function fateBadge(fate, difference) {
  const badge = h('span', {class: 'fate'});
  showFate(badge, fate, difference);
  return badge;
}

function showFate(badge, fate, difference) {
  const {glyph, word} = FATES[fate] ?? {glyph: '', word: fate};
  badge.dataset.fate = fate;
  say(badge, [glyph, word, difference === undefined ? '' : signed(difference)].filter(Boolean).join(' '));
}

/** What both sides share. */
class ContextRow extends HTMLElement {
  place = h('span', {class: 'place mono'});
  role = h('span', {class: 'role'});
  preview = h('span', {class: 'preview', dir: 'auto'});
  tokens = h('span', {class: 'tokens mono'});
  badge = h('span', {class: 'fate'});
  marks = h('span', {class: 'marks'});

  connectedCallback() {
    if (this.firstChild) return;
    this.setAttribute('role', 'article');
    this.append(this.place, this.role, this.preview, this.marks, this.tokens, this.badge);
  }

  /** The role and the words of it. @param {string | undefined} role @param {string} [word] */
  wear(role, word = role) {
    this.dataset.role = role ?? '';
    say(this.role, name(word, 24));
  }

  /** @param {string[]} words */
  mark(words) {
    const text = words.join(' · ');
    say(this.marks, text);
    this.marks.hidden = !text;
  }
}

/** A row of the full history. */
export class HistoryRow extends ContextRow {
  /** @param {{row: import('./spans.js').LeftRow, head?: any, hits: number}} item `hits` of the search */
  show({row, head, hits}) {
    this.toggleAttribute('data-hit', hits > 0);
    this.toggleAttribute('data-cut', Boolean(row.cut));
    this.dataset.kind = row.kind;
    this.dataset.fate = row.fate;
    if (row.kind === 'message') this.#message(row, head);
    else this.#fold(row, hits);
    const folded = row.kind === 'message' ? '' : row.open ? ', unfolded' : ', folded';
    this.setAttribute('aria-label', `${this.place.textContent} ${this.role.textContent}, ${this.badge.textContent}${folded}`);
  }

  #message(row, head) {
    say(this.place, count(row.position));
    this.wear(head?.role ?? row.span?.role);
    say(this.preview, head ? name(lineOf(head.name, head.preview), 320) : '');
    say(this.tokens, head?.tokens === undefined ? '' : count(head.tokens));
    this.mark([...(head?.marks ?? []).filter((mark) => mark !== 'superseded'), ...(row.span?.repaired ? ['repaired'] : [])]);
    if (row.fate === 'superseded') showFate(this.badge, 'superseded');
    else showFate(this.badge, row.fate, row.span && tokenChange(row.span));
  }

  #fold(row, hits) {
    const range = row.kind === 'range';
    const n = range ? row.to - row.position + 1 : row.count;
    say(this.place, range ? `${count(row.position)}–${count(row.to)}` : '');
    this.wear(range ? 'mixed' : '', range ? 'mixed' : 'superseded');
    say(this.preview, range ? `${row.open ? '▾' : '▸'} ${plural(n, 'message')} · ${name(row.span.reason ?? FATES[row.fate].means, 200)}` : `${row.open ? '▾' : '▸'} ${plural(n, 'message')} that no later call sees`);
    say(this.tokens, range && row.span.tokens_before !== undefined ? count(row.span.tokens_before) : '');
    this.mark([...(hits ? [plural(hits, 'hit')] : []), ...(row.span?.repaired ? ['repaired'] : [])]);
    showFate(this.badge, row.fate);
  }
}

/** A row of what was sent. */
export class SentRow extends ContextRow {
  /** @param {{row: import('./spans.js').RightRow, head?: any, message?: any, summary?: string, hits: number}} item */
  show({row, head, message, summary, hits}) {
    this.toggleAttribute('data-hit', hits > 0);
    this.dataset.fate = row.fate;
    const isSummary = row.range !== undefined;
    say(this.place, row.position === undefined ? `s${count(row.sent)}` : count(row.position));
    const role = head?.role ?? message?.role ?? row.span.role;
    if (isSummary) this.wear('summary');
    else this.wear(role, row.fate === 'injected' && role === 'user' ? 'note' : role);
    const text = row.fate === 'kept' && head ? lineOf(head.name, head.preview) : preview(message);
    say(this.preview, isSummary ? `Σ of ${count(row.range[0])}–${count(row.range[1])} · ${summary ?? ''}` : name(text, 320));
    const tokens = row.fate === 'kept' ? head?.tokens : tokensAfter(row.span);
    say(this.tokens, tokens === undefined ? '' : count(tokens));
    this.mark(row.span.repaired ? ['repaired'] : []);
    showFate(this.badge, row.fate, isSummary ? undefined : tokenChange(row.span));
    this.setAttribute('aria-label', `${this.place.textContent} ${this.role.textContent}, ${this.badge.textContent}`);
  }
}

function tokensAfter(span) {
  const one = !span.sent || span.sent[0] === span.sent[1];
  return one ? span.tokens_after : undefined;
}

function preview(message) {
  if (!message) return '';
  const calls = (message.tool_calls ?? []).map((call) => `${call.name}(${call.raw ?? JSON.stringify(call.args ?? {})})`);
  const text = contentText(message.content).slice(0, 400).replace(/\s+/g, ' ');
  return lineOf(message.name, [text, ...calls].filter(Boolean).join(' '));
}

/** A tool's result begins with the name of the tool. */
function lineOf(tool, text) {
  return tool ? `${tool} → ${text ?? ''}` : text;
}

customElements.define('bs-history-row', HistoryRow);
customElements.define('bs-sent-row', SentRow);
