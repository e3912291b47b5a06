// The interval between sends after the server refused some as too fast: doubled at once, shortened bit by bit.

const FIRST_MS = 40;
const MAX_MS = 2000;
const SAME_TROUBLE_MS = 500; // what was on the wire together is refused together
const RECOVERY = 0.97;
const NOTHING_MS = 4;

export class SendRate {
  constructor() {
    this._intervalMs = 0;
    this._nextAt = 0;
    this._slowedAt = -Infinity;
  }

  /** When the next one may go. */
  get nextAt() {
    return this._nextAt;
  }

  /** @param {number} now */
  mayGo(now) {
    return now >= this._nextAt;
  }

  /** @param {number} now */
  sent(now) {
    if (this._intervalMs > 0) this._nextAt = Math.max(now, this._nextAt) + this._intervalMs;
  }

  /** @param {number} now @param {number} retryAfterMs */
  slowDown(now, retryAfterMs) {
    if (now - this._slowedAt > SAME_TROUBLE_MS) {
      this._slowedAt = now;
      this._intervalMs = Math.min(MAX_MS, Math.max(FIRST_MS, this._intervalMs * 2));
    }
    this._nextAt = Math.max(this._nextAt, now + Math.max(retryAfterMs, this._intervalMs));
  }

  worked() {
    this._intervalMs *= RECOVERY;
    if (this._intervalMs < NOTHING_MS) this._intervalMs = 0;
  }
}
