// The messages of one conversation that are in memory: a part without gaps, of bounded size.

/** @import { PlacedMessage } from "../types.js" */

export class Window {
  /** @param {number} size */
  constructor(size) {
    this.size = size;
    /** @type {PlacedMessage[]} */
    this.messages = [];
    /** Whether it reaches to the newest message that was given. */
    this.isAtEnd = true;
    /** Whether there may be older ones to load. */
    this.hasEarlier = true;
    /** All visible messages from here to there are in the window. */
    this.fromSeq = 0;
    this.toSeq = 0;
    /** A full window leaves new messages out instead of dropping its oldest. */
    this.keepsPlace = false;
  }

  get lastSeq() {
    return this.messages[this.messages.length - 1]?.seq ?? null;
  }

  /** @param {string} serverMsgId */
  find(serverMsgId) {
    return this.messages.find((message) => message.serverMsgId === serverMsgId);
  }

  /** @param {(message: PlacedMessage) => boolean} test */
  findLast(test) {
    for (let i = this.messages.length - 1; i >= 0; i -= 1) {
      const message = /** @type {PlacedMessage} */ (this.messages[i]);
      if (test(message)) return message;
    }
    return undefined;
  }

  /** @param {number} seq */
  at(seq) {
    let low = 0;
    let high = this.messages.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (/** @type {PlacedMessage} */ (this.messages[middle]).seq < seq) low = middle + 1;
      else high = middle;
    }
    const found = this.messages[low];
    return found?.seq === seq ? found : undefined;
  }

  /**
   * What the places from `fromSeq` to `toSeq` hold, at the end, in order.
   * @param {readonly PlacedMessage[]} given
   * @param {number} fromSeq
   * @param {number} toSeq
   */
  append(given, fromSeq, toSeq) {
    if (!this.isAtEnd || toSeq <= this.toSeq) return;
    if (this.messages.length === 0 || fromSeq > this.toSeq + 1) {
      if (given.length === 0) return;
      this.messages = [];
      this.fromSeq = fromSeq;
      this.hasEarlier = fromSeq > 1;
    }
    const last = this.lastSeq ?? 0;
    const fresh = given.filter((message) => message.seq > last);
    const room = this.keepsPlace ? this.size - this.messages.length : Infinity;
    this.messages.push(...fresh.slice(0, room));
    this.isAtEnd = fresh.length <= room;
    this.toSeq = this.isAtEnd ? toSeq : (this.lastSeq ?? 0);
    this._cutFront(this.size);
  }

  /**
   * Older messages in front.
   * @param {readonly PlacedMessage[]} older ascending
   * @param {boolean} hasMore
   * @returns {number} how many were new
   */
  prepend(older, hasMore) {
    const first = this.messages[0]?.seq ?? Infinity;
    const fresh = older.filter((message) => message.seq < first);
    this.messages.unshift(...fresh);
    this.hasEarlier = hasMore;
    this.fromSeq = hasMore ? (this.messages[0]?.seq ?? this.fromSeq) : 1;
    if (this.messages.length > this.size) {
      this.messages.length = this.size;
      this.toSeq = this.lastSeq ?? 0;
      this.isAtEnd = false;
    }
    return fresh.length;
  }

  /**
   * Newer messages behind, after paging back.
   * @param {readonly PlacedMessage[]} newer ascending
   * @param {number} toSeq
   * @param {boolean} isAtEnd
   * @returns {number} how many were new
   */
  extend(newer, toSeq, isAtEnd) {
    const last = this.lastSeq ?? 0;
    const fresh = newer.filter((message) => message.seq > last);
    this.messages.push(...fresh);
    this.toSeq = Math.max(this.toSeq, toSeq);
    this.isAtEnd = isAtEnd;
    this._cutFront(this.size);
    return fresh.length;
  }

  /**
   * Another place.
   * @param {readonly PlacedMessage[]} messages ascending
   * @param {number} toSeq
   * @param {boolean} hasEarlier
   * @param {boolean} isAtEnd
   */
  reset(messages, toSeq, hasEarlier, isAtEnd) {
    this.messages = messages.slice(-this.size);
    this.hasEarlier = hasEarlier || this.messages.length < messages.length;
    this.isAtEnd = isAtEnd;
    this.fromSeq = this.hasEarlier ? (this.messages[0]?.seq ?? toSeq + 1) : 1;
    this.toSeq = toSeq;
  }

  /** Let go of all but the newest. @param {number} count */
  shrink(count) {
    if (this.isAtEnd) {
      this._cutFront(count);
    } else {
      this.reset([], 0, true, true);
    }
  }

  /**
   * @param {(message: PlacedMessage) => PlacedMessage} change gives the same object where nothing changes
   * @returns {boolean} whether anything did
   */
  map(change) {
    let changed = false;
    this.messages = this.messages.map((message) => {
      const copy = change(message);
      if (copy !== message) changed = true;
      return copy;
    });
    return changed;
  }

  /**
   * How many in (low, high] fulfil it; null when not all of those are in memory.
   * @param {number} low
   * @param {number} high
   * @param {(message: PlacedMessage) => boolean} test
   */
  count(low, high, test) {
    if (high <= low) return 0;
    if (this.messages.length === 0 || this.fromSeq > low + 1 || high > this.toSeq) return null;
    let count = 0;
    for (const message of this.messages) if (message.seq > low && message.seq <= high && test(message)) count += 1;
    return count;
  }

  /** @param {number} count */
  _cutFront(count) {
    if (this.messages.length <= count) return;
    this.messages.splice(0, this.messages.length - count);
    this.fromSeq = this.messages[0]?.seq ?? this.fromSeq;
    this.hasEarlier = true;
  }
}
