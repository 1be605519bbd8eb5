/** The questions of one thread as its page knows them: asked by its stream, decided by anybody. */

import {get, threadPath} from './api.js';

const AGAIN_MS = 2000;

/** What is known of a thread's questions, and how they are answered. */
export class ThreadQuestions {
  #known = new Map();            // call id -> question of the list
  #busy = new Set();
  #problems = new Map();
  #stale = false;
  #timer = 0;
  #reads = 0;                    // only the newest one counts
  #isReading = false;
  #reading = new AbortController();
  #stop;

  /** @param {{key: string, feed: import('./feed.js').Feed, send: (answer: object) => boolean, changed: () => void}} of */
  constructor({key, feed, send, changed}) {
    Object.assign(this, {key, send, changed});
    this.#stop = feed.questions((questions, whole) => this.#live(questions, whole));
    this.read();
  }

  /** Stop following. */
  close() {
    clearTimeout(this.#timer);
    this.#reading.abort();
    this.#stop();
  }

  /** Read the list; while it cannot be read, what is known stays and is marked. */
  async read() {
    clearTimeout(this.#timer);
    this.#reads += 1;
    const mine = this.#reads;
    this.#isReading = true;
    try {
      const {questions} = await get(threadPath(this.key, '/questions'), {signal: this.#reading.signal});
      if (mine !== this.#reads) return;
      this.#known = new Map(questions.map((question) => [question.interrupt_id, question]));
      this.#stale = false;
    } catch {
      if (this.#reading.signal.aborted || mine !== this.#reads) return;
      this.#stale = true;
      this.#timer = setTimeout(() => this.read(), AGAIN_MS);
    }
    this.#isReading = false;
    this.changed();
  }

  /**
   * What a call's card shows, null when nothing was asked about it.
   * @param {import('./conversation.js').Call} call @returns {import('./question_card.js').Asked | null}
   */
  of(call) {
    const listed = this.#known.get(call.id);
    const waits = call.result === undefined && listed && !listed.decision ? {kind: listed.kind, message: listed.reason ?? ''} : undefined;
    const ask = call.ask ?? waits;
    const decision = listed?.decision;
    if (!ask && !decision) return null;
    const open = decision && call.result === undefined ? this.#open(listed) : 0;
    return {
      kind: ask?.kind ?? listed?.kind ?? 'approval', message: ask?.message ?? '', input: ask?.input ?? listed?.input ?? {}, expires: ask?.expires ?? listed?.expires,
      decision, open, stale: this.#stale, busy: this.#busy.has(call.id), problem: this.#problems.get(call.id) ?? '',
      answer: (status, payload) => this.#answer(call.id, status, payload),
    };
  }

  /** Take the notice that answers an answer. @param {{interruptId: string, decision: object, runId?: string}} notice */
  answered({interruptId, decision, runId}) {
    this.#busy.delete(interruptId);
    this.#problems.delete(interruptId);
    const question = this.#known.get(interruptId) ?? {interrupt_id: interruptId, thread: this.key};
    if (!question.decision) this.#known.set(interruptId, {...question, decision: {...decision, run: runId}});
    this.read();
  }

  /** Take a refusal; false when it is not about a question of ours. @param {any} error */
  refused(error) {
    const id = error.details?.interruptId;
    if (!id || !this.#busy.has(id)) return false;
    this.#busy.delete(id);
    this.#problems.set(id, `${error.code}: ${error.message}`);
    this.read();
    return true;
  }

  #answer(id, status, payload) {
    if (this.#busy.has(id)) return;
    this.#problems.delete(id);
    if (this.send({interruptId: id, status, payload})) this.#busy.add(id);
    else this.#problems.set(id, 'not connected; the answer was not sent');
    this.changed();
  }

  #open({run}) {
    return [...this.#known.values()].filter((question) => question.run === run && !question.decision).length;
  }

  #live(questions, whole) {
    const own = questions.filter((question) => question.thread === this.key);
    for (const question of own) this.#known.set(question.interrupt_id, question);
    // After a time without connection the list says what was decided meanwhile; one that is on its
    // way may not know yet what was just told.
    if ((whole && this.#known.size) || (own.length && this.#isReading)) this.read();
    else if (own.length) this.changed();
  }
}
