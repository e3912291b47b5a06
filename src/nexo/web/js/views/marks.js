/**
 * The line above what is new. Its count is that of the moment when the conversation was opened, or when its reader
 * returned: what is read as it arrives is not new to them.
 */

export class Marks {
  /** @type {number | null} */
  newAfter = null;
  newCount = 0;
  #isAway = false;
  #upTo = 0;

  /** At opening. @param {number} readSeq @param {number} unread @param {number} headSeq */
  set(readSeq, unread, headSeq) {
    this.newAfter = unread > 0 ? readSeq : null;
    this.newCount = unread;
    this.#upTo = headSeq;
  }

  /** @param {number} seq @param {boolean} isAway it is not looked at, or too much arrives at once to be seen */
  arrived(seq, isAway) {
    if (!isAway || seq <= this.#upTo) {
      this.#isAway &&= isAway;
      return;
    }
    this.#upTo = seq;
    if (!this.#isAway) {
      this.newAfter = seq - 1;
      this.newCount = 0;
    }
    this.#isAway = true;
    this.newCount += 1;
  }

  /** It is looked at: the count stays as it is. */
  back() {
    this.#isAway = false;
  }

  clear() {
    this.newAfter = null;
    this.newCount = 0;
    this.#isAway = false;
  }
}
