// The options of a client and their defaults. docs/clients.md lists them for both SDKs.

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
export const DEFAULTS = {
  gapWaitMs: 150,
  ackDelayMs: 50,
  ackTimeoutMs: 10_000,
  heartbeatMs: 0,
  connectTimeoutMs: 10_000,
  backoffMinMs: 500,
  backoffMaxMs: 30_000,
  provisionalMs: 60_000,
  windowSize: 500,
  maxConversations: 200,
  maxInFlight: 32,
  maxPending: 10_000,
  random: Math.random,
};

/**
 * @param {Partial<Options>} given
 * @returns {Options}
 */
export function withDefaults(given) {
  const known = Object.entries(given).filter(([name, value]) => name in DEFAULTS && value !== undefined);
  return { ...DEFAULTS, ...Object.fromEntries(known) };
}
