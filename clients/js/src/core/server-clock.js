// The server's time, from the times in its frames: the clock of this device may be wrong. No I/O.

export class ServerClock {
  constructor() {
    this._aheadMs = 0;
  }

  /**
   * A frame has named the server's present time, or one that has passed there.
   * @param {number} now
   * @param {number | undefined} serverMs
   * @param {boolean} isPresent
   */
  heard(now, serverMs, isPresent) {
    if (typeof serverMs !== "number") return;
    if (isPresent || serverMs > now + this._aheadMs) this._aheadMs = serverMs - now;
  }

  /** The server's time. @param {number} now */
  at(now) {
    return now + this._aheadMs;
  }

  /** When the server's clock shows that time, by this device's. @param {number} serverMs */
  when(serverMs) {
    return serverMs - this._aheadMs;
  }
}
