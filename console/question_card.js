/** A question about a tool call: what may be answered, what was decided, and what went wrong. */

import {body, clock, name} from './format.js';
import {button, h, replace, say} from './h.js';
import {decisionWords, draftOf, payloadOf} from './question_words.js';

/**
 * @typedef {import('./question_words.js').Decision} Decision
 * @typedef {{kind: string, message: string, input: object, expires?: number | string, decision?: Decision, open: number,
 *   stale: boolean, busy: boolean, problem: string,
 *   answer: (status: 'resolved' | 'cancelled', payload?: any) => void}} Asked
 */

const ACTIONS = {
  approval: [['Approve', 'approve'], ['Approve with changes', 'edit'], ['Reject', 'reject'], ['Reply', 'reply']],
  environment: [['Retry', 'retry'], ['Give up', 'give-up']],
  client: [['Send a result', 'result'], ['Reject', 'reject']],
};
const UNSAID = {client: 'A page was asked to run this, and its result has not come yet.'};
const FORMS = {
  edit: ['Arguments as JSON', 'Send changes'], reject: ['Reason, if you like', 'Send rejection'],
  reply: ['Answer in place of the call', 'Send reply'], result: ['Result', 'Send result'],
};

/** The card. What was typed stays until the answer counts. */
export class QuestionCard {
  #message = h('p', {class: 'question-message', dir: 'auto'});
  #buttons = h('div', {class: 'question-buttons'});
  #form = h('form', {class: 'question-form', hidden: true, on: {submit: (event) => this.#submitted(event)}});
  #label = h('span', null);
  #field = h('textarea', {rows: '3', dir: 'auto'});
  #send = h('button', {type: 'submit', class: 'primary'}, 'Send');
  #problem = h('p', {class: 'problem', role: 'alert'});
  #notice = h('p', {class: 'faint ask-notice'});
  #decided = h('p', {class: 'question-decided', dir: 'auto'});
  #kind = '';
  #mode = '';
  /** @type {Asked} */
  #asked;
  element = h('div', {class: 'question', role: 'group'}, this.#message, this.#buttons, this.#form, this.#problem, this.#notice, this.#decided);

  constructor() {
    this.#form.append(h('label', null, this.#label, this.#field),
      h('div', {class: 'question-buttons'}, this.#send, button('Back', () => this.#open(''))));
  }

  /** @param {string} tool @param {Asked | null} asked */
  show(tool, asked) {
    this.element.hidden = !asked;
    if (!asked) return;
    this.#asked = asked;
    const {decision} = asked;
    this.element.setAttribute('aria-label', `Question about ${name(tool, 80)}`);
    this.element.dataset.decided = String(Boolean(decision));
    if (this.#kind !== asked.kind) this.#offer(asked.kind);
    const until = asked.expires && !decision ? ` Expires ${clock(Number(new Date(asked.expires)))}.` : '';
    say(this.#message, `${body(asked.message || UNSAID[asked.kind] || '')}${until}`);
    this.#message.hidden = Boolean(decision) || !this.#message.textContent;
    this.#buttons.hidden = Boolean(decision) || this.#mode !== '';
    this.#form.hidden = Boolean(decision) || this.#mode === '';
    for (const each of this.element.querySelectorAll('button')) each.disabled = asked.busy;
    say(this.#problem, decision ? '' : asked.problem);
    say(this.#notice, asked.stale ? 'cannot refresh' : '');
    this.#showDecision(asked);
  }

  #showDecision({kind, decision, open}) {
    this.#decided.hidden = !decision;
    if (!decision) return;
    const when = decision.time ? ` at ${clock(decision.time)}` : '';
    const by = decision.by ? ` by ${name(decision.by, 60)}` : '';
    const left = open ? ` · decided · ${open} more open` : '';
    say(this.#decided, `${decisionWords(kind, decision)}${by}${when}${left}`);
  }

  #offer(kind) {
    this.#kind = kind;
    this.#mode = '';
    replace(this.#buttons, (ACTIONS[kind] ?? ACTIONS.approval).map(([label, mode]) => button(label, () => this.#press(mode), {class: mode === 'approve' ? 'primary' : null})));
  }

  #press(mode) {
    if (mode in FORMS) this.#open(mode);
    else this.#answer(mode);
  }

  #open(mode) {
    this.#mode = mode;
    this.#asked.problem = '';
    if (mode) {
      const [label, send] = FORMS[mode];
      say(this.#label, label);
      say(this.#send, send);
      this.#field.value = draftOf(mode, this.#asked.input);
    }
    this.show(this.element.getAttribute('aria-label').replace('Question about ', ''), this.#asked);
    (mode ? this.#field : this.#buttons.querySelector('button')).focus();
  }

  #submitted(event) {
    event.preventDefault();
    this.#answer(this.#mode, this.#field.value);
  }

  #answer(mode, text = '') {
    const answer = payloadOf(mode, text);
    if (answer.problem) {
      say(this.#problem, answer.problem);
      return;
    }
    this.#asked.answer(answer.status, answer.payload);
  }
}
