/** What Context shows, read piece by piece: calls, one attempt, stored heads, sent messages. No DOM. */

import {get, threadPath} from './api.js';
import {pagesMissing} from './window.js';

const PAGE = 200;

/** A body as the API gives it, whether alone or beside its head. @param {any} answer */
export function wholeMessage(answer) {
  return answer.message ?? answer.body ?? answer;
}

/** The model call on show and its messages. */
export class ContextModel {
  /** All calls, oldest first. @type {object[]} */
  calls = [];
  /** Up to where the log was surely read when the calls were. @type {number | null} */
  readTo = null;
  /** The call on show, with its attempts. @type {object | null} */
  call = null;
  /** The attempt on show. @type {object | null} */
  attempt = null;
  #heads = new Map();            // position -> MessageHead
  #pages = new Map();            // page of heads -> era in which it was read
  #era = 0;                      // grows when messages are added: heads are read again
  #sent = new Map();             // sent position -> message as sent
  #decisions = null;             // promise of all decisions, as they were at this call
  #decisionsFor = 0;
  #asked = new Map();            // what is being read -> promise
  #reading = new Set();          // sent positions being read
  #abort = new AbortController();

  /** @param {string} thread @param {() => void} changed @param {(error: Error) => void} failed */
  constructor(thread, changed, failed) {
    Object.assign(this, {thread, changed, failed});
  }

  /** Read nothing more. */
  stop() {
    this.#abort.abort();
  }

  #get(rest, params) {
    return get(threadPath(this.thread, rest, params), {signal: this.#abort.signal});
  }

  /** Read the list of calls; of two answers the one that was made later counts. */
  async readCalls() {
    const {calls, head} = await this.#get('/calls');
    if (head >= (this.readTo ?? 0)) Object.assign(this, {calls, readTo: head});
  }

  /**
   * Read a call and choose an attempt.
   * @param {number} number @param {number | null} attempt @param {() => boolean} isWanted
   */
  async readCall(number, attempt, isWanted) {
    const call = await this.#get(`/calls/${number}`);
    if (!isWanted()) return;
    const attempts = Array.isArray(call.attempts) ? call.attempts : call.attempt_list ?? [];
    const chosen = attempts.find((one) => one.attempt === attempt) ?? attempts.at(-1) ?? null;
    const same = this.call?.call === call.call && this.attempt?.attempt === chosen?.attempt;
    if (!same) this.#sent.clear();
    this.call = {...call, attempts};
    this.attempt = chosen;
  }

  /** The head of a stored message, if it was read. @param {number} position @returns {any} */
  head(position) {
    return this.#heads.get(position);
  }

  /** The positions of the messages that contain a text, rising. @param {string} text @returns {Promise<number[]>} */
  async search(text) {
    if (!text) return [];
    const {messages} = await this.#get('/messages', {q: text, fields: 'head'});
    return messages.map((message) => message.position).sort((a, b) => a - b);
  }

  /** A message as sent, if it was read. @param {number} position @returns {any} */
  sent(position) {
    return this.#sent.get(position);
  }

  /** Read stored heads. @param {number} from @param {number} to */
  async wantHeads(from, to) {
    const era = this.#era;
    const pages = pagesMissing(from - 1, to, PAGE, (page) => this.#pages.get(page) === era);
    await Promise.all(pages.map((page) => this.#once(`h${era}-${page}`, async () => {
      const answer = await this.#get('/messages', {from: page * PAGE + 1, to: (page + 1) * PAGE, fields: 'head'});
      if (era !== this.#era) return;
      this.#pages.set(page, era);
      for (const head of answer.messages) this.#heads.set(head.position, head);
    })));
    if (era !== this.#era) await this.wantHeads(from, to);
  }

  /** Read heads again, after messages were added; those that are there stay until then. */
  forgetHeads() {
    this.#era += 1;
  }

  /** Read messages as sent. @param {number[]} positions rising */
  async wantSent(positions) {
    const missing = positions.filter((position) => !this.#sent.has(position) && !this.#reading.has(position));
    await Promise.all(ranges(missing).map(async ([from, to]) => {
      for (let at = from; at <= to; at += 1) this.#reading.add(at);
      await this.#once(`s${from}-${to}`, () => this.readSent(from, to));
      for (let at = from; at <= to; at += 1) this.#reading.delete(at);
    }));
  }

  /** Read a range of messages as sent. @param {number} from @param {number} to */
  async readSent(from, to) {
    const {call, attempt} = this;
    const answer = await this.#get(`/calls/${call.call}/messages`, {attempt: attempt.attempt, from, to});
    if (this.call?.call !== call.call || this.attempt?.attempt !== attempt.attempt) return;
    answer.messages.forEach((message, index) => this.#sent.set(message.sent ?? from + index, wholeMessage(message)));
  }

  /** One stored message, whole. @param {string} id */
  async readStored(id) {
    return wholeMessage(await this.#get(`/messages/${encodeURIComponent(id)}`));
  }

  /** The position of a message, by its id. @param {string} id @returns {Promise<number | null>} */
  async positionOf(id) {
    for (const head of this.#heads.values()) if (head.id === id) return head.position;
    const {messages} = await this.#get('/messages', {ids: id});
    return messages[0]?.position ?? null;
  }

  /**
   * The decision that made a summary: the one that its span names, else, since a summary from the cache
   * was made by an earlier call, the newest one up to this call that covers the same messages.
   * @param {import('./spans.js').RightRow} row @returns {Promise<object | null>}
   */
  async readDecision({span, range}) {
    if (!this.#decisions || this.#decisionsFor !== this.call.call) {
      this.#decisionsFor = this.call.call;
      this.#decisions = this.#get('/compactions').then((answer) => answer.compactions);
    }
    const made = (await this.#decisions).filter((one) => one.summary && one.summary.source !== 'cache');
    const named = made.find((one) => one.compaction === span.compaction);
    const earlier = (one) => one.call <= this.call.call && one.covers?.[1] === range[1];
    return named ?? made.findLast(earlier) ?? null;
  }

  /** The request body, rebuilt from the record. */
  readRequest() {
    return this.#get(`/calls/${this.call.call}/request`, {attempt: this.attempt.attempt});
  }

  /** Read something once, however often it is wanted meanwhile. */
  #once(key, read) {
    if (!this.#asked.has(key)) this.#asked.set(key, this.#try(read).finally(() => this.#asked.delete(key)));
    return this.#asked.get(key);
  }

  async #try(read) {
    try {
      await read();
      this.changed();
    } catch (error) {
      if (!this.#abort.signal.aborted) this.failed(error);
    }
  }
}

/** Rising numbers as ranges. @param {number[]} numbers @returns {[number, number][]} */
export function ranges(numbers) {
  const result = [];
  for (const number of numbers) {
    if (result.length && result.at(-1)[1] === number - 1) result.at(-1)[1] = number;
    else result.push([number, number]);
  }
  return result;
}
