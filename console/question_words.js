/** What answers to questions say, in both directions. No DOM. */

/** @typedef {{status: 'resolved' | 'cancelled', payload?: any, by?: string, time?: number, run?: string}} Decision */

/** What a field holds when it opens. @param {string} mode @param {object} input */
export function draftOf(mode, input) {
  return mode === 'edit' ? JSON.stringify(input ?? {}, null, 2) : '';
}

/**
 * The answer that a button or a form makes, or what is wrong with what was typed.
 * @param {string} mode @param {string} text
 * @returns {{status: 'resolved' | 'cancelled', payload?: any, problem?: undefined} | {problem: string}}
 */
export function payloadOf(mode, text) {
  const typed = text.trim();
  if (mode === 'approve') return {status: 'resolved', payload: {approved: true}};
  if (mode === 'retry') return {status: 'resolved', payload: {retry: true}};
  if (mode === 'give-up') return {status: 'resolved', payload: {retry: false}};
  if (mode === 'reject') return {status: 'cancelled', ...(typed && {payload: {reason: typed}})};
  if (mode === 'edit') return edited(typed);
  if (mode === 'reply' && !typed) return {problem: 'An answer in place of the call needs a text.'};
  return {status: 'resolved', payload: {result: text}};
}

function edited(typed) {
  let value;
  try {
    value = JSON.parse(typed);
  } catch (error) {
    return {problem: `This is not JSON: ${error.message}`};
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return {problem: 'Arguments are a JSON object.'};
  return {status: 'resolved', payload: {approved: true, editedArgs: value}};
}

/** What a decision was, in words. @param {string} kind @param {Decision} decision */
export function decisionWords(kind, {status, payload, by}) {
  const reason = typeof payload?.reason === 'string' ? payload.reason : '';
  if (by === 'expiry') return 'expired';
  if (reason === 'abandoned' && !by) return 'given up when the conversation went on';
  const refused = kind === 'environment' ? 'given up' : 'rejected';
  const said = reason ? `: ${reason}` : '';
  if (status === 'cancelled') return refused + said;
  if (kind === 'environment') return payload?.retry ? 'retried' : 'given up';
  if (kind === 'client') return 'answered';
  if (payload && typeof payload === 'object' && 'result' in payload) return 'replied';
  if ((payload?.approved ?? payload) !== true) return refused + said;
  return payload?.editedArgs ? 'approved with changes' : 'approved';
}
