// Named points in time. Setting is cheap; waking looks at all of them.

export class Timers {
  constructor() {
    /** @type {Map<string, {at: number, run: (now: number) => void}>} */
    this._timers = new Map();
    this._earliest = Infinity;
  }

  /** When to call `run` next; a little early at times, never late. */
  get next() {
    return this._timers.size === 0 ? Infinity : this._earliest;
  }

  /** When it is due; Infinity when it is not set. @param {string} name */
  at(name) {
    return this._timers.get(name)?.at ?? Infinity;
  }

  /** @param {string} name */
  has(name) {
    return this._timers.has(name);
  }

  /**
   * @param {string} name an earlier timer of that name is forgotten
   * @param {number} at
   * @param {(now: number) => void} run
   */
  set(name, at, run) {
    this._timers.set(name, { at, run });
    if (at < this._earliest) this._earliest = at;
  }

  /** @param {string} name */
  clear(name) {
    this._timers.delete(name);
  }

  clearAll() {
    this._timers.clear();
    this._earliest = Infinity;
  }

  /** @param {number} now */
  run(now) {
    if (now < this._earliest) return;
    const due = [];
    let earliest = Infinity;
    for (const [name, timer] of this._timers) {
      if (timer.at <= now) due.push({ name, timer });
      else if (timer.at < earliest) earliest = timer.at;
    }
    this._earliest = earliest;
    due.sort((one, other) => one.timer.at - other.timer.at);
    for (const { name, timer } of due) {
      // an earlier one of this round may have cleared or moved it
      if (this._timers.get(name) !== timer) continue;
      this._timers.delete(name);
      timer.run(now);
    }
  }
}
