// Pauses between attempts: exponential, with full jitter, so that many clients do not return at the same moment.

export class Backoff {
  /**
   * @param {number} minMs
   * @param {number} maxMs
   * @param {() => number} random
   */
  constructor(minMs, maxMs, random) {
    this._minMs = minMs;
    this._maxMs = maxMs;
    this._random = random;
    this.attempts = 0;
  }

  /**
   * How long to wait before the next attempt.
   * @param {number} [hintMs] the server's hint: never less than that
   */
  next(hintMs = 0) {
    const ceiling = Math.min(this._maxMs, this._minMs * 2 ** Math.min(this.attempts, 30));
    this.attempts += 1;
    return hintMs + this._random() * ceiling;
  }

  /** Let the next pauses be no longer than after so many failures. @param {number} failures */
  limit(failures) {
    this.attempts = Math.min(this.attempts, failures);
  }

  reset() {
    this.attempts = 0;
  }
}
