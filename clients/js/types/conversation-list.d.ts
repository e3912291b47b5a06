/**
 * The listed conversations: pinned ones first, then by newest activity.
 * @param {Iterable<ConversationState>} conversations
 * @returns {ConversationState[]}
 */
export function sortConversations(conversations: Iterable<ConversationState>): ConversationState[];
export class ConversationList {
    /**
     * @param {Call} call
     * @param {Driver} driver
     * @param {() => number} clock
     * @param {(error: unknown) => void} failed
     */
    constructor(call: Call, driver: Driver, clock: () => number, failed: (error: unknown) => void);
    _call: import("./users.js").Call;
    _driver: Driver;
    _clock: () => number;
    _failed: (error: unknown) => void;
    _cursor: string;
    _hasMore: boolean;
    /** @type {Set<string>} */
    _seen: Set<string>;
    /** @type {Promise<boolean> | null} */
    _loading: Promise<boolean> | null;
    /** @type {ReturnType<typeof setTimeout> | null} */
    _retry: ReturnType<typeof setTimeout> | null;
    _round: number;
    /** Loads the first page in the background. */
    reload(): void;
    stop(): void;
    /** Loads the next page; returns whether there are more. @param {number} [limit] */
    more(limit?: number): Promise<boolean>;
    /** @param {number} limit */
    _load(limit: number): Promise<boolean>;
    /** @param {number} limit */
    _fetch(limit: number): Promise<any>;
    /** @param {any[]} rows of the API */
    apply(rows: any[]): void;
}
export type Call = import("./users.js").Call;
import type { ConversationState } from "./core/conversation-state.js";
import type { Driver } from "./driver.js";
