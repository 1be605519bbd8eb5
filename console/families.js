/** Families of entries: glyph and colour token. Pure. */

/** @type {Record<string, string>} */
export const GLYPHS = {
  run: '◆', step: '◇', text: '¶', tool: 'ƒ', reasoning: '∴', state: '≡', activity: '~', message: '▤', call: '⇄',
  compaction: 'Σ', note: '!', custom: '∗',
};

/** The families, in the order in which filters show them. */
export const FAMILIES = Object.keys(GLYPHS);
