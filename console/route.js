/** Addresses into routes and back. Pure. */

/**
 * @typedef {{page: string, thread?: string, n?: number, params: URLSearchParams}} Route
 * `thread` is the key of the operator API (a percent-encoded thread id, with the owner before it).
 */

/** The pages of a thread, in the order of their tabs. */
export const TABS = ['timeline', 'context', 'compactions'];

const ROOT = '/console';

function decode(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** A thread key as one path segment. @param {string} key @returns {string} */
export function segment(key) {
  const safe = key === '.' || key === '..' ? key.replaceAll('.', '%2E') : key;
  return encodeURIComponent(safe).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** The key of a thread of our own. @param {string} threadId @returns {string} */
export function keyOf(threadId) {
  return encodeURIComponent(threadId).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** Owner and id behind a key. @param {string} key @returns {{owner: string, id: string}} */
export function ownerAndId(key) {
  const [first, second] = key.split('/');
  return second === undefined
    ? {owner: 'local', id: decode(first)}
    : {owner: decode(first), id: decode(second)};
}

/**
 * The route of an address; page `not-found` for what we do not know.
 * @param {string} pathname @param {string} [search] @returns {Route}
 */
export function parse(pathname, search = '') {
  const params = new URLSearchParams(search);
  const missing = {page: 'not-found', params};
  if (pathname !== ROOT && !pathname.startsWith(`${ROOT}/`)) return missing;
  const [page, thread, tab, n, ...rest] = pathname.slice(ROOT.length + 1).split('/').filter((s) => s !== '');
  if (rest.length) return missing;
  if (page === undefined) return {page: 'threads', params};
  if (page === 'system' && !thread) return {page, params};
  if (page === 'chat' && !tab) return {page, thread: thread && decode(thread), params};
  if (page !== 'threads') return missing;
  if (!thread) return {page, params};
  const key = decode(thread);
  if (!tab) return {page: 'thread', thread: key, params};
  if (!TABS.includes(tab) || (n && (tab !== 'compactions' || !/^[1-9]\d{0,8}$/.test(n)))) return missing;
  return {page: tab, thread: key, params, ...(n && {n: Number(n)})};
}

/**
 * The address of a page; page `thread` is the thread on its last tab. Empty parameters are left out.
 * @param {string} page @param {{thread?: string, n?: number}} [of]
 * @param {Record<string, string | number | null | undefined>} [params] @returns {string}
 */
export function address(page, {thread, n} = {}, params = {}) {
  const path = [ROOT];
  if (page === 'chat' || page === 'system' || thread === undefined) path.push(page);
  else path.push('threads');
  if (thread !== undefined) path.push(segment(thread));
  if (thread !== undefined && page !== 'chat' && page !== 'thread') path.push(page);
  if (n !== undefined) path.push(String(n));
  return path.join('/') + query(new URLSearchParams(), params);
}

/**
 * A query with some parameters changed; all others are kept, unknown ones too.
 * @param {URLSearchParams} params @param {Record<string, string | number | null | undefined>} changes
 * @returns {string}
 */
export function query(params, changes) {
  const next = new URLSearchParams(params);
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === '') next.delete(key);
    else next.set(key, String(value));
  }
  const text = next.toString();
  return text && `?${text}`;
}
