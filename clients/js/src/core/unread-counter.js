// A number of unread messages: the server's count at a seq, kept exact by what arrived and was read since.

/** @typedef {(low: number, high: number) => number | null} Count how many lie in (low, high]; null: not known here */

export class UnreadCounter {
  constructor() {
    this.value = 0;
    /** What is counted lies above the read cursor and not above this. */
    this.at = 0;
    /** The value is a guess until the server is asked. */
    this.isStale = false;
  }

  /**
   * The server's count of what lies in (readSeq, headSeq], as of some moment.
   * @param {number} value
   * @param {number} readSeq
   * @param {number} headSeq
   * @param {number} cursor this device's read cursor, at least readSeq
   * @param {Count} count
   */
  set(value, readSeq, headSeq, cursor, count) {
    if (headSeq < this.at && !this.isStale) return; // older than what is known here
    const later = count(headSeq, this.at);
    if (cursor >= Math.max(headSeq, this.at)) {
      this.value = 0;
      this.isStale = false;
    } else if (cursor > readSeq) {
      // it does not know yet what was read here
      const read = count(readSeq, Math.min(cursor, headSeq));
      this.isStale = read === null || later === null;
      this.value = Math.max(0, value - (read ?? 0) + (later ?? 0));
    } else {
      this.isStale = later === null;
      this.value = value + (later ?? 0);
    }
    this.at = Math.max(this.at, headSeq);
  }

  /** One more, if it was not counted by the server already. @param {number} seq @param {boolean} counts */
  given(seq, counts) {
    if (seq <= this.at) return;
    this.at = seq;
    if (counts) this.value += 1;
  }

  /**
   * The read cursor has moved.
   * @param {number} from
   * @param {number} to
   * @param {Count} count
   */
  read(from, to, count) {
    if (to >= this.at) {
      this.value = 0;
      this.at = Math.max(this.at, to);
      this.isStale = false;
      return;
    }
    const left = count(to, this.at);
    if (left !== null) {
      this.value = left;
      this.isStale = false;
      return;
    }
    const gone = count(from, to);
    this.value = Math.max(0, this.value - (gone ?? 0));
    if (gone === null) this.isStale = true;
  }
}
