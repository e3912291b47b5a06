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
    constructor(host: ConnectionHost, options: {
        backoffMinMs: number;
        backoffMaxMs: number;
        connectTimeoutMs: number;
        ackTimeoutMs: number;
        heartbeatMs: number;
        random: () => number;
    });
    _host: ConnectionHost;
    _options: {
        backoffMinMs: number;
        backoffMaxMs: number;
        connectTimeoutMs: number;
        ackTimeoutMs: number;
        heartbeatMs: number;
        random: () => number;
    };
    _backoff: Backoff;
    timers: Timers;
    /** @type {Phase} */
    phase: Phase;
    /** @type {string | null} */
    reason: string | null;
    /** @type {number | null} */
    retryAt: number | null;
    _isNetworkUp: boolean;
    _heartbeatMs: number;
    _heardAt: number;
    _hintMs: number;
    _isExpired: boolean;
    /** The application gives another token when the server refuses one. */
    canAskForToken: boolean;
    _hasAsked: boolean;
    _wasReadyAt: number;
    /** Why the connection is about to end. @type {{reason: string, at: number} | null} */
    _explained: {
        reason: string;
        at: number;
    } | null;
    get isReady(): boolean;
    /** @param {number} now */
    start(now: number): void;
    /** Disconnects. */
    stop(): void;
    /** Stops for good, as when there is no token for the user any more. @param {string} reason */
    end(reason: string): void;
    /** @param {number} now */
    networkUp(now: number): void;
    /** @param {number} now */
    networkDown(now: number): void;
    /** Checks the connection after the device was asleep or the page hidden. @param {number} now */
    wake(now: number): void;
    /** @param {number} now */
    tokenReady(now: number): void;
    /**
     * @param {number} now
     * @param {string} reason
     * @param {boolean} isFinal the session is over
     * @param {number} [retryAfterMs]
     */
    tokenFailed(now: number, reason: string, isFinal: boolean, retryAfterMs?: number): void;
    /** @param {number} now */
    opened(now: number): void;
    /** Any frame: the connection lives. @param {number} now */
    heard(now: number): void;
    /**
     * Something was sent that must be answered. It is repeated after one ackTimeoutMs; when nothing at all was heard
     * after a second one, the connection is dead.
     * @param {number} now
     */
    asked(now: number): void;
    /** @param {number} now @param {number} ms */
    _expectLife(now: number, ms: number): void;
    /** @param {number} now */
    _ping(now: number): void;
    /** @param {number} now @param {number} heartbeatMs */
    authOk(now: number, heartbeatMs: number): void;
    /**
     * AUTH_FAIL or an ERROR that belongs to no request: the close that follows is explained by it.
     * @param {number} now
     * @param {string} reason
     * @param {number} retryAfterMs
     */
    explain(now: number, reason: string, retryAfterMs: number): void;
    /**
     * The socket has gone.
     * @param {number} now
     * @param {number} code
     */
    lost(now: number, code: number): void;
    /** @param {number} now */
    tick(now: number): void;
    /** @param {number} now */
    _beat: (now: number) => void;
    /** @param {number} now */
    _connect(now: number): void;
    /** @param {number} now @param {string} reason */
    _wait(now: number, reason: string): void;
    /** @param {number} now @param {string} reason */
    _giveUp(now: number, reason: string): void;
    /** @param {number} now */
    _noteEnd(now: number): void;
    /** @param {string} reason */
    _end(reason: string): void;
    /** @param {number} code 0: it has gone by itself */
    _leave(code: number): void;
    /** @param {Phase} phase @param {string | null} reason @param {number | null} [retryAt] */
    _to(phase: Phase, reason: string | null, retryAt?: number | null): void;
}
export type Phase = "idle" | "waiting" | "token" | "opening" | "signing_in" | "ready" | "ended";
/**
 * What the connection makes the engine do.
 */
export type ConnectionHost = {
    /**
     * open a socket; then `opened` or `lost`
     */
    open: () => void;
    /**
     * close the socket; nothing is heard of it any more
     */
    drop: (code: number) => void;
    /**
     * then `tokenReady` or `tokenFailed`
     */
    needToken: (isExpired: boolean) => void;
    authFrame: () => object;
    send: (frame: object) => void;
    /**
     * the phase, the reason or the time of the next attempt
     */
    changed: () => void;
    ended: (reason: string, forgetSession: boolean) => void;
    /**
     * what was on the wire is lost
     */
    disconnected: () => void;
};
import { Backoff } from "./backoff.js";
import { Timers } from "./timers.js";
