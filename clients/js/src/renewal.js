// Refreshing the session when most of its time is over, for as long as the client is connected.

/** @import { Sessions } from "./sessions.js" */

const AGAIN_MS = 15_000;
const TIMEOUT_MAX_MS = 2 ** 31 - 1;

export class Renewal {
  /**
   * @param {Sessions} sessions
   * @param {() => number} clock
   * @param {() => number} random
   */
  constructor(sessions, clock, random) {
    this._sessions = sessions;
    this._clock = clock;
    this._random = random;
    /** @type {ReturnType<typeof setTimeout> | null} */
    this._timer = null;
  }

  /** For the session there is now. */
  start() {
    this.stop();
    const session = this._sessions.current;
    if (session) this._wait(session.refreshAt - this._clock());
  }

  stop() {
    if (this._timer !== null) clearTimeout(this._timer);
    this._timer = null;
  }

  /** @param {number} ms */
  _wait(ms) {
    this.stop();
    this._timer = setTimeout(() => this._renew(), Math.min(TIMEOUT_MAX_MS, Math.max(0, ms)));
  }

  _renew() {
    this._timer = null;
    const session = this._sessions.current;
    if (!session) return;
    if (!this._sessions.isDue) return this.start();
    // a session that is over is told by the server on the connection, too
    this._sessions.refresh(session).catch(() => this._wait(AGAIN_MS * (0.5 + this._random())));
  }
}
