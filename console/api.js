/** The operator API: reads and actions with one error shape. */

import {segment} from './route.js';

const TIMEOUT_MS = 30_000;

/** A request that failed, with everything an operator may pass on. */
export class ApiError extends Error {
  /** @param {number} status @param {{code?: string, message?: string, details?: object}} error */
  constructor(status, error) {
    super(error.message ?? `The server answered ${status}.`);
    this.name = 'ApiError';
    this.status = status;
    this.code = error.code ?? 'unknown';
    this.details = error.details ?? {};
    this.requestId = this.details.request_id;
  }
}

/** The path of a thread's route. @param {string} key @param {string} [rest] @param {object} [params] */
export function threadPath(key, rest = '', params = {}) {
  return withQuery(`/threads/${segment(key)}${rest}`, params);
}

/** A path with those parameters that have a value. @param {string} path @param {object} params */
export function withQuery(path, params) {
  const given = Object.entries(params).filter(([, value]) => value !== undefined && value !== null && value !== '');
  return given.length ? `${path}?${new URLSearchParams(given)}` : path;
}

/** Where a stored message is by itself, whole, for the browser to show or save. @param {string} key @param {string} id */
export function rawMessage(key, id) {
  return `/console/api${threadPath(key, `/messages/${segment(id)}`, {raw: 1})}`;
}

/**
 * Read from the operator API. Throws ApiError, or AbortError where `signal` ended it.
 * @param {string} path below /console/api @param {{signal?: AbortSignal}} [options] @returns {Promise<any>}
 */
export async function get(path, {signal} = {}) {
  return call(path, {headers: {Accept: 'application/json'}}, signal);
}

/**
 * Change something through the operator API. Throws ApiError.
 * @param {string} method @param {string} path below /console/api @param {object} [body] @returns {Promise<any>}
 */
export async function send(method, path, body) {
  const headers = {Accept: 'application/json', ...(body && {'Content-Type': 'application/json'})};
  return call(path, {method, headers, ...(body && {body: JSON.stringify(body)})});
}

async function call(path, options, signal) {
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  let response;
  try {
    response = await fetch(`/console/api${path}`, {...options, signal: signal ? AbortSignal.any([signal, timeout]) : timeout});
  } catch (error) {
    if (signal?.aborted) throw error;
    const message = timeout.aborted ? 'The server did not answer within 30 s.' : 'The server cannot be reached.';
    throw new ApiError(0, {code: timeout.aborted ? 'timeout' : 'unreachable', message});
  }
  return read(response);
}

async function read(response) {
  let value = null;
  try {
    value = await response.json();
  } catch {
    if (response.ok) throw new ApiError(response.status, {code: 'not_json', message: 'The answer was not JSON.'});
  }
  if (!response.ok) throw new ApiError(response.status, value?.error ?? {});
  return value;
}
