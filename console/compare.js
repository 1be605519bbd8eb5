/** The detail pane of Context: one message, stored beside sent, with the reason in one sentence. */

import {get, rawMessage, threadPath} from './api.js';
import {pinButton} from './compaction_actions.js';
import {fateBadge} from './context_row.js';
import {difference, differenceView} from './differ.js';
import {FATES, reasonOf} from './fates.js';
import {body, bytes, count, messageText, name, plural, signed} from './format.js';
import {button, h, replace} from './h.js';
import {jsonTree, longText} from './json_tree.js';
import {address} from './route.js';
import {splitter} from './splitter.js';
import {failed, loading} from './states.js';

/** The pane. */
export class ComparePane extends HTMLElement {
  #title = h('h2');
  #content = h('div', {class: 'detail-content', tabindex: '0', role: 'region', 'aria-label': 'Stored and sent'});
  #showing = 0;
  #value = null;
  #actions;
  #pin = h('span', {class: 'pin'});

  /** @param {{close: () => void, copy: (text: string, said: string) => void, say: (said: string) => void}} actions */
  build(actions) {
    this.#actions = actions;
    this.className = 'detail';
    this.setAttribute('role', 'complementary');
    this.setAttribute('aria-label', 'Details');
    this.append(
      h('div', {class: 'detail-head'}, this.#title, this.#pin,
        button('Copy JSON', () => this.copyJson()), button('Copy link', () => actions.copy(location.href, 'Link copied')),
        button('Close', actions.close)),
      this.#content, splitter(this));
    return this;
  }

  /** Copy both sides. */
  copyJson() {
    if (this.#value) this.#actions.copy(JSON.stringify(this.#value, null, 1), 'JSON copied');
  }

  /** Bring the difference into sight. */
  showDifference() {
    this.#content.querySelector('.difference')?.scrollIntoView({block: 'nearest'});
    this.#content.focus();
  }

  /**
   * @param {import('./context_model.js').ContextModel} model
   * @param {import('./spans.js').LeftRow | null} left @param {import('./spans.js').RightRow | null} right
   */
  async show(model, left, right) {
    this.#showing += 1;
    const mine = this.#showing;
    const fold = left && left.kind !== 'message';
    replace(this.#pin);
    if (!this.#content.firstChild) replace(this.#content, loading('the message'));
    this.#content.setAttribute('aria-busy', 'true');
    try {
      const [stored, sent, decision] = await Promise.all([
        fold ? null : readStored(model, left), readSent(model, right), right?.range ? model.readDecision(right) : null]);
      const changed = stored && sent && !right.range ? await difference(messageText(stored), messageText(sent)) : null;
      if (mine !== this.#showing) return;
      this.#title.textContent = titleOf(left, right);
      this.#value = {fate: (left ?? right).fate, stored, sent};
      replace(this.#content, ...parts(model, {left, right, stored, sent, changed, decision}));
      this.#content.scrollTop = 0;
      this.#content.removeAttribute('aria-busy');
      const id = !fold && left ? model.head(left.position)?.id : undefined;
      if (id) await this.#showPin(model.thread, id, () => mine === this.#showing);
    } catch (error) {
      if (error.name !== 'AbortError' && mine === this.#showing) {
        this.#title.textContent = titleOf(left, right);
        this.#content.removeAttribute('aria-busy');
        replace(this.#content, failed('The message', error, () => this.show(model, left, right)));
      }
    }
  }

  /** The button that keeps this message in every later view, or lets it go. */
  async #showPin(thread, id, isWanted) {
    const {card} = await get(threadPath(thread, '/compactions'));
    if (!isWanted()) return;
    replace(this.#pin, pinButton(thread, id, new Set(card.pins ?? []), (said) => {
      this.#actions.say(said);
      this.#showPin(thread, id, isWanted);
    }));
  }
}

customElements.define('bs-compare', ComparePane);

async function readStored(model, left) {
  if (!left) return null;
  await model.wantHeads(left.position, left.position);
  const head = model.head(left.position);
  return head ? model.readStored(head.id) : null;
}

async function readSent(model, right) {
  if (!right) return null;
  if (!model.sent(right.sent)) await model.readSent(right.sent, right.sent);
  return model.sent(right.sent) ?? null;
}

function titleOf(left, right) {
  if (right?.range && (!left || left.kind === 'range')) return 'Summary';
  if (left?.kind === 'range') return `Messages ${count(left.position)}–${count(left.to)}`;
  if (left?.kind === 'superseded') return 'Superseded messages';
  return left ? `Message ${count(left.position)}` : `Sent message ${count(right.sent)}`;
}

function fact(label, ...value) {
  return [h('dt', null, label), h('dd', null, ...value)];
}

function parts(model, {left, right, stored, sent, changed, decision}) {
  const span = left?.span ?? right?.span;
  const head = left?.kind === 'message' ? model.head(left.position) : null;
  const equal = changed && changed.pieces.every((piece) => piece.op === '=');
  return [
    span ? h('p', {class: 'reason'}, fateBadge(span.fate), ' ', reasonOf(span)) : h('p', null, 'Superseded: not part of this call\'s history.'),
    facts(model, {span, head, right, made: decision?.compaction ?? span?.compaction}),
    changed && !equal && section('Difference, stored to sent', differenceView(changed)),
    equal && h('p', {class: 'faint'}, 'Stored and sent say the same.'),
    stored && textSection(equal ? 'Stored and sent' : 'Stored', stored),
    sent && !equal && textSection(right.range ? 'Summary as sent' : 'Sent', sent),
    stored && head && h('p', null, h('a', {href: rawMessage(model.thread, head.id)}, 'Raw message'), h('span', {class: 'faint'}, `, ${bytes(head.bytes ?? head.chars ?? 0)}`)),
    stored && details('Stored, as JSON', stored),
    sent && details('Sent, as JSON', sent),
  ];
}

function facts(model, {span, head, right, made}) {
  const thread = model.thread;
  const {tokens_before: before, tokens_after: after} = span ?? {};
  const many = span?.history && span.history[1] > span.history[0] && !right?.range;
  return h('dl', {class: 'facts'},
    head && fact('id', h('code', null, name(head.id))),
    head && fact('role', head.role, head.outcome ? ` · ${head.outcome}` : ''),
    head?.tokens !== undefined && fact('stored', `${count(head.tokens)} tok · ${count(head.chars)} characters`),
    before !== undefined && after !== undefined && span.fate !== 'kept' && fact('tokens', `${count(before)} → ${count(after)} (${signed(after - before)})${many ? ` in ${plural(span.history[1] - span.history[0] + 1, 'message')} of the same fate` : ''}`),
    before === undefined && after !== undefined && fact('tokens', count(after)),
    head?.marks?.length > 0 && fact('marks', head.marks.join(', ')),
    right && fact('sent as', `message ${count(right.sent)} of call ${count(model.call.call)}`),
    head?.seq !== undefined && fact('entry', h('a', {href: address('timeline', {thread}, {seq: head.seq})}, `seq ${count(head.seq)} in Timeline`)),
    made !== undefined && fact('decision', h('a', {href: address('compactions', {thread, n: made})}, `compaction ${count(made)}`)),
    span && fact('means', FATES[span.fate]?.means ?? ''));
}

function section(title, ...children) {
  return h('section', null, h('h3', null, title), ...children);
}

function textSection(title, message) {
  const text = messageText(message);
  return section(`${title} · ${plural(text.length, 'character')}`, h('div', {class: 'body', dir: 'auto'}, text ? longText(text) : body('(empty)')));
}

function details(title, value) {
  const box = h('details', null, h('summary', null, title));
  box.addEventListener('toggle', () => {
    if (box.open && box.childElementCount === 1) box.append(jsonTree(value, title));
  });
  return box;
}
