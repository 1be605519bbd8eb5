/**
 * Entries into rows: one row per thing that happened. Pure; the server's runs/fold does the same
 * and both pass the files in tests/data/fold, which hold {"floor", "entries", "rows"}.
 *
 * The rules. "Body" is optional: what is read from a body falls back to the head where it is absent.
 *
 *  1. Rows are numbered from 1 in the order of their first entry. An entry is in exactly one row; a
 *     seq not above one already seen is ignored. A row's `seq` is its first and last seq, `entries`
 *     how many it has, `bytes` their sum (absent counts 0), `worker` and `run` those of its first.
 *  2. `family` goes by kind and the beginning of the type (familyOf). What no rule below names is a
 *     row of its own: title the type in small words, subject the ref, preview the head's, status ok.
 *     A type without a family of its own is `unknown event`, a kind nobody knows `unknown entry`.
 *  3. Level 0 run, 1 step, 2 the rest. Parent of a step is the run's row; of the rest the open step of
 *     the entry's run, else the run's row, else absent. Also when that run has ended.
 *  4. run: RUN_* by run id. Preview: that of RUN_STARTED; RUN_ERROR's own replaces it. Status: running;
 *     RUN_FINISHED by outcome: interrupt, or success with pendingToolCallIds: waiting; cancelled:
 *     cancelled; else ok. RUN_ERROR: error. A second start or end: flag `duplicate`.
 *  5. step: STARTED and FINISHED by run and name. Subject the name, preview empty.
 *  6. text, reasoning: by ref within what is open. TEXT_MESSAGE_END and REASONING_END close; a later
 *     START of the same id is a new row. Subject the ref. A second TEXT_MESSAGE_START or
 *     REASONING_START while open: `duplicate`. An END with metadata.backscroll.incomplete: flag
 *     `incomplete`, status cancelled.
 *  7. tool: by ref over the whole thread. Subject the name; running until its RESULT, which may come in
 *     a later run and never changes `run`. Status by metadata.backscroll.outcome: absent, ok or replied:
 *     ok; error, unknown: error; else cancelled. A second START or RESULT: `duplicate`. A `message`
 *     entry whose body has the tool_call_id of a waiting row settles it the same way by its `outcome`,
 *     and is a row of its own besides.
 *  8. call: `started` opens a row (a call may have several: attempts), `finished` (ok), `failed` (error)
 *     and `cancelled` close the newest of the same ref. Subject the ref; previews joined with " · ".
 *     A `started` while one of the same ref is open ends that as in 14.
 *  9. activity: ACTIVITY_* by run and ref. Subject body.activityType, preview that of the newest entry,
 *     status by body.content.status: running; failed: error; cancelled; else ok. It stays joinable.
 * 10. compaction: title with the type unless done; failed: error, cancelled: cancelled, else ok. note:
 *     subject the type. message: title `message added` or `message superseded`, subject the ref.
 *     CUSTOM: subject the name.
 * 11. A preview of rule 6 and of a tool's arguments joins the deltas: runs of blank, tab, CR and LF
 *     become one blank, leading ones go, above 160 code points it is cut to 159 and "…", for good.
 * 12. What should join but finds nothing to join opens a row of its own with the flag `out of order`;
 *     later ones join that, and what closes a row closes this one, too.
 * 13. A row of rule 6, or a tool at its TOOL_CALL_END, that has no delta and begins at or below the
 *     floor has the flag `deltas removed`; a `message` entry of the same ref then lends its preview.
 * 14. When a run ends, what is still open in it ends with it: tools become waiting if the run did not
 *     fail and was not cancelled; all else gets status cancelled and the flag `incomplete`. A RESULT or
 *     the outcome of a call that comes later still counts, and takes that flag away.
 * 15. An `event` entry of a run that has ended (RUN_* excepted) puts the flag `late` on its row.
 *     A row whose first entry's audience is operator has the flag `operator`.
 * 16. `started` is the time of the first entry; `ended` that of the entry that closed the row. It is
 *     absent while a row is running, or a tool waiting. Members that are absent here are left out.
 */

import {PLACES, flag, refOf} from './fold_rules.js';

/**
 * @typedef {{seq: number, time: number, kind: string, type: string, run?: string, audience?: string,
 *   ref?: string, preview?: string, bytes?: number, worker?: string, body?: any}} Entry
 * @typedef {{row: number, level: number, parent?: number, family: string, seq: [number, number],
 *   entries: number, run?: string, title: string, subject: string, preview: string, ref?: string,
 *   started: number, ended?: number, status: string, bytes: number, worker?: string,
 *   flags: string[]}} Row
 */

const PREVIEW = 160;
const LEVELS = {run: 0, step: 1};
const PREFIXES = [
  ['RUN_', 'run'], ['STEP_', 'step'], ['TEXT_MESSAGE_', 'text'], ['TOOL_CALL_', 'tool'],
  ['REASONING_', 'reasoning'], ['STATE_', 'state'], ['MESSAGES_SNAPSHOT', 'state'],
  ['ACTIVITY_', 'activity'], ['SUBAGENT_', 'activity'],
];
const OWN_KINDS = ['message', 'call', 'compaction', 'note'];

/** The family of an entry. @param {string} kind @param {string} type @returns {string} */
export function familyOf(kind, type) {
  if (kind !== 'event') return OWN_KINDS.includes(kind) ? kind : 'custom';
  return PREFIXES.find(([prefix]) => type.startsWith(prefix))?.[1] ?? 'custom';
}

/** A preview with one more piece. @param {string} preview @param {string} piece @returns {string} */
export function joinPreview(preview, piece) {
  if (preview.endsWith('…') && [...preview].length === PREVIEW) return preview;
  const joined = (preview + piece.slice(0, 2000)).replace(/[ \t\r\n]+/g, ' ').replace(/^ /, '');
  const points = [...joined];
  return points.length > PREVIEW ? points.slice(0, PREVIEW - 1).join('') + '…' : joined;
}

/** All rows of a log. @param {Entry[]} entries @param {number} [floor] @returns {Row[]} */
export function foldEntries(entries, floor = 0) {
  const fold = new Fold({floor});
  const rows = [];
  for (const entry of entries) {
    for (const row of fold.add(entry)) rows[row.row - 1] = row;
  }
  return rows;
}

/** Folds entries one by one; can go on from rows that the server folded. */
export class Fold {
  /** Run id -> {row, step, ended}. @type {Map<string, {row?: Row, step?: Row, ended: boolean}>} */
  runs = new Map();
  #floor; #total; #seen;
  #open = new Map();      // 'family:run or empty:ref' -> row that a further entry may join
  #withDeltas = new Set();
  #removed = new Map();   // message id -> text row without deltas
  #changed = new Set();

  /** @param {{rows?: Row[], total?: number, head?: number, floor?: number}} [from] */
  constructor({rows = [], total = 0, head = 0, floor = 0} = {}) {
    this.#floor = floor;
    this.#total = total;
    this.#seen = head;
    for (const row of rows) this.#resume(row);
  }

  /** How many rows there are by now. */
  get total() { return this.#total; }

  /**
   * Take one entry in.
   * @param {Entry} entry
   * @returns {Row[]} the rows it changed, new ones included
   */
  add(entry) {
    if (entry.seq <= this.#seen) return [];
    this.#seen = entry.seq;
    this.#changed.clear();
    const family = familyOf(entry.kind, entry.type);
    const place = PLACES[family];
    const row = (place && place(this, entry)) || this.plain(entry, family);
    const late = entry.kind === 'event' && family !== 'run' && this.runs.get(entry.run)?.ended;
    if (late) flag(row, 'late');
    return [...this.#changed];
  }

  /** A row of its own, closed. @param {Entry} entry @param {string} family */
  plain(entry, family) {
    const known = family !== 'custom' || entry.type === 'CUSTOM' || entry.type === 'RAW';
    const words = entry.type.toLowerCase().replaceAll('_', ' ');
    const title = known ? words : entry.kind === 'event' ? 'unknown event' : 'unknown entry';
    const unknown = entry.kind === 'event' ? entry.type : `${entry.kind} ${entry.type}`;
    const row = this.open(entry, family, title, known ? refOf(entry) ?? '' : unknown);
    row.preview = entry.preview ?? '';
    return this.close(row, entry, 'ok');
  }

  /** A new row that begins with this entry. */
  open(entry, family, title, subject, key = null) {
    const run = this.runs.get(entry.run);
    const parent = family === 'run' ? undefined : family === 'step' ? run?.row : run?.step ?? run?.row;
    const row = {
      row: ++this.#total, level: LEVELS[family] ?? 2, parent: parent?.row, family,
      seq: [entry.seq, entry.seq], entries: 1, run: entry.run, title, subject, preview: '', ref: refOf(entry), started: entry.time,
      ended: undefined, status: 'running', bytes: entry.bytes ?? 0, worker: entry.worker,
      flags: entry.audience === 'operator' ? ['operator'] : [],
    };
    if (key !== null) this.#open.set(`${family}:${key}`, row);
    this.#changed.add(row);
    return row;
  }

  /** Put an entry into a row that is there. */
  join(row, entry) {
    row.seq = [row.seq[0], entry.seq];
    row.entries += 1;
    row.bytes += entry.bytes ?? 0;
    this.#changed.add(row);
    return row;
  }

  /** End a row. */
  close(row, entry, status) {
    row.status = status;
    row.ended = entry.time;
    this.#changed.add(row);
    return row;
  }

  /** The row that may be joined under this key. */
  find(family, key) { return this.#open.get(`${family}:${key}`); }

  /** Nothing may join under this key any more. */
  forget(family, key) { this.#open.delete(`${family}:${key}`); }

  /** Add a delta to a row's preview. */
  delta(row, entry) {
    this.#withDeltas.add(row.row);
    row.preview = joinPreview(row.preview, entry.body?.delta ?? entry.preview ?? '');
  }

  /** Mark a complete row whose deltas were removed, and let the stored message lend its preview. */
  checkDeltas(row) {
    const has = this.#withDeltas.delete(row.row);
    if (has || row.seq[0] > this.#floor) return;
    flag(row, 'deltas removed');
    if (row.family === 'text' && row.ref !== undefined) this.#removed.set(row.ref, row);
  }

  /** Give a row without deltas the preview of its stored message. */
  lend(entry) {
    const row = this.#removed.get(entry.ref);
    if (!row) return;
    row.preview = entry.preview ?? '';
    this.#removed.delete(entry.ref);
    this.#changed.add(row);
  }

  /** What is known of a run; made when asked for by its own events. */
  run(entry) {
    const id = entry.run ?? refOf(entry);
    if (!this.runs.has(id)) this.runs.set(id, {row: undefined, step: undefined, ended: false});
    return this.runs.get(id);
  }

  /** End everything a run left open. */
  closeRun(entry, status) {
    for (const [key, row] of this.#open) {
      if (row.run !== entry.run || row.family === 'run') continue;
      if (row.status === 'running') this.abandon(row, entry, status);
      if (row.family !== 'tool' && row.family !== 'call') this.#open.delete(key);
    }
  }

  /** End a row whose own end did not come. */
  abandon(row, entry, runStatus) {
    this.#withDeltas.delete(row.row);
    const waits = row.family === 'tool' && (runStatus === 'ok' || runStatus === 'waiting');
    this.close(row, entry, waits ? 'waiting' : 'cancelled');
    if (waits) row.ended = undefined;
    else flag(row, 'incomplete');
  }

  #resume(row) {
    if (row.family === 'run') {
      this.runs.set(row.run, {row, step: undefined, ended: row.status !== 'running'});
      return;
    }
    const live = row.status === 'running' || row.status === 'waiting';
    if (!live && row.family !== 'tool' && row.family !== 'activity') return;
    const ref = row.family === 'step' ? row.subject : row.ref;
    const scoped = row.family === 'step' || row.family === 'activity';
    this.#open.set(`${row.family}:${scoped ? `${row.run}:${ref}` : ref}`, row);
    if (row.family === 'step' && this.runs.has(row.run)) this.runs.get(row.run).step = row;
    if (row.entries > (row.family === 'reasoning' ? 2 : 1)) this.#withDeltas.add(row.row);
  }
}
