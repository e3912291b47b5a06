export class Typists {
    /**
     * @param {Timers} timers
     * @param {(conversationId: string, userId: string, on: boolean) => void} changed
     */
    constructor(timers: Timers, changed: (conversationId: string, userId: string, on: boolean) => void);
    _timers: Timers;
    _changed: (conversationId: string, userId: string, on: boolean) => void;
    /** @type {Map<string, Set<string>>} */
    _typists: Map<string, Set<string>>;
    /** @param {string} conversationId */
    in(conversationId: string): string[];
    /** @param {number} now @param {string} conversationId @param {string} userId @param {boolean} on */
    receive(now: number, conversationId: string, userId: string, on: boolean): void;
    /** @param {string} conversationId @param {string} userId */
    stop(conversationId: string, userId: string): void;
    /** The connection has ended. */
    clear(): void;
}
import type { Timers } from "./timers.js";
