/** What became of a message: glyph and word, always together. Pure. */

/** @type {Record<string, {glyph: string, word: string, means: string}>} */
export const FATES = {
  kept: {glyph: '=', word: 'kept', means: 'the same bytes as in the store'},
  truncated: {glyph: '…', word: 'truncated', means: 'a tool result cut to the limit, with a marker'},
  placeholder: {glyph: '▢', word: 'placeholder', means: 'an older tool result replaced by a stub'},
  summarised: {glyph: 'Σ', word: 'summarised', means: 'inside the prefix that the summary stands for'},
  dropped: {glyph: '×', word: 'dropped', means: 'left out, without a summary'},
  rewritten: {glyph: '≠', word: 'rewritten', means: 'the content differs for another reason'},
  injected: {glyph: '+', word: 'injected', means: 'sent without a stored original'},
};

/**
 * One sentence for why a span is as it is.
 * @param {{fate: string, reason?: string, by?: string, repaired?: string}} span @returns {string}
 */
export function reasonOf(span) {
  const fallback = FATES[span.fate]?.means ?? span.fate;
  const reason = span.reason || fallback;
  const by = span.by ? ` · by ${span.by}` : '';
  const repaired = span.repaired ? ` · repaired: ${span.repaired}` : '';
  return `${reason}${by}${repaired}`;
}
