/**
 * @typedef {object} CatchUpHost
 * @property {(frame: object) => void} ask send a frame that is answered
 * @property {(conversationId: string) => number | null} pullFrom the first seq that is missing, null when none is
 * @property {(conversationId: string) => void} abandon it cannot be read: what is here is all
 * @property {(conversationId: string) => boolean} isUnclear its entry is still needed
 * @property {() => void} caughtUp everything that the last SYNC reported is here
 */
export class CatchUp {
    /**
     * @param {CatchUpHost} host
     * @param {object} options
     * @param {number} options.gapWaitMs
     * @param {number} options.ackTimeoutMs
     * @param {() => number} options.random
     */
    constructor(host: CatchUpHost, options: {
        gapWaitMs: number;
        ackTimeoutMs: number;
        random: () => number;
    });
    _host: CatchUpHost;
    _options: {
        gapWaitMs: number;
        ackTimeoutMs: number;
        random: () => number;
    };
    timers: Timers;
    /** Conversations to pull, in that order. @type {Set<string>} */
    _wanted: Set<string>;
    /** The pull under way: its id. @type {Map<string, string>} */
    _pulls: Map<string, string>;
    /** Waiting for SYNC, and what it must bring before the client is up to date. */
    _isSyncing: boolean;
    _isCaughtUp: boolean;
    /** @type {Set<string>} */
    _behind: Set<string>;
    /** Entries to ask for one by one. @type {Set<string>} */
    _entries: Set<string>;
    /** What RESYNC is to ask for; null: everything. @type {Set<string> | null} */
    _resyncIn: Set<string> | null;
    _count: number;
    /** Whether everything that the server reported at signing in is here. */
    get isCaughtUp(): boolean;
    /** Signed in: the server sends SYNC by itself. @param {number} now */
    start(now: number): void;
    /** The connection has gone. */
    stop(): void;
    /** @param {number} now @param {object} question to repeat when there is no answer */
    _expectSync(now: number, question: object): void;
    /** @param {number} now @param {object} question */
    _askSync(now: number, question: object): void;
    /**
     * A page of SYNC was taken.
     * @param {number} now
     * @param {boolean} hasMore
     * @param {string | undefined} cursor
     */
    synced(now: number, hasMore: boolean, cursor: string | undefined): void;
    /**
     * Pushes may have been lost.
     * @param {number} now
     * @param {number} afterMs
     * @param {string[] | undefined} conversationIds
     */
    resync(now: number, afterMs: number, conversationIds: string[] | undefined): void;
    /**
     * One conversation is not known, or not well: ask for its entry.
     * @param {number} now
     * @param {string} conversationId
     * @param {number} [delayMs]
     */
    wantEntry(now: number, conversationId: string, delayMs?: number): void;
    /**
     * Something is missing. Unless `isSure`, it may be on its way: wait a moment.
     * @param {number} now
     * @param {string} conversationId
     * @param {object} how
     * @param {boolean} [how.isSure]
     * @param {boolean} [how.holdsUp] the client is not up to date before this is here
     */
    want(now: number, conversationId: string, { isSure, holdsUp }?: {
        isSure?: boolean | undefined;
        holdsUp?: boolean | undefined;
    }): void;
    /** @param {number} now @param {string} conversationId @param {number} [ms] */
    _wait(now: number, conversationId: string, ms?: number): void;
    /**
     * Messages arrived: the gap may be filled, or smaller.
     * @param {number} now
     * @param {string} conversationId
     */
    progressed(now: number, conversationId: string): void;
    /**
     * PULL_OK was taken.
     * @param {number} now
     * @param {string} conversationId
     */
    pulled(now: number, conversationId: string): void;
    /**
     * An ERROR with the id of one of these questions.
     * @param {number} now
     * @param {string} id
     * @param {string} reason
     * @param {number} retryAfterMs
     * @returns {boolean} whether it was one
     */
    failed(now: number, id: string, reason: string, retryAfterMs: number): boolean;
    /** @param {number} now @param {number} retryAfterMs */
    _retrySync(now: number, retryAfterMs: number): void;
    /** @param {number} now */
    _pump(now: number): void;
    /** @param {string} conversationId */
    _forgetPull(conversationId: string): void;
    /** @param {string} conversationId */
    _done(conversationId: string): void;
    _check(): void;
    /** @param {string} kind */
    _nextId(kind: string): string;
}
export type CatchUpHost = {
    /**
     * send a frame that is answered
     */
    ask: (frame: object) => void;
    /**
     * the first seq that is missing, null when none is
     */
    pullFrom: (conversationId: string) => number | null;
    /**
     * it cannot be read: what is here is all
     */
    abandon: (conversationId: string) => void;
    /**
     * its entry is still needed
     */
    isUnclear: (conversationId: string) => boolean;
    /**
     * everything that the last SYNC reported is here
     */
    caughtUp: () => void;
};
import { Timers } from "./timers.js";
