/** The difference of two texts by words. Pure; lines first, then the words of the lines that changed. */

/** @typedef {{op: '=' | '-' | '+', text: string}} Piece */

const WORD_LIMIT = 200_000;
const MOST_STEPS = 2_000;

/** Words, runs of blanks and single marks; Han characters each by itself. @param {string} text */
export function words(text) {
  return text.match(/\p{Script=Han}|[\p{L}\p{N}_]+|\s+|[^\s\p{L}\p{N}_]/gu) ?? [];
}

/**
 * The difference from `before` to `after`. `by` says whether it could be made by words or, because the
 * texts are long, only by lines.
 * @param {string} before @param {string} after @returns {{pieces: Piece[], by: 'words' | 'lines'}}
 */
export function diff(before, after) {
  const byWords = before.length + after.length <= WORD_LIMIT;
  const pieces = [];
  for (const piece of sequence(lines(before), lines(after))) {
    const last = pieces.at(-1);
    if (byWords && piece.op === '+' && last?.op === '-') {
      pieces.pop();
      pieces.push(...sequence(words(last.text), words(piece.text)));
    } else {
      pieces.push(piece);
    }
  }
  return {pieces: joined(tidied(joined(pieces))), by: byWords ? 'words' : 'lines'};
}

/** A blank or a mark that happens to be equal between two changes belongs to them. */
function tidied(pieces) {
  return pieces.flatMap((piece, index) => {
    const between = index > 1 && index < pieces.length - 2 && pieces[index - 1].op === '+'
      && pieces[index - 2].op === '-' && pieces[index + 1].op === '-' && pieces[index + 2].op === '+';
    const slight = piece.op === '=' && between && piece.text.length < 4 && !piece.text.includes('\n');
    return slight ? [{op: '-', text: piece.text}, {op: '+', text: piece.text}] : [piece];
  });
}

function lines(text) {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

/** Trim what is equal at both ends, then compare the middle. */
function sequence(before, after) {
  let head = 0;
  const shorter = Math.min(before.length, after.length);
  while (head < shorter && before[head] === after[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  const middle = compare(
    before.slice(head, before.length - tail), after.slice(head, after.length - tail));
  return joined([
    {op: '=', text: before.slice(0, head).join('')}, ...middle,
    {op: '=', text: before.slice(before.length - tail).join('')},
  ]);
}

/** Myers: the shortest way from `a` to `b`; beyond the most steps everything old out, all new in. */
function compare(a, b) {
  const whole = [{op: '-', text: a.join('')}, {op: '+', text: b.join('')}];
  if (!a.length || !b.length) return whole;
  const most = Math.min(a.length + b.length, MOST_STEPS);
  const reach = new Int32Array(2 * most + 3);   // how far each diagonal came; diagonal k at most + 1 + k
  const trace = [];
  for (let d = 0; d <= most; d += 1) {
    trace.push(reach.slice(most - d, most + d + 3));
    for (let k = -d; k <= d; k += 2) {
      const at = most + 1 + k;
      let x = goesDown(reach, at, k, d) ? reach[at + 1] : reach[at - 1] + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1;
      reach[at] = x;
      if (x >= a.length && x - k >= b.length) return walkBack(a, b, trace);
    }
  }
  return whole;
}

function goesDown(reach, at, k, d) {
  return k === -d || (k !== d && reach[at - 1] < reach[at + 1]);
}

function walkBack(a, b, trace) {
  const pieces = [];
  let x = a.length;
  let y = b.length;
  for (let d = trace.length - 1; d >= 0; d -= 1) {
    const k = x - y;
    const at = d + 1 + k;
    const down = goesDown(trace[d], at, k, d);
    const fromX = d ? trace[d][down ? at + 1 : at - 1] : 0;
    const fromY = d ? fromX - (down ? k + 1 : k - 1) : 0;
    while (x > fromX && y > fromY) {
      x -= 1;
      y -= 1;
      pieces.push({op: '=', text: a[x]});
    }
    if (d && down) pieces.push({op: '+', text: b[--y]});
    else if (d) pieces.push({op: '-', text: a[--x]});
  }
  return pieces.reverse();
}

/** Neighbours of one kind become one piece; within a change the old stands before the new. */
function joined(pieces) {
  const result = [];
  let out = '';
  let into = '';
  const flush = () => {
    if (out) result.push({op: '-', text: out});
    if (into) result.push({op: '+', text: into});
    out = into = '';
  };
  for (const {op, text} of pieces) {
    if (!text) continue;
    if (op === '-') out += text;
    else if (op === '+') into += text;
    else {
      flush();
      if (result.at(-1)?.op === '=') result.at(-1).text += text;
      else result.push({op, text});
    }
  }
  flush();
  return result;
}
