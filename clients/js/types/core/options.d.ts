/**
 * @param {Partial<Options>} given
 * @returns {Options}
 */
export function withDefaults(given: Partial<Options>): Options;
/** @import { Storage } from "../types.js" */
/**
 * @typedef {object} ClientOptions
 * @property {string} url the HTTP address of the server
 * @property {Storage} [storage]
 * @property {string} [deviceId]
 * @property {number} [platformId]
 * @property {() => Promise<string | null | undefined>} [getToken] gives an access token of the user who uses the application
 * @property {any} [WebSocket] the class to use; `ws` in Node before 22
 * @property {typeof globalThis.fetch} [fetch]
 * @property {number} [gapWaitMs]
 * @property {number} [ackDelayMs]
 * @property {number} [ackTimeoutMs]
 * @property {number} [heartbeatMs]
 * @property {number} [connectTimeoutMs]
 * @property {number} [backoffMinMs]
 * @property {number} [backoffMaxMs]
 * @property {number} [provisionalMs]
 * @property {number} [windowSize]
 * @property {number} [maxConversations]
 * @property {number} [maxInFlight]
 * @property {number} [maxPending]
 */
/**
 * @typedef {object} Options
 * @property {number} gapWaitMs
 * @property {number} ackDelayMs
 * @property {number} ackTimeoutMs
 * @property {number} heartbeatMs 0: as the server asks for
 * @property {number} connectTimeoutMs
 * @property {number} backoffMinMs
 * @property {number} backoffMaxMs
 * @property {number} provisionalMs
 * @property {number} windowSize
 * @property {number} maxConversations
 * @property {number} maxInFlight
 * @property {number} maxPending
 * @property {() => number} random between 0 and 1
 */
/** @type {Options} */
export const DEFAULTS: Options;
export type ClientOptions = {
    /**
     * the HTTP address of the server
     */
    url: string;
    storage?: Storage | undefined;
    deviceId?: string | undefined;
    platformId?: number | undefined;
    /**
     * gives an access token of the user who uses the application
     */
    getToken?: (() => Promise<string | null | undefined>) | undefined;
    /**
     * the class to use; `ws` in Node before 22
     */
    WebSocket?: any;
    fetch?: typeof fetch | undefined;
    gapWaitMs?: number | undefined;
    ackDelayMs?: number | undefined;
    ackTimeoutMs?: number | undefined;
    heartbeatMs?: number | undefined;
    connectTimeoutMs?: number | undefined;
    backoffMinMs?: number | undefined;
    backoffMaxMs?: number | undefined;
    provisionalMs?: number | undefined;
    windowSize?: number | undefined;
    maxConversations?: number | undefined;
    maxInFlight?: number | undefined;
    maxPending?: number | undefined;
};
export type Options = {
    gapWaitMs: number;
    ackDelayMs: number;
    ackTimeoutMs: number;
    /**
     * 0: as the server asks for
     */
    heartbeatMs: number;
    connectTimeoutMs: number;
    backoffMinMs: number;
    backoffMaxMs: number;
    provisionalMs: number;
    windowSize: number;
    maxConversations: number;
    maxInFlight: number;
    maxPending: number;
    /**
     * between 0 and 1
     */
    random: () => number;
};
import type { Storage } from "../types.js";
