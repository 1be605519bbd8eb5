/** The rows of a timeline: read from the server by page, folded here from what comes in live. */

import {get, threadPath} from './api.js';
import {Fold} from './fold.js';
import {pagesMissing} from './window.js';

/** @typedef {import('./fold.js').Row} Row */

const PAGE = 200;
const MOVED = -2;                // instead of a position: rows stand elsewhere than before
const TIMES = ['from', 'to'];
const FIELDS = ['family', 'status', 'run', 'q', 'from', 'to'];

/** The filters of an address as the API takes them: times in milliseconds. @param {URLSearchParams} params */
function filtersOf(params) {
  const given = FIELDS.filter((key) => params.get(key)).map((key) => [key, params.get(key)]);
  return Object.fromEntries(given.map(([key, value]) => [key, TIMES.includes(key) ? Date.parse(value) : value]));
}

/**
 * Whether a row passes the filters, as the server decides it.
 * @param {Row} row @param {Record<string, any>} filters @returns {boolean}
 */
export function passes(row, filters) {
  const among = (value, list) => !list || list.split(',').includes(value);
  const words = `${row.title} ${row.subject} ${row.preview} ${row.ref ?? ''}`.toLowerCase();
  return among(row.family, filters.family) && among(row.status, filters.status)
    && (!filters.run || row.run === filters.run) && (!filters.q || words.includes(filters.q.toLowerCase()))
    && (!filters.from || row.started >= filters.from) && (!filters.to || row.started <= filters.to);
}

/** Rows by position, from 0, and what changes them. */
export class RowsModel {
  /** How many rows there are with these filters. */
  total = 0;
  /** The highest seq that is folded in. */
  head = 0;
  #rows = [];                    // position -> Row, sparse
  #positions = new Map();        // row number -> position, where filters part the two
  #starts = new Map();           // run -> time its run row began
  #asked = new Set();
  #fold = null;
  #abort = new AbortController();
  #stopFeed = () => {};

  /**
   * @param {{thread: string, feed: import('./feed.js').Feed, params: URLSearchParams,
   *   changed: (what: {entries: number, errors: number, positions: number[] | null}) => void, failed: (error: Error) => void,
   *   reload: () => void}} options
   */
  constructor({thread, feed, params, changed, failed, reload}) {
    Object.assign(this, {thread, feed, changed, failed, reload});
    this.filters = filtersOf(params);
    this.filtered = Object.keys(this.filters).length > 0;
  }

  /** Read the newest rows, and those around a seq; then receive what is new. @param {number | null} seq */
  async start(seq) {
    // The fold begins with what was read first, so that all later entries pass through it.
    const all = this.filtered ? await this.#readUnfiltered({limit: PAGE}) : null;
    const [last, around] = await Promise.all([
      this.#read({limit: PAGE}), seq === null ? null : this.#read({around: seq, limit: PAGE}),
    ]);
    if (around) this.#take(around);
    this.#take(last);
    await this.#startFolding(all ?? last);
    this.#stopFeed = this.feed.thread(this.thread, this.head, {
      entries: (entries) => this.#live(entries),
      resync: () => this.reload(),
    });
  }

  /** Receive nothing any more. */
  stop() {
    this.#abort.abort();
    this.#stopFeed();
  }

  /** The row at a position; undefined while it is not read. @param {number} position @returns {Row | undefined} */
  at(position) {
    return this.#rows[position];
  }

  /** When the run of a row began, if that is known. @param {Row} row @returns {number | undefined} */
  runStart(row) {
    return this.#starts.get(row.run);
  }

  /** The position of a row by its number. @param {number} number @returns {number} -1 if not read */
  positionOf(number) {
    const position = this.filtered ? this.#positions.get(number) : number - 1;
    return position !== undefined && this.#rows[position] ? position : -1;
  }

  /** The position of the row that holds a seq: of several, the one that begins last. @param {number} seq */
  positionOfSeq(seq) {
    let best = -1;
    for (const [position, row] of this.#rows.entries()) {
      if (!row || row.seq[0] > seq || row.seq[1] < seq) continue;
      if (row.seq[0] === seq) return position;
      if (best < 0 || row.seq[0] > this.#rows[best].seq[0]) best = position;
    }
    return best;
  }

  /** Read the rows of a window that are not there. @param {number} first @param {number} end */
  async want(first, end) {
    const has = (page) => this.#asked.has(page) || this.#complete(page);
    for (const page of pagesMissing(first, Math.min(end, this.total), PAGE, has)) {
      this.#asked.add(page);
      try {
        this.#take(await this.#read({start: page * PAGE + 1, limit: PAGE}));
        this.changed({entries: 0, errors: 0, positions: null});
      } catch (error) {
        if (!this.#abort.signal.aborted) this.failed(error);
      } finally {
        this.#asked.delete(page);
      }
    }
  }

  #complete(page) {
    const end = Math.min((page + 1) * PAGE, this.total);
    for (let position = page * PAGE; position < end; position += 1) {
      if (!this.#rows[position]) return false;
    }
    return true;
  }

  #read(params) {
    return this.#readUnfiltered({...this.filters, ...params});
  }

  #readUnfiltered(params) {
    return get(threadPath(this.thread, '/rows', params), {signal: this.#abort.signal});
  }

  #take({rows, start, total}) {
    rows.forEach((row, index) => this.#put(start - 1 + index, row));
    this.total = Math.max(this.total, total);
  }

  #put(position, row) {
    this.#rows[position] = row;
    this.total = Math.max(this.total, position + 1);
    if (this.filtered) this.#positions.set(row.row, position);
    if (row.family === 'run' && row.run !== undefined) this.#starts.set(row.run, row.started);
    return position;
  }

  /** With filters the newest rows are not all there: the fold needs them all. */
  async #startFolding(all) {
    const rows = [...all.rows];
    const open = rows.at(-1)?.run;
    if (open !== undefined && !rows.some((row) => row.family === 'run' && row.run === open)) {
      const first = await this.#readUnfiltered({run: open, start: 1, limit: 1});
      rows.unshift(...first.rows.filter((row) => row.family === 'run'));
    }
    for (const row of rows) if (row.family === 'run') this.#starts.set(row.run, row.started);
    this.head = all.head;
    this.#fold = new Fold({rows, total: all.total, head: all.head});
  }

  #live(entries) {
    const changed = new Set();
    for (const entry of entries) {
      for (const row of this.#fold.add(entry)) changed.add(row);
    }
    let errors = 0;
    const positions = [];
    for (const row of [...changed].sort((a, b) => a.row - b.row)) {
      if (row.status === 'error') errors += 1;
      if (row.family === 'run') this.#starts.set(row.run, row.started);
      positions.push(this.filtered ? this.#sift(row) : this.#put(row.row - 1, row));
    }
    this.head = entries.at(-1).seq;
    this.changed({entries: entries.length, errors, positions: positions.includes(MOVED) ? null : positions});
  }

  /** A row may begin to pass the filters, or cease to, long after it began: the others make room. */
  #sift(row) {
    const known = this.#positions.get(row.row);
    const isIn = passes(row, this.filters);
    if (known !== undefined && isIn) return this.#put(known, row);
    if (known !== undefined) {
      this.#positions.delete(row.row);
      return this.#splice(known, 1);
    }
    let position = this.total;
    while (position > 0 && this.#rows[position - 1]?.row > row.row) position -= 1;
    // Before rows that are not read it may be among those, or belong before them.
    const isPlaced = position === 0 || this.#rows[position - 1];
    return isIn && isPlaced ? this.#splice(position, 0, row) : -1;
  }

  #splice(position, removed, ...added) {
    this.#rows.splice(position, removed, ...added);
    this.total += added.length - removed;
    for (let at = position; at < this.#rows.length; at += 1) {
      if (this.#rows[at]) this.#positions.set(this.#rows[at].row, at);
    }
    return MOVED;
  }
}
