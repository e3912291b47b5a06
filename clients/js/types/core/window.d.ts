/** @import { PlacedMessage } from "../types.js" */
export class Window {
    /** @param {number} size */
    constructor(size: number);
    size: number;
    /** @type {PlacedMessage[]} */
    messages: PlacedMessage[];
    /** Whether it reaches to the newest message that was given. */
    isAtEnd: boolean;
    /** Whether there may be older ones to load. */
    hasEarlier: boolean;
    /** All visible messages from here to there are in the window. */
    fromSeq: number;
    toSeq: number;
    /** A full window leaves new messages out instead of dropping its oldest. */
    keepsPlace: boolean;
    get lastSeq(): number | null;
    /** @param {string} serverMsgId */
    find(serverMsgId: string): PlacedMessage | undefined;
    /** @param {(message: PlacedMessage) => boolean} test */
    findLast(test: (message: PlacedMessage) => boolean): PlacedMessage | undefined;
    /** @param {number} seq */
    at(seq: number): PlacedMessage | undefined;
    /**
     * What the places from `fromSeq` to `toSeq` hold, at the end, in order.
     * @param {readonly PlacedMessage[]} given
     * @param {number} fromSeq
     * @param {number} toSeq
     */
    append(given: readonly PlacedMessage[], fromSeq: number, toSeq: number): void;
    /**
     * Older messages in front.
     * @param {readonly PlacedMessage[]} older ascending
     * @param {boolean} hasMore
     * @returns {number} how many were new
     */
    prepend(older: readonly PlacedMessage[], hasMore: boolean): number;
    /**
     * Newer messages behind, after paging back.
     * @param {readonly PlacedMessage[]} newer ascending
     * @param {number} toSeq
     * @param {boolean} isAtEnd
     * @returns {number} how many were new
     */
    extend(newer: readonly PlacedMessage[], toSeq: number, isAtEnd: boolean): number;
    /**
     * Another place.
     * @param {readonly PlacedMessage[]} messages ascending
     * @param {number} toSeq
     * @param {boolean} hasEarlier
     * @param {boolean} isAtEnd
     */
    reset(messages: readonly PlacedMessage[], toSeq: number, hasEarlier: boolean, isAtEnd: boolean): void;
    /** Let go of all but the newest. @param {number} count */
    shrink(count: number): void;
    /**
     * @param {(message: PlacedMessage) => PlacedMessage} change gives the same object where nothing changes
     * @returns {boolean} whether anything did
     */
    map(change: (message: PlacedMessage) => PlacedMessage): boolean;
    /**
     * How many in (low, high] fulfil it; null when not all of those are in memory.
     * @param {number} low
     * @param {number} high
     * @param {(message: PlacedMessage) => boolean} test
     */
    count(low: number, high: number, test: (message: PlacedMessage) => boolean): number | null;
    /** @param {number} count */
    _cutFront(count: number): void;
}
import type { PlacedMessage } from "../types.js";
