/** Which runs and steps of a timeline are folded, and what that makes of the positions. No DOM. */

/** @typedef {import('./rows_model.js').RowsModel} RowsModel */

const WORST = ['error', 'running', 'waiting', 'cancelled'];

/** Folded rows, by row number; without any, index and position are the same. */
export class TimelineFolds {
  #folded = new Set();
  #visible = null;               // positions in sight, or null: all of them
  #inside = new Map();           // row number -> {rows, worst}

  /** Begin again with another model. @param {RowsModel} model */
  reset(model) {
    if (model.filtered) this.#folded.clear();
    this.changed(model);
  }

  /** Whether anything is folded. */
  get any() { return this.#folded.size > 0; }

  /** How many rows are to be shown. @param {RowsModel | null} model */
  count(model) {
    return this.#visible?.length ?? model?.total ?? 0;
  }

  /** @param {number} index @returns {number} the position of the row shown there */
  position(index) {
    return this.#visible ? this.#visible[Math.max(0, Math.min(index, this.#visible.length - 1))] ?? 0 : index;
  }

  /** @param {number} position @returns {number} where it is shown; -1 inside a folded row */
  indexOf(position) {
    if (!this.#visible) return position;
    let low = 0;
    let high = this.#visible.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#visible[middle] < position) low = middle + 1;
      else high = middle;
    }
    return this.#visible[low] === position ? low : -1;
  }

  /** What a row element shows. @param {RowsModel} model @param {number} position */
  item(model, position) {
    const row = model.at(position);
    return {
      row, runStart: row && model.runStart(row), foldable: this.canFold(model, position),
      inside: row && this.#folded.has(row.row) ? this.#inside.get(row.row) ?? {rows: 0, worst: ''} : null,
    };
  }

  /** Whether a row has an inside. @param {RowsModel} model @param {number} position */
  canFold(model, position) {
    const row = model?.at(position);
    return Boolean(row && row.level < 2 && !model.filtered);
  }

  /** @param {RowsModel} model @param {number} position */
  isFolded(model, position) {
    return this.#folded.has(model.at(position)?.row);
  }

  /** Fold a row, or unfold it. @param {RowsModel} model @param {number} position */
  toggle(model, position) {
    const row = model.at(position);
    if (!this.#folded.delete(row.row)) this.#folded.add(row.row);
    this.changed(model);
  }

  /** Unfold whatever hides a row. @param {RowsModel} model @param {import('./fold.js').Row} row */
  open(model, row) {
    let parent = row.parent;
    let changed = false;
    while (parent !== undefined) {
      changed = this.#folded.delete(parent) || changed;
      parent = model.at(model.positionOf(parent))?.parent;
    }
    if (changed) this.changed(model);
  }

  /** Count again after rows came or changed. @param {RowsModel} model */
  changed(model) {
    this.#inside.clear();
    if (!this.#folded.size) {
      this.#visible = null;
      return;
    }
    const visible = [];
    for (let position = 0; position < model.total; position += 1) {
      const row = model.at(position);
      const folded = row && this.#hiding(model, row);
      if (!folded) visible.push(position);
      else this.#countInside(folded, row);
    }
    this.#visible = visible;
  }

  #hiding(model, row) {
    let folded;
    let parent = row.parent;
    while (parent !== undefined) {
      if (this.#folded.has(parent)) folded = parent;
      parent = model.at(model.positionOf(parent))?.parent;
    }
    return folded;
  }

  #countInside(folded, row) {
    const inside = this.#inside.get(folded) ?? {rows: 0, worst: ''};
    inside.rows += 1;
    const rank = WORST.indexOf(row.status);
    if (rank >= 0 && (inside.worst === '' || rank < WORST.indexOf(inside.worst))) inside.worst = row.status;
    this.#inside.set(folded, inside);
  }
}
