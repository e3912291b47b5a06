/**
 * @param {Partial<EngineOptions>} given
 * @returns {EngineOptions}
 */
export function withDefaults(given: Partial<EngineOptions>): EngineOptions;
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
export const DEFAULTS: EngineOptions;
export type EngineOptions = {
    gapWaitMs: number;
    ackDelayMs: number;
    ackTimeoutMs: number;
    /**
     * 0: what the server says
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
