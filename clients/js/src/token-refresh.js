// Refreshes the session before its access token expires, while the client is connected.

import { Sessions } from "./sessions.js";

const RETRY_MS = 15_000;
const TIMEOUT_MAX_MS = 2 ** 31 - 1;

export class TokenRefresh {
  /**
   * @param {Sessions} sessions
   * @param {() => number} clock
   * @param {() => number} random
   * @param {(reason: string) => void} ended called when the application gives no token
   */
  constructor(sessions, clock, random, ended) {
    this._sessions = sessions;
    this._clock = clock;
    this._random = random;
    this._ended = ended;
    /** @type {ReturnType<typeof setTimeout> | null} */
    this._timer = null;
  }

  /** Sets the timer for the current session. */
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
    this._sessions.refresh(session).catch((error) => {
      // when a session of the server's own tokens is over, the server also closes the connection
      if (this._sessions.canAsk && Sessions.isOver(error)) this._ended(error.reason);
      else this._wait(RETRY_MS * (0.5 + this._random()));
    });
  }
}
