// The state of the connection: when to open it, after what pause, when it is dead, when to stop for good. No I/O.

import { Backoff } from "./backoff.js";
import { Timers } from "./timers.js";

const STEADY_MS = 3000; // after that long the next trouble is a new one
const RECENT_MS = 60_000; // a server that was there so recently is back soon:
const RECENT_FAILURES = 3; // the pauses do not grow further than after so many failures
const EXPLAINED_MS = 2000; // the close follows the error that announces it
const PROBE_AFTER_MS = 5000;
const FATAL = [4000, 4499];
const OTHER_TOKEN_HELPS = new Set(["session_invalid", "unauthorized"]);
const FORGET_SESSION = new Set([
  "session_invalid", "unauthorized", "reauth_uid_mismatch", "user_disabled", "user_deleted",
]); // prettier-ignore

/** @typedef {"idle" | "waiting" | "token" | "opening" | "signing_in" | "ready" | "ended"} Phase */

/**
 * What the connection makes the engine do.
 * @typedef {object} ConnectionHost
 * @property {() => void} open open a socket; then `opened` or `lost`
 * @property {(code: number) => void} drop close the socket; nothing is heard of it any more
 * @property {(isExpired: boolean) => void} needToken then `tokenReady` or `tokenFailed`
 * @property {() => object} authFrame
 * @property {(frame: object) => void} send
 * @property {() => void} changed the phase, the reason or the time of the next attempt
 * @property {(reason: string, forgetSession: boolean) => void} ended
 * @property {() => void} disconnected what was on the wire is lost
 */

export class Connection {
  /**
   * @param {ConnectionHost} host
   * @param {object} options
   * @param {number} options.backoffMinMs
   * @param {number} options.backoffMaxMs
   * @param {number} options.connectTimeoutMs
   * @param {number} options.ackTimeoutMs
   * @param {number} options.heartbeatMs 0: as the server asks for
   * @param {() => number} options.random
   */
  constructor(host, options) {
    this._host = host;
    this._options = options;
    this._backoff = new Backoff(options.backoffMinMs, options.backoffMaxMs, options.random);
    this.timers = new Timers();
    /** @type {Phase} */
    this.phase = "idle";
    /** @type {string | null} */
    this.reason = null;
    /** @type {number | null} */
    this.retryAt = null;
    this._isNetworkUp = true;
    this._heartbeatMs = 30_000;
    this._heardAt = 0;
    this._hintMs = 0;
    this._isExpired = false;
    /** The application gives another token when the server refuses one. */
    this.canAskForToken = false;
    this._hasAsked = false;
    this._wasReadyAt = -Infinity; // when the last connection that was in use ended
    /** Why the connection is about to end. @type {{reason: string, at: number} | null} */
    this._explained = null;
  }

  get isReady() {
    return this.phase === "ready";
  }

  // -- calls --------------------------------------------------------------------------------------------

  /** @param {number} now */
  start(now) {
    if (this.phase !== "idle" && this.phase !== "ended") return;
    this._backoff.reset();
    this._hintMs = 0;
    this._isExpired = false;
    this._hasAsked = false;
    this._connect(now);
  }

  /** Disconnects. */
  stop() {
    this._leave(1000);
    this._to("idle", null);
  }

  /** Stops for good, as when there is no token for the user any more. @param {string} reason */
  end(reason) {
    if (this.phase !== "idle" && this.phase !== "ended") this._end(reason);
  }

  /** @param {number} now */
  networkUp(now) {
    this._isNetworkUp = true;
    if (this.phase === "waiting") {
      this._backoff.reset();
      this._connect(now);
    }
  }

  /** @param {number} now */
  networkDown(now) {
    this._isNetworkUp = false;
    if (this.phase === "idle" || this.phase === "ended") return;
    this._leave(1000);
    this._wait(now, "offline");
  }

  /** Checks the connection after the device was asleep or the page hidden. @param {number} now */
  wake(now) {
    if (this.phase === "waiting" && this._isNetworkUp) this._connect(now);
    else if (this.phase === "ready" && now - this._heardAt > PROBE_AFTER_MS) this._ping(now);
  }

  // -- what happens -----------------------------------------------------------------------------------------

  /** @param {number} now */
  tokenReady(now) {
    if (this.phase !== "token") return;
    this._to("opening", this.reason);
    this.timers.set("connect", now + this._options.connectTimeoutMs, (later) => this._giveUp(later, "timeout"));
    this._host.open();
  }

  /**
   * @param {number} now
   * @param {string} reason
   * @param {boolean} isFinal the session is over
   * @param {number} [retryAfterMs]
   */
  tokenFailed(now, reason, isFinal, retryAfterMs = 0) {
    if (this.phase !== "token") return;
    if (isFinal) this._end(reason);
    else {
      this._hintMs = retryAfterMs;
      this._wait(now, reason);
    }
  }

  /** @param {number} now */
  opened(now) {
    if (this.phase !== "opening") return;
    this._to("signing_in", this.reason);
    this._heardAt = now;
    this._host.send(this._host.authFrame());
  }

  /** Any frame: the connection lives. @param {number} now */
  heard(now) {
    this._heardAt = now;
    this.timers.clear("dead");
  }

  /**
   * Something was sent that must be answered. It is repeated after one ackTimeoutMs; when nothing at all was heard
   * after a second one, the connection is dead.
   * @param {number} now
   */
  asked(now) {
    this._expectLife(now, 2 * this._options.ackTimeoutMs);
  }

  /** @param {number} now @param {number} ms */
  _expectLife(now, ms) {
    if (now + ms < this.timers.at("dead")) this.timers.set("dead", now + ms, (later) => this._giveUp(later, "timeout"));
  }

  /** @param {number} now */
  _ping(now) {
    this._host.send({ type: "PING" });
    this._expectLife(now, this._options.ackTimeoutMs);
  }

  /** @param {number} now @param {number} heartbeatMs */
  authOk(now, heartbeatMs) {
    this._isExpired = false;
    this._hasAsked = false;
    if (this.phase !== "signing_in") return;
    this.timers.clear("connect");
    this._heartbeatMs = this._options.heartbeatMs || heartbeatMs || 30_000;
    this._hintMs = 0;
    this._explained = null;
    this.timers.set("heartbeat", now + this._heartbeatMs, this._beat);
    this.timers.set("steady", now + STEADY_MS, () => this._backoff.reset());
    this._to("ready", null);
  }

  /**
   * AUTH_FAIL or an ERROR that belongs to no request: the close that follows is explained by it.
   * @param {number} now
   * @param {string} reason
   * @param {number} retryAfterMs
   */
  explain(now, reason, retryAfterMs) {
    this._explained = { reason, at: now };
    this._hintMs = retryAfterMs;
    if (reason === "token_expired") this._isExpired = true;
  }

  /**
   * The socket has gone.
   * @param {number} now
   * @param {number} code
   */
  lost(now, code) {
    if (this.phase === "idle" || this.phase === "ended" || this.phase === "waiting") return;
    const explained = this._explained;
    const isExplained = explained !== null && now - explained.at <= EXPLAINED_MS;
    const reason = isExplained ? explained.reason : "network";
    if (!isExplained) this._hintMs = 0;
    // a server that announces its stop gives a time to return: no reason to stay away for longer
    if (this.phase === "ready" && reason === "server_shutdown") this._backoff.reset();
    this._noteEnd(now);
    this._leave(0);
    if (code === 4603) this._isExpired = true;
    const asksAgain = this.canAskForToken && OTHER_TOKEN_HELPS.has(reason) && !this._hasAsked;
    if (asksAgain) this._hasAsked = this._isExpired = true;
    const isFatal = !asksAgain && code >= /** @type {number} */ (FATAL[0]) && code <= /** @type {number} */ (FATAL[1]);
    if (isFatal) this._end(reason === "network" ? `closed_${code}` : reason);
    else if (this._isExpired && this._backoff.attempts === 0) {
      this._backoff.next();
      this._connect(now); // a new token is all it takes
    } else this._wait(now, reason);
  }

  /** @param {number} now */
  tick(now) {
    this.timers.run(now);
  }

  // -- inside -----------------------------------------------------------------------------------------------

  /** @param {number} now */
  _beat = (now) => {
    if (this.phase !== "ready") return;
    const quiet = now - this._heardAt;
    if (quiet >= this._heartbeatMs) {
      this._ping(now);
      this.timers.set("heartbeat", now + this._heartbeatMs, this._beat);
    } else {
      this.timers.set("heartbeat", this._heardAt + this._heartbeatMs, this._beat);
    }
  };

  /** @param {number} now */
  _connect(now) {
    if (!this._isNetworkUp) {
      this._wait(now, "offline");
      return;
    }
    const isExpired = this._isExpired;
    this._isExpired = false;
    this._explained = null;
    this._to("token", this.reason);
    this._host.needToken(isExpired);
  }

  /** @param {number} now @param {string} reason */
  _wait(now, reason) {
    if (now - this._wasReadyAt < RECENT_MS) this._backoff.limit(RECENT_FAILURES);
    const pause = this._backoff.next(this._hintMs);
    this._hintMs = 0;
    const at = this._isNetworkUp ? now + pause : null;
    if (at !== null) this.timers.set("retry", at, (later) => this._connect(later));
    this._to("waiting", reason, at);
  }

  /** @param {number} now @param {string} reason */
  _giveUp(now, reason) {
    this._noteEnd(now);
    this._leave(4900);
    this._wait(now, reason);
  }

  /** @param {number} now */
  _noteEnd(now) {
    if (this.phase === "ready") this._wasReadyAt = now;
  }

  /** @param {string} reason */
  _end(reason) {
    this._leave(1000);
    this._to("ended", reason);
    this._host.ended(reason, FORGET_SESSION.has(reason));
  }

  /** @param {number} code 0: it has gone by itself */
  _leave(code) {
    const hadSocket = this.phase === "opening" || this.phase === "signing_in" || this.phase === "ready";
    this.timers.clearAll();
    if (!hadSocket) return;
    if (code > 0) this._host.drop(code);
    this._host.disconnected();
  }

  /** @param {Phase} phase @param {string | null} reason @param {number | null} [retryAt] */
  _to(phase, reason, retryAt = null) {
    this.phase = phase;
    this.reason = reason;
    this.retryAt = retryAt;
    this._host.changed();
  }
}
