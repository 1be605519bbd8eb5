/** From the spans of an attempt to the rows of two lists and the pairs between them. Pure. */

/**
 * @typedef {{fate: string, history?: [number, number], sent?: [number, number], role?: string,
 *   tokens_before?: number, tokens_after?: number, by?: string, reason?: string,
 *   compaction?: number, repaired?: string}} Span
 * @typedef {{key: string, kind: 'message' | 'range' | 'superseded', fate: string, span?: Span,
 *   position: number, to: number, first: boolean, cut?: boolean, open?: boolean}} LeftRow
 * @typedef {{key: string, sent: number, fate: string, span: Span, position?: number,
 *   range?: [number, number]}} RightRow
 * @typedef {{left: LeftRow[], right: RightRow[], pairs: [number, number][], counts: Record<string, number>}} Pairing
 */

const FOLDING = ['summarised', 'dropped'];

const length = (range) => (range ? range[1] - range[0] + 1 : 0);

/** How many messages have each fate. @param {Span[]} spans @returns {Record<string, number>} */
export function countFates(spans) {
  const counts = {};
  for (const span of spans) {
    const n = span.fate === 'injected' ? length(span.sent) : length(span.history);
    counts[span.fate] = (counts[span.fate] ?? 0) + n;
  }
  return counts;
}

/**
 * The rows of both lists for one attempt.
 * @param {Span[]} spans
 * @param {{unfolded?: Set<string>, fates?: Set<string>, keep?: (row: LeftRow | RightRow) => boolean}} [showing]
 * @returns {Pairing}
 */
export function pairUp(spans, {unfolded = new Set(), fates, keep = () => true} = {}) {
  const shown = fates?.size ? spans.filter((span) => fates.has(span.fate)) : spans;
  const superseded = fates?.size ? [] : supersededRows(spans, unfolded);
  const left = [...leftRows(shown, unfolded), ...superseded].filter(keep);
  const right = rightRows(shown).filter(keep);
  return {left, right, pairs: pairsOf(left, right), counts: countFates(spans)};
}

/** What belongs to a part of the budget, by row and role. Tool definitions are no messages. */
const PARTS = {
  system: (row, role) => role === 'system',
  summary: (row) => row.fate === 'summarised',
  messages: (row, role) => isSent(row) && (role === 'user' || role === 'assistant'),
  results: (row, role) => isSent(row) && role === 'tool',
  notes: (row, role) => row.fate === 'injected' && role !== 'system',
};

const isSent = (row) => row.kind !== 'range' && row.position !== undefined && row.span?.sent !== undefined
  && !FOLDING.includes(row.fate);

/**
 * Whether a row counts into a part of the budget.
 * @param {string} part @param {LeftRow | RightRow} row @param {string | undefined} role @returns {boolean}
 */
export function inPart(part, row, role) {
  return PARTS[part]?.(row, role) ?? true;
}

function leftRows(spans, unfolded) {
  const stored = spans.filter((span) => span.history).sort((a, b) => a.history[0] - b.history[0]);
  const last = stored.findLast((span) => span.fate === 'summarised');
  const rows = [];
  for (const span of stored) {
    const [from, to] = span.history;
    const key = `r${from}`;
    const folds = FOLDING.includes(span.fate) && to > from;
    const open = folds && unfolded.has(key);
    if (folds) rows.push({key, kind: 'range', fate: span.fate, span, position: from, to, first: true, open});
    if (!folds || open) {
      for (let at = from; at <= to; at += 1) {
        rows.push({key: `h${at}`, kind: 'message', fate: span.fate, span, position: at, to: at, first: !folds && at === from});
      }
    }
    if (span === last) rows.at(-1).cut = true;
  }
  return rows;
}

/** Positions that no span covers were superseded: they stand in one fold at the end. */
function supersededRows(spans, unfolded) {
  const ranges = spans.filter((span) => span.history).map((span) => span.history).sort((a, b) => a[0] - b[0]);
  const positions = [];
  let next = 1;
  for (const [from, to] of ranges) {
    for (; next < from; next += 1) positions.push(next);
    next = Math.max(next, to + 1);
  }
  if (!positions.length) return [];
  const open = unfolded.has('superseded');
  const fold = {
    key: 'superseded', kind: 'superseded', fate: 'superseded', first: true, open,
    position: positions[0], to: positions.at(-1), count: positions.length,
  };
  const row = (at) => ({key: `h${at}`, kind: 'message', fate: 'superseded', position: at, to: at, first: false});
  return [fold, ...(open ? positions.map(row) : [])];
}

function rightRows(spans) {
  const rows = new Map();
  for (const span of spans) {
    if (!span.sent) continue;
    for (let sent = span.sent[0]; sent <= span.sent[1]; sent += 1) {
      const known = rows.get(sent);
      if (known && span.fate === 'summarised') {
        known.range = [Math.min(known.range[0], span.history[0]), Math.max(known.range[1], span.history[1])];
        continue;
      }
      const row = {key: `s${sent}`, sent, fate: span.fate, span};
      if (span.fate === 'summarised') row.range = [...span.history];
      else if (span.history) row.position = span.history[0] + (sent - span.sent[0]);
      rows.set(sent, row);
    }
  }
  return [...rows.values()].sort((a, b) => a.sent - b.sent);
}

function pairsOf(left, right) {
  const atSent = new Map(right.map((row, index) => [row.sent, index]));
  const pairs = [];
  left.forEach((row, index) => {
    if (!row.span?.sent || (row.kind === 'range' && row.open)) return;
    const offset = row.fate === 'summarised' ? 0 : row.position - row.span.history[0];
    const other = atSent.get(row.span.sent[0] + offset);
    if (other !== undefined) pairs.push([index, other]);
  });
  return pairs;
}

/**
 * The pairs that rise on both sides: what two lists can scroll together by.
 * @param {[number, number][]} pairs @returns {[number, number][]}
 */
export function rising(pairs) {
  const result = [];
  for (const pair of pairs) {
    if (!result.length || pair[1] > result.at(-1)[1]) result.push(pair);
  }
  return result;
}

/**
 * The token difference of a row on the right, where the record says it: a span of one message.
 * @param {Span} span @returns {number | undefined}
 */
export function tokenChange(span) {
  if (span.fate === 'kept' || span.tokens_before === undefined || span.tokens_after === undefined) return undefined;
  return length(span.history) === 1 ? span.tokens_after - span.tokens_before : undefined;
}
