export class Baselines {
    /**
     * @param {Timers} timers
     * @param {(baselines: Map<string, number>) => void} store
     */
    constructor(timers: Timers, store: (baselines: Map<string, number>) => void);
    _timers: Timers;
    _store: (baselines: Map<string, number>) => void;
    /** The most recent last. @type {Map<string, number>} */
    all: Map<string, number>;
    /** @type {Map<string, number>} */
    _changed: Map<string, number>;
    /** @param {string} conversationId */
    get(conversationId: string): number | undefined;
    /** From the storage. @param {string} conversationId @param {number} seq */
    load(conversationId: string, seq: number): void;
    /** @param {number} now @param {string} conversationId @param {number} seq */
    note(now: number, conversationId: string, seq: number): void;
    /** Stores it at once, also if it has not moved. @param {string} conversationId @param {number} seq */
    keep(conversationId: string, seq: number): void;
    flush(): void;
}
import type { Timers } from "./timers.js";
