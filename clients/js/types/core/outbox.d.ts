/** @param {string} reason */
export function isTransient(reason: string): boolean;
/**
 * @param {ConversationState} conversation
 * @param {any} content
 * @param {SendOptions} options
 * @param {string} order also the id, unless the application chose one
 * @param {number} now
 * @param {Upload | null} [upload]
 * @returns {OutboxItem}
 */
export function newItem(conversation: ConversationState, content: any, options: SendOptions, order: string, now: number, upload?: Upload | null): OutboxItem;
export class Outbox {
    /**
     * @param {object} options
     * @param {number} options.maxInFlight
     * @param {number} options.ackTimeoutMs
     * @param {number} options.backoffMinMs
     * @param {number} options.backoffMaxMs
     * @param {() => number} options.random
     */
    constructor(options: {
        maxInFlight: number;
        ackTimeoutMs: number;
        backoffMinMs: number;
        backoffMaxMs: number;
        random: () => number;
    });
    _options: {
        maxInFlight: number;
        ackTimeoutMs: number;
        backoffMinMs: number;
        backoffMaxMs: number;
        random: () => number;
    };
    /** @type {Map<string, Lane>} */
    _lanes: Map<string, Lane>;
    /** @type {Map<string, Entry>} */
    _entries: Map<string, Entry>;
    /** Those with `sentAt`. @type {Set<Entry>} */
    _onWire: Set<Entry>;
    /** Those whose files are not complete: in no lane yet. @type {Map<string, Entry>} */
    _uploads: Map<string, Entry>;
    _sendRate: SendRate;
    /** When `take` is worth calling next. */
    deadline: number;
    get size(): number;
    /** All, in the order in which they were made. */
    items(): OutboxItem[];
    /** @param {string} conversationId */
    itemsOf(conversationId: string): OutboxItem[];
    /** @param {string} clientMsgId */
    get(clientMsgId: string): Entry | undefined;
    /** @param {OutboxItem} item @param {boolean} isStored */
    add(item: OutboxItem, isStored: boolean): void;
    /** @param {string} clientMsgId */
    stored(clientMsgId: string): void;
    /** @param {string} clientMsgId @returns {OutboxItem | undefined} */
    remove(clientMsgId: string): OutboxItem | undefined;
    /** The ids of those whose files are to be uploaded, in order. */
    uploading(): string[];
    /** @param {string} clientMsgId @param {Partial<Upload>} changes @returns {OutboxItem | undefined} to be stored */
    uploadChanged(clientMsgId: string, changes: Partial<Upload>): OutboxItem | undefined;
    /** @param {string} clientMsgId @param {number} uploadedBytes @returns {OutboxItem | undefined} */
    uploadMoved(clientMsgId: string, uploadedBytes: number): OutboxItem | undefined;
    /** @param {string} clientMsgId @param {Failure} error @returns {OutboxItem | undefined} to be stored */
    uploadFailed(clientMsgId: string, error: Failure): OutboxItem | undefined;
    /**
     * The file is complete: its message becomes the newest of its conversation, once it is stored again.
     * @param {string} clientMsgId
     * @param {string} fileId
     * @returns {OutboxItem | undefined}
     */
    uploaded(clientMsgId: string, fileId: string): OutboxItem | undefined;
    /** The server took it into its queue. @param {string} clientMsgId @param {number} now */
    accepted(clientMsgId: string, now: number): boolean;
    /** It is stored for good. @param {string} clientMsgId */
    saved(clientMsgId: string): OutboxItem | undefined;
    /**
     * @param {string} clientMsgId
     * @param {import("../types.js").Failure} error
     * @param {number} retryAfterMs
     * @param {number} now
     * @returns {"failed" | "again" | "unknown"}
     */
    refused(clientMsgId: string, error: import("../types.js").Failure, retryAfterMs: number, now: number): "failed" | "again" | "unknown";
    /** After `failed`: once more. @param {string} clientMsgId */
    retry(clientMsgId: string): boolean;
    /** Nothing that was on the wire will be answered. */
    disconnected(): void;
    /**
     * What to put on the wire now, in order. Marks it as sent, and finds `deadline`.
     * @param {number} now
     * @returns {OutboxItem[]}
     */
    take(now: number): OutboxItem[];
    /**
     * @param {Lane} lane
     * @param {number} free how many more may be on the wire
     * @param {number} now
     * @param {OutboxItem[]} out
     * @returns {number} how many more are
     */
    _takeFrom(lane: Lane, free: number, now: number, out: OutboxItem[]): number;
    /** @param {number} at */
    _wakeAt(at: number): void;
    /** @param {Entry} entry @param {number} at 0: it is not on the wire any more */
    _sent(entry: Entry, at: number): void;
    /** @param {Entry} entry */
    _patience(entry: Entry): number;
    /** The first item of the lane was answered: the pause ends. @param {Entry} entry */
    _resume(entry: Entry): void;
    /** @param {string} conversationId */
    _lane(conversationId: string): Lane;
}
export type Entry = {
    item: OutboxItem;
    /**
     * it may go on the wire
     */
    isStored: boolean;
    isAccepted: boolean;
    /**
     * on this connection; 0 when it is to be sent
     */
    sentAt: number;
};
import type { ConversationState } from "./conversation-state.js";
import type { SendOptions } from "../types.js";
import type { Upload } from "../types.js";
import type { OutboxItem } from "../types.js";
/**
 * @typedef {object} Entry
 * @property {OutboxItem} item
 * @property {boolean} isStored it may go on the wire
 * @property {boolean} isAccepted
 * @property {number} sentAt on this connection; 0 when it is to be sent
 */
declare class Lane {
    /** @param {Backoff} backoff */
    constructor(backoff: Backoff);
    /** @type {Entry[]} */
    entries: Entry[];
    backoff: Backoff;
    blockedUntil: number;
}
import { SendRate } from "./send-rate.js";
import type { Failure } from "../types.js";
import { Backoff } from "./backoff.js";
export {};
