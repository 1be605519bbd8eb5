/** Numbers, times and hostile text as people read them. Pure: the present time comes in as an argument. */

const GROUPS = new Intl.NumberFormat('en', {maximumFractionDigits: 0});
const ONE = new Intl.NumberFormat('en', {minimumFractionDigits: 1, maximumFractionDigits: 1});
const CLOCK = new Intl.DateTimeFormat('en-GB', {hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false});
const MOMENT = new Intl.DateTimeFormat('en-GB', {
  year: 'numeric', month: 'short', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit',
  timeZoneName: 'short',
});
const THIN = '\u202f';
const MINUS = '\u2212';

/** `18204` as `18 204`. @param {number} n @returns {string} */
export function count(n) {
  return GROUPS.format(n).replaceAll(',', THIN).replace('-', MINUS);
}

/** A difference with its sign. @param {number} n @returns {string} */
export function signed(n) {
  return n > 0 ? `+${count(n)}` : count(n);
}

/** A part of a whole. @param {number} part @param {number} whole @returns {string} */
export function percent(part, whole) {
  if (!whole) return '0 %';
  const value = (part / whole) * 100;
  return value > 0 && value < 1 ? '<1 %' : `${count(value)} %`;
}

/** A change in per cent, with its sign. @param {number} before @param {number} after @returns {string} */
export function change(before, after) {
  if (!before) return '';
  const value = ((after - before) / before) * 100;
  const text = Math.abs(value) < 10 && value !== 0 ? ONE.format(value) : GROUPS.format(value);
  return `${value > 0 ? '+' : ''}${text.replace('-', MINUS)} %`;
}

/** A number with its noun, in the plural where it belongs. @param {number} n @param {string} noun */
export function plural(n, noun) {
  return `${count(n)} ${noun}${n === 1 ? '' : 's'}`;
}

/** Milliseconds as `420 ms`, `2.1 s`, `3 min 4 s`, `2 h 5 min`. @param {number} ms @returns {string} */
export function duration(ms) {
  if (ms < 10 && !Number.isInteger(ms)) return `${ONE.format(ms)} ms`;
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 59_950) return `${ONE.format(ms / 1000)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 2880) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${Math.round(minutes / 1440)} d`;
}

/** Bytes in decimal units. @param {number} n @returns {string} */
export function bytes(n) {
  if (n < 1000) return `${n} B`;
  const units = ['kB', 'MB', 'GB'];
  let value = n / 1000;
  let unit = 0;
  while (value >= 999.95 && unit < 2) {
    value /= 1000;
    unit += 1;
  }
  return `${ONE.format(value)} ${units[unit]}`;
}

/** How long ago, in one unit. @param {number} time @param {number} now @returns {string} */
export function ago(time, now) {
  const seconds = Math.max(0, Math.round((now - time) / 1000));
  if (seconds < 5) return 'now';
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86_400)} d ago`;
}

/** The time of day in the viewer's zone. @param {number} time @returns {string} */
export function clock(time) {
  return CLOCK.format(time);
}

/** A moment in the viewer's zone, with the zone, and in UTC. @param {number} time @returns {string} */
export function moment(time) {
  const utc = new Date(time).toISOString().replace('T', ' ').replace('Z', ' UTC');
  return `${MOMENT.format(time)} · ${utc}`;
}

// Controls, bidi controls, zero width marks, separators, and surrogates without a partner.
const UNSEEN = new RegExp(
  '[\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff]'
  + '|[\\ud800-\\udbff](?![\\udc00-\\udfff])|(?<![\\ud800-\\udbff])[\\udc00-\\udfff]', 'g');
const HARMFUL = new RegExp(
  '[\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f]'
  + '|[\\ud800-\\udbff](?![\\udc00-\\udfff])|(?<![\\ud800-\\udbff])[\\udc00-\\udfff]', 'g');

function symbol(character) {
  const code = character.charCodeAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  if (code === 0x7f) return '\u2421';
  return `⟦U+${code.toString(16).toUpperCase().padStart(4, '0')}⟧`;
}

/**
 * A name or id in one line: what cannot be seen becomes a symbol, and it is never longer than `max`.
 * @param {string} text @param {number} [max] @returns {string}
 */
export function name(text, max = 200) {
  const safe = String(text ?? '').slice(0, max * 2).replace(UNSEEN, symbol);
  return safe.length > max ? `${safe.slice(0, max - 1)}…` : safe;
}

const DATA_URI = /data:([\w.+-]+\/[\w.+-]+)?(?:;[\w=.+-]+)*;base64,([A-Za-z0-9+/=_-]{32,})/g;

/**
 * A body as it is shown: NUL and lone surrogates are made visible, data URIs become type and size.
 * @param {string} text @returns {string}
 */
export function body(text) {
  return String(text ?? '')
    .replace(DATA_URI, (_, type, data) => `[${type ?? 'data'}, ${bytes(Math.floor(data.length * 0.75))}]`)
    .replace(HARMFUL, symbol);
}

/**
 * A long text as head, number of characters left out, and tail; short ones have only a head.
 * @param {string} text @param {number} [limit] @returns {{head: string, left: number, tail: string}}
 */
export function clip(text, limit = 20_000) {
  if (text.length <= limit) return {head: text, left: 0, tail: ''};
  const part = Math.floor(limit / 2);
  return {head: text.slice(0, part), left: text.length - 2 * part, tail: text.slice(-part)};
}

/**
 * What a message says, as text: parts are joined, files are named by type and size.
 * @param {string | object[] | null | undefined} content @returns {string}
 */
export function contentText(content) {
  if (content === null || content === undefined) return '';
  if (typeof content === 'string') return content;
  return content.map((part) => {
    if (typeof part === 'string') return part;
    if (typeof part.text === 'string') return part.text;
    const type = part.media_type ?? part.type ?? 'part';
    const size = part.data?.length ? `, ${bytes(Math.floor(part.data.length * 0.75))}` : '';
    return `[${type}${size}]`;
  }).join('\n');
}

/**
 * A whole message as text to compare: what it says, then its calls.
 * @param {object} message @returns {string}
 */
export function messageText(message) {
  const calls = (message.tool_calls ?? []).map((call) => {
    const args = call.raw ?? JSON.stringify(call.args ?? {}, null, 1);
    return `→ ${call.name}(${args})`;
  });
  return [contentText(message.content), ...calls].filter(Boolean).join('\n');
}
