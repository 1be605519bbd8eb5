/** A conversation as a client builds it from AG-UI events. No DOM, no socket. */

/**
 * @typedef {{kind: string, message: string, input?: object, expires?: string}} Ask
 * @typedef {{id: string, name: string, args: string, state: string, result?: string, error?: string, ask?: Ask}} Call
 * @typedef {{id: string, kind: 'user' | 'assistant' | 'reasoning' | 'activity' | 'line' | 'end', text: string,
 *   open?: boolean, incomplete?: boolean, calls?: Call[], type?: string, value?: any, status?: string,
 *   code?: string, run?: string}} Item
 */

const STATES = {error: 'failed', refused: 'stopped', cancelled: 'stopped', skipped: 'stopped', unknown: 'unknown'};
const stateOf = (outcome) => (outcome === undefined ? 'done' : STATES[outcome] ?? 'done');
const PAGE = 'backscroll-page-';

/** The text of a message's content: parts that are not text are named. @param {any} content @returns {string} */
export function textOf(content) {
  if (content === null || content === undefined) return '';
  if (typeof content === 'string') return content;
  return content.map((part) => part.text ?? `[${part.type}]`).join('\n');
}

/** Items in order; `changed` collects the ids to draw again. */
export class Conversation {
  /** @type {Item[]} */
  items = [];
  /** The run that goes on, if any. @type {string | null} */
  run = null;
  /** How many runs have ended since it began to look on; those of a prelude had before. */
  ends = 0;
  /** Ids of items that changed since the last look. @type {Set<string>} */
  changed = new Set();
  /** Whether the order or number of items changed. */
  moved = true;
  #items = new Map();
  #calls = new Map();
  #prelude = false;
  #paged = false;
  #lines = 0;

  /**
   * Take one event in. @param {any} event
   * @param {boolean} logged whether it came with a cursor; without one it was made for this connection
   */
  apply(event, logged) {
    if (!logged && event.type === 'RUN_STARTED') this.#begin(event);
    this[event.type]?.(event);
    if (!(event.type in Conversation.prototype)) this.#line(event);
    if (logged) this.#prelude = false;
  }

  /** Whether a message is known, so whether the log confirmed it. @param {string} id */
  has(id) {
    return this.#items.has(id);
  }

  /** A prelude begins a new stream: what was known is told again. Pages and what follows them go on. */
  #begin({runId}) {
    const page = runId.startsWith(PAGE);
    if (!this.#paged || runId === `${PAGE}1`) this.#clear();
    this.#paged = page;
    this.#prelude = true;
  }

  #clear() {
    this.items = [];
    this.#items.clear();
    this.#calls.clear();
    this.run = null;
    this.moved = true;
  }

  #put(item) {
    const known = this.#items.get(item.id);
    if (known) {
      Object.assign(known, item);
    } else {
      this.#items.set(item.id, item);
      this.items.push(item);
      this.moved = true;
    }
    this.changed.add(item.id);
    return known ?? item;
  }

  #line(event) {
    if (/_(CHUNK|SNAPSHOT|DELTA)$|^(CUSTOM|RAW)$|^[A-Z_]+$/.test(event.type ?? '')) {
      this.#lines += 1;
      this.#put({id: `line ${this.#lines}`, kind: 'line', text: '', type: String(event.type), value: event});
    }
  }

  RUN_STARTED({runId, input}) {
    this.run = runId.startsWith('backscroll-') ? null : runId;
    for (const message of input?.messages ?? []) this.#message(message);
  }

  RUN_FINISHED({runId, outcome, metadata}) {
    const last = metadata?.backscroll?.last_run;
    const waits = outcome?.type === 'interrupt' || outcome?.pendingToolCallIds?.length > 0;
    this.#ask(outcome);
    const status = last?.status ?? (outcome?.type === 'cancelled' ? 'cancelled' : waits ? 'waiting for an answer' : 'finished');
    this.#settle(waits || status === 'finished' ? 'waiting' : 'stopped');
    if (!this.#prelude) this.ends += 1;
    const told = this.#prelude && !last && !waits;
    if (!told && !runId.startsWith(PAGE)) this.#put({id: `end ${runId}`, kind: 'end', text: '', status, code: last?.code, run: runId});
    this.run = null;
  }

  RUN_ERROR({runId, message, code}) {
    const run = runId ?? this.run ?? 'unknown';
    if (!this.#prelude) this.ends += 1;
    for (const item of this.items) {
      if (item.open) this.#put({...item, open: false, incomplete: true});
    }
    this.#settle('stopped');
    this.#put({id: `end ${run}`, kind: 'end', text: message ?? '', status: 'error', code, run});
    this.run = null;
  }

  MESSAGES_SNAPSHOT({messages}) {
    const run = this.run;
    const lines = this.items.filter((item) => item.kind === 'end' || item.kind === 'line');
    this.#clear();
    this.run = run;
    for (const message of messages) this.#message(message);
    if (!this.#prelude) for (const item of lines) this.#put(item);
  }

  TEXT_MESSAGE_START({messageId}) {
    this.#assistant(messageId).open = true;
  }

  TEXT_MESSAGE_CONTENT({messageId, delta}) {
    this.#assistant(messageId).text += delta;
  }

  TEXT_MESSAGE_END({messageId, metadata}) {
    Object.assign(this.#assistant(messageId), {open: false, incomplete: metadata?.backscroll?.incomplete === true});
  }

  REASONING_MESSAGE_START({messageId}) {
    this.#reasoning(messageId).open = true;
  }

  REASONING_MESSAGE_CONTENT({messageId, delta}) {
    this.#reasoning(messageId).text += delta;
  }

  REASONING_MESSAGE_END({messageId}) {
    this.#reasoning(messageId).open = false;
  }

  TOOL_CALL_START({toolCallId, toolCallName, parentMessageId}) {
    this.#call(parentMessageId, toolCallId, toolCallName);
  }

  TOOL_CALL_ARGS({toolCallId, delta}) {
    this.#changeCall(toolCallId, (call) => { call.args += delta; });
  }

  TOOL_CALL_END({toolCallId}) {
    this.#changeCall(toolCallId, (call) => { call.state = 'running'; });
  }

  TOOL_CALL_RESULT({toolCallId, content, metadata}) {
    this.#changeCall(toolCallId, (call) => Object.assign(call, {state: stateOf(metadata?.backscroll?.outcome), result: textOf(content), ask: undefined}));
  }

  ACTIVITY_SNAPSHOT({messageId, activityType, content}) {
    this.#put({id: messageId, kind: 'activity', text: '', type: activityType, value: content});
  }

  STEP_STARTED() {}
  STEP_FINISHED() {}
  REASONING_START() {}
  REASONING_END() {}

  #assistant(id) {
    return this.#items.get(id)?.kind === 'assistant' ? this.#touch(id) : this.#put({id, kind: 'assistant', text: '', calls: []});
  }

  #reasoning(id) {
    return this.#items.has(id) ? this.#touch(id) : this.#put({id, kind: 'reasoning', text: ''});
  }

  #touch(id) {
    this.changed.add(id);
    return this.#items.get(id);
  }

  #call(messageId, id, name, args = '', state = 'arguments') {
    const held = this.#calls.get(id);
    if (held) return held.call;
    const item = this.#assistant(messageId);
    const call = {id, name, args, state};
    item.calls.push(call);
    this.#calls.set(id, {item, call});
    return call;
  }

  #changeCall(id, change) {
    const held = this.#calls.get(id);
    if (!held) return;
    change(held.call);
    this.changed.add(held.item.id);
  }

  /** What people are asked about calls, now that a run has ended. */
  #ask(outcome) {
    const asked = new Map();
    for (const {id, toolCallId, message, expiresAt, metadata} of outcome?.interrupts ?? []) {
      asked.set(toolCallId ?? id, {kind: metadata?.kind ?? 'approval', message: message ?? '', input: metadata?.input, expires: expiresAt});
    }
    for (const id of outcome?.pendingToolCallIds ?? []) asked.set(id, {kind: 'client', message: ''});
    for (const [id, {item, call}] of this.#calls) {
      if (!asked.has(id) && !call.ask) continue;
      call.ask = asked.get(id);
      this.changed.add(item.id);
    }
  }

  /** Calls that have no result when a run ends. */
  #settle(state) {
    for (const {item, call} of this.#calls.values()) {
      if (call.state !== 'running' && call.state !== 'arguments') continue;
      call.state = state;
      this.changed.add(item.id);
    }
  }

  /** A whole message, of a snapshot or of what a run brought. */
  #message({id, role, content, toolCalls = [], toolCallId, error, activityType, metadata}) {
    if (role === 'tool') {
      this.#changeCall(toolCallId, (call) => Object.assign(call, {state: stateOf(error), result: textOf(content), ask: undefined}));
    } else if (role === 'activity') {
      this.ACTIVITY_SNAPSHOT({messageId: id, activityType, content});
    } else if (role === 'reasoning') {
      this.#put({id, kind: 'reasoning', text: textOf(content)});
    } else if (role === 'assistant') {
      this.#put({id, kind: 'assistant', text: textOf(content), calls: [], incomplete: metadata?.backscroll?.incomplete === true});
      for (const call of toolCalls) this.#call(id, call.id, call.function.name, call.function.arguments, 'running');
    } else {
      this.#put({id, kind: 'user', text: textOf(content), type: role});
    }
  }
}
