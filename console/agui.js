/** A client of /agui in the durable dialect: watches one thread, sends requests, resumes by cursor. */

import {Conversation} from './conversation.js';
import {backoff} from './feed.js';

/** @typedef {{id: string, runId: string, text: string}} Sending */

/** An id of our own. @param {string} prefix @returns {string} */
export function newId(prefix) {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return `${prefix}-${[...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

/** The address of a watch. @param {{agent: string | null, threadId: string, cursor: string | null, origin: string}} of */
export function watchUrl({agent, threadId, cursor, origin}) {
  const url = new URL(agent ? `/agui/${encodeURIComponent(agent)}` : '/agui', origin.replace(/^http/, 'ws'));
  url.searchParams.set('dialect', 'durable');
  url.searchParams.set('threadId', threadId);
  url.searchParams.set('protocolVersion', '1.0');
  if (cursor) url.searchParams.set('offset', cursor);
  return url.href;
}

/** The client. `changed` is called after every frame; `refused` gets what the server refused. */
export class AguiClient {
  /** What the events have built. */
  conversation = new Conversation();
  /** Where the log was read to. @type {string | null} */
  cursor = null;
  /** @type {'connecting' | 'open' | 'waiting' | 'closed'} */
  link = 'connecting';
  /** The run that was asked to stop. @type {string | null} */
  stopping = null;
  /** What was sent and is not in the log yet. @type {Sending[]} */
  sending = [];
  #socket = null;
  #tries = 0;
  #timer = 0;

  /**
   * @param {{threadId: string, agent?: string | null, changed: () => void, answered: (notice: any) => void,
   *   refused: (error: any, sent: Sending | null) => void}} options
   */
  constructor({threadId, agent = null, changed, answered, refused}) {
    Object.assign(this, {threadId, agent, changed, answered, refused});
  }

  /** Watch the thread, and again whenever the connection ends. */
  open() {
    clearTimeout(this.#timer);
    const socket = new WebSocket(watchUrl({agent: this.agent, threadId: this.threadId, cursor: this.cursor, origin: location.origin}));
    this.#socket = socket;
    socket.addEventListener('open', () => this.#opened());
    socket.addEventListener('message', ({data}) => socket === this.#socket && this.#received(JSON.parse(data)));
    socket.addEventListener('close', ({code, reason}) => socket === this.#socket && this.#ended(code, reason));
  }

  /** End the connection; the run goes on. */
  close() {
    this.link = 'closed';
    clearTimeout(this.#timer);
    this.#socket?.close();
    this.#socket = null;
  }

  /** Ask something. @param {string} text @returns {Sending} */
  send(text) {
    const sending = {id: newId('u'), runId: newId('r'), text};
    this.sending.push(sending);
    this.#request(sending);
    this.changed();
    return sending;
  }

  /** Have the last user message answered again. @param {string} id @param {string} text */
  answerAgain(id, text) {
    this.#request({id, runId: newId('r'), text});
  }

  /** Answer a question; false when there is no connection. @param {{interruptId: string, status: string, payload?: any}} answer */
  answer(answer) {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(JSON.stringify({type: 'answer', threadId: this.threadId, ...answer}));
    return true;
  }

  /** Ask the run to stop; its end is told by the log. */
  stop() {
    const {run} = this.conversation;
    if (run === null || this.#socket?.readyState !== WebSocket.OPEN) return;
    this.stopping = run;
    this.#socket.send(JSON.stringify({type: 'abort', runId: run}));
    this.changed();
  }

  #request({id, runId, text}) {
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    this.#socket.send(JSON.stringify({
      threadId: this.threadId, runId, protocolVersion: '1.0', messages: [{id, role: 'user', content: text}],
      tools: [], context: [], forwardedProps: {'backscroll.snapshot': 'never'},
    }));
  }

  /** The same run id again is the same request: sending once more what was not confirmed is safe. */
  #opened() {
    this.#tries = 0;
    this.link = 'open';
    for (const sending of this.sending) this.#request(sending);
    this.changed();
  }

  #ended(code, reason) {
    if (code === 1009) this.#tooLarge(reason);
    const final = code === 4401 || code === 4403 || (code === 1000 && reason === 'deleted') || code === 1008;
    this.link = final ? 'closed' : 'waiting';
    if (final) this.refused({code: reason || String(code), message: 'The server closed this conversation.'}, null);
    else this.#timer = setTimeout(() => this.open(), backoff(this.#tries, Math.random()));
    this.#tries += 1;
    this.changed();
  }

  /** What was too large is given back: sent once more it would end the next connection, too. */
  #tooLarge(reason) {
    const [sent] = this.sending.toSorted((a, b) => b.text.length - a.text.length);
    if (sent) this.#refusal({code: 'too_large', message: `The message is too large: ${reason || 'above max_input_bytes'}.`}, sent.runId);
  }

  #received(frame) {
    if (frame.chunk) {
      this.conversation.apply(frame.chunk, true);
      this.cursor = frame.id;
    } else if (frame.type === 'answered') {
      this.answered(frame);
    } else if (frame.type === 'refusal') {
      this.#refusal(frame.error, frame.runId);
    } else if (/^[A-Z]/.test(frame.type ?? '')) {
      const own = frame.metadata?.backscroll;
      if (own?.refused) this.#refusal({code: frame.code, message: frame.message, details: own.details}, own.runId);
      else this.conversation.apply(frame, false);
    }
    this.sending = this.sending.filter(({id}) => !this.conversation.has(id));
    if (this.conversation.run !== this.stopping) this.stopping = null;
    this.changed();
  }

  #refusal(error, runId) {
    const sent = this.sending.find((one) => one.runId === runId) ?? null;
    this.sending = this.sending.filter((one) => one !== sent);
    this.refused(error, sent);
  }
}
