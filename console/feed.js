/** The console socket: one per tab, with a cursor per thread; it reconnects by itself. */

/**
 * @typedef {import('./fold.js').Entry} Entry
 * @typedef {{link: 'connecting' | 'open' | 'waiting' | 'refused', since: number, thread: string | null,
 *   seq: number | null, head: number | null, floor: number, resync: number | null,
 *   gap: [number, number] | null, reason: string}} FeedState
 * @typedef {{entries?: (entries: Entry[], state: FeedState) => void, resync?: (state: FeedState) => void,
 *   reconnected?: () => void}} ThreadListener
 */

const FIRST_MS = 500;
const MOST_MS = 15_000;
const REFUSED = {4401: 'Sign in to go on.', 4403: 'This page needs the operator role.'};

/**
 * How long to wait before trying again. @param {number} tries @param {number} random from 0 to 1
 * @returns {number} milliseconds
 */
export function backoff(tries, random) {
  return Math.min(MOST_MS, FIRST_MS * 2 ** tries) * (0.75 + random / 2);
}

/**
 * What to make of a batch: only entries above the cursor, and what is missing before them.
 * @param {Entry[]} entries @param {number | null} cursor @param {number} floor
 * @returns {{fresh: Entry[], gap: [number, number] | null}}
 */
export function take(entries, cursor, floor) {
  const fresh = cursor === null ? entries : entries.filter((entry) => entry.seq > cursor);
  if (!fresh.length || cursor === null) return {fresh, gap: null};
  let last = Math.max(cursor, floor);
  for (const {seq} of fresh) {
    if (seq > last + 1) return {fresh, gap: [last + 1, seq - 1]};
    last = Math.max(last, seq);
  }
  return {fresh, gap: null};
}

/** The socket and what is subscribed on it. */
export class Feed {
  #socket = null; #tries = 0; #timer = 0; #closed = false;
  #thread = null;                 // ThreadListener
  #heads = new Set();
  #questions = new Set();
  #wholeNext = false;             // the first list of a subscription is all that is open
  #headsBegin = false;            // the first heads of a subscription say that it has begun
  #watchers = new Set();
  /** @type {FeedState} */
  state = {
    link: 'connecting', since: Date.now(), thread: null, seq: null, head: null, floor: 0, resync: null,
    gap: null, reason: '',
  };

  /** Open the socket, and again whenever it ends. */
  open() {
    addEventListener('online', () => this.#retryNow());
    this.#connect();
  }

  /** Be told of every change of the state. @param {(state: FeedState) => void} watcher */
  watch(watcher) {
    this.#watchers.add(watcher);
    watcher(this.state);
  }

  /**
   * Receive a thread's entries after a seq, or from the head. Ends the subscription before.
   * @param {string} thread @param {number | null} after @param {ThreadListener} listener
   * @returns {() => void} ends it
   */
  thread(thread, after, listener) {
    this.#leave();
    this.#thread = listener;
    Object.assign(this.state, {thread, seq: after, head: after, floor: 0, resync: null, gap: null});
    this.#send({subscribe: this.#wanted()});
    this.#tell();
    return () => {
      if (this.#thread === listener) this.#leave();
    };
  }

  /**
   * Receive changed thread heads; when `begun`, what changed before was told to nobody.
   * @param {(heads: object[], gone: string[], begun: boolean) => void} listener @returns {() => void}
   */
  heads(listener) {
    this.#heads.add(listener);
    if (this.#heads.size === 1) this.#askHeads();
    return () => {
      this.#heads.delete(listener);
      if (!this.#heads.size) this.#send({unsubscribe: {threads: true}});
    };
  }

  /**
   * Receive questions: first all that are open (`whole`), then those asked or decided.
   * @param {(questions: object[], whole: boolean) => void} listener @returns {() => void}
   */
  questions(listener) {
    this.#questions.add(listener);
    if (this.#questions.size === 1) this.#askQuestions();
    return () => {
      this.#questions.delete(listener);
      if (!this.#questions.size) this.#send({unsubscribe: {questions: true}});
    };
  }

  #askHeads() {
    this.#headsBegin = true;
    this.#send({subscribe: {threads: true}});
  }

  #askQuestions() {
    this.#wholeNext = true;
    this.#send({subscribe: {questions: true}});
  }

  #leave() {
    if (!this.#thread) return;
    this.#send({unsubscribe: {thread: this.state.thread}});
    this.#thread = null;
    Object.assign(this.state, {thread: null, seq: null, head: null, gap: null, resync: null});
    this.#tell();
  }

  #wanted() {
    const {thread, seq} = this.state;
    return seq === null ? {thread} : {thread, after: seq};
  }

  #connect() {
    clearTimeout(this.#timer);
    const url = new URL('/console/ws', location.href);
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    const socket = new WebSocket(url);
    this.#socket = socket;
    socket.addEventListener('open', () => this.#opened());
    socket.addEventListener('message', ({data}) => socket === this.#socket && this.#received(JSON.parse(data)));
    socket.addEventListener('close', ({code}) => socket === this.#socket && this.#ended(code));
  }

  #opened() {
    const again = this.state.link === 'waiting';
    this.#tries = 0;
    Object.assign(this.state, {link: 'open', since: Date.now()});
    if (this.#heads.size) this.#askHeads();
    if (this.#questions.size) this.#askQuestions();
    if (this.#thread) this.#send({subscribe: this.#wanted()});
    this.#tell();
    if (again) this.#thread?.reconnected?.();
  }

  #ended(code) {
    if (this.#closed) return;
    if (this.state.link !== 'waiting') this.state.since = Date.now();
    this.state.link = code in REFUSED ? 'refused' : 'waiting';
    this.state.reason = REFUSED[code] ?? '';
    this.#tell();
    if (this.state.link === 'refused') return;
    this.#timer = setTimeout(() => this.#connect(), backoff(this.#tries, Math.random()));
    this.#tries += 1;
  }

  #retryNow() {
    if (this.state.link === 'waiting') this.#connect();
  }

  #received(frame) {
    if (frame.threads || frame.gone) {
      const begun = this.#headsBegin;
      this.#headsBegin = false;
      for (const listener of this.#heads) listener(frame.threads ?? [], frame.gone ?? [], begun);
    }
    if (frame.questions) {
      const whole = this.#wholeNext;
      this.#wholeNext = false;
      for (const listener of this.#questions) listener(frame.questions, whole);
    }
    if (frame.thread === undefined || frame.thread !== this.state.thread) return;
    if (frame.resync) this.#resync(frame.resync);
    else if (frame.entries) this.#entries(frame);
  }

  #resync({floor, head}) {
    Object.assign(this.state, {floor, head, seq: floor, resync: floor, gap: null});
    this.#thread?.resync?.(this.state);
    this.#tell();
  }

  #entries({entries, floor = this.state.floor, head}) {
    const {fresh, gap} = take(entries, this.state.seq, floor);
    const last = fresh.at(-1)?.seq ?? this.state.seq ?? head ?? null;
    Object.assign(this.state, {floor, seq: last, head: Math.max(head ?? 0, last ?? 0), gap: this.state.gap ?? gap});
    if (fresh.length) this.#thread?.entries?.(fresh, this.state);
    this.#tell();
  }

  #send(frame) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(frame));
  }

  #tell() {
    for (const watcher of this.#watchers) watcher(this.state);
  }
}
