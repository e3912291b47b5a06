// What can be set, and to what it is set by default. docs/clients.md explains each.

/**
 * @typedef {object} EngineOptions
 * @property {number} gapWaitMs
 * @property {number} ackDelayMs
 * @property {number} ackTimeoutMs
 * @property {number} heartbeatMs 0: what the server says
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

/** @type {EngineOptions} */
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
 * @param {Partial<EngineOptions>} given
 * @returns {EngineOptions}
 */
export function withDefaults(given) {
  const known = Object.entries(given).filter(([name, value]) => name in DEFAULTS && value !== undefined);
  return { ...DEFAULTS, ...Object.fromEntries(known) };
}
