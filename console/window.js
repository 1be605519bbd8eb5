/** The arithmetic of a list of fixed rows. Pure: everything is in pixels and row numbers from 0. */

/** @typedef {{scrollTop: number, viewport: number, rowHeight: number, count: number}} Geometry */

/**
 * The rows to have in the document: those in sight and some around them.
 * @param {Geometry} at @param {number} [overscan] @returns {{first: number, end: number}} `end` excluded
 */
export function rowsInSight({scrollTop, viewport, rowHeight, count}, overscan = 6) {
  const first = Math.floor(scrollTop / rowHeight) - overscan;
  const end = Math.ceil((scrollTop + viewport) / rowHeight) + overscan;
  return {first: Math.max(0, Math.min(first, count)), end: Math.max(0, Math.min(end, count))};
}

/** The largest scroll position. @param {Geometry} at @returns {number} */
export function maxScroll({viewport, rowHeight, count}) {
  return Math.max(0, count * rowHeight - viewport);
}

/** Whether the last row is in sight. @param {Geometry} at @returns {boolean} */
export function atEnd(at) {
  return at.scrollTop >= maxScroll(at) - at.rowHeight / 2;
}

/** The top row and how much of it is scrolled away. @param {Geometry} at */
export function anchorOf({scrollTop, rowHeight, count}) {
  const index = Math.max(0, Math.min(Math.floor(scrollTop / rowHeight), count - 1));
  return {index, offset: scrollTop - index * rowHeight};
}

/**
 * The scroll position that has a row whole in sight, moving as little as possible; a row far away
 * comes to stand at a third of the height.
 * @param {Geometry} at @param {number} index @returns {number}
 */
export function scrollTo(at, index) {
  const {scrollTop, viewport, rowHeight} = at;
  const top = index * rowHeight;
  const bottom = top + rowHeight;
  if (top >= scrollTop && bottom <= scrollTop + viewport) return scrollTop;
  const near = top > scrollTop - viewport && bottom < scrollTop + 2 * viewport;
  const wanted = !near ? top - viewport / 3 : top < scrollTop ? top : bottom - viewport;
  return Math.max(0, Math.min(wanted, maxScroll(at)));
}

/**
 * The pages that hold rows `first` to `end` and are not there yet.
 * @param {number} first @param {number} end @param {number} size @param {(page: number) => boolean} has
 * @returns {number[]}
 */
export function pagesMissing(first, end, size, has) {
  const pages = [];
  for (let page = Math.floor(first / size); page * size < end; page += 1) {
    if (!has(page)) pages.push(page);
  }
  return pages;
}

/**
 * The place in another list that belongs to a place in this one, by mapped rows: both sorted pairs
 * [own row, other row]; between two pairs it runs straight.
 * @param {number} place in rows, with its fraction @param {[number, number][]} pairs @returns {number}
 */
export function mapPlace(place, pairs) {
  if (!pairs.length) return place;
  let low = 0;
  let high = pairs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (pairs[middle][0] <= place) low = middle + 1;
    else high = middle;
  }
  const [own, other] = low ? pairs[low - 1] : [0, 0];
  const next = pairs[low];
  if (!next) return other + (place - own);
  const span = next[0] - own;
  return span ? other + ((place - own) / span) * (next[1] - other) : next[1];
}
