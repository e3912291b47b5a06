/** @import { Failure, OutboxItem, PlacedMessage, SendState } from "./types.js" */
/**
 * @typedef {object} OutgoingHost
 * @property {(clientMsgId: string) => boolean} retry
 * @property {(clientMsgId: string) => boolean} cancel
 * @property {(conversationId: string, seq: number) => SendState} stateOf
 */
export class OutgoingMessage {
    /** @param {OutboxItem} item @param {OutgoingHost} host */
    constructor(item: OutboxItem, host: OutgoingHost);
    _item: OutboxItem;
    _host: OutgoingHost;
    _isAccepted: boolean;
    _isCancelled: boolean;
    /** The message, once it is saved. @type {PlacedMessage | null} */
    message: PlacedMessage | null;
    /** @type {{resolve: (message: PlacedMessage) => void, reject: (error: NexoError) => void}[]} */
    _waiting: {
        resolve: (message: PlacedMessage) => void;
        reject: (error: NexoError) => void;
    }[];
    get clientMsgId(): string;
    /** Sorts by when it was made. */
    get order(): string;
    get conversationId(): string;
    get content(): any;
    get msgType(): number;
    get mentions(): readonly string[];
    get replyTo(): string | null;
    get extra(): any;
    get createdAt(): number;
    get serverMsgId(): string | null;
    get seq(): number | null;
    get sendAt(): number | null;
    /** @returns {SendState} */
    get state(): SendState;
    /** Why it failed. @returns {Failure | null} */
    get error(): Failure | null;
    /**
     * The message once it is saved; rejects when it failed.
     * @returns {Promise<PlacedMessage>}
     */
    whenSaved(): Promise<PlacedMessage>;
    /** After `failed`: once more, with the same id. */
    retry(): boolean;
    /** Give it up, if it is surely not stored. Whether that was so. */
    cancel(): boolean;
    /** @param {OutboxItem} item @param {boolean} isAccepted */
    _update(item: OutboxItem, isAccepted: boolean): void;
    /** @param {PlacedMessage} message */
    _saved(message: PlacedMessage): void;
    _cancelled(): void;
    /** @param {(waiter: {resolve: (message: PlacedMessage) => void, reject: (error: NexoError) => void}) => void} end */
    _settle(end: (waiter: {
        resolve: (message: PlacedMessage) => void;
        reject: (error: NexoError) => void;
    }) => void): void;
}
export type OutgoingHost = {
    retry: (clientMsgId: string) => boolean;
    cancel: (clientMsgId: string) => boolean;
    stateOf: (conversationId: string, seq: number) => SendState;
};
import type { OutboxItem } from "./types.js";
import type { PlacedMessage } from "./types.js";
import { NexoError } from "./errors.js";
import type { SendState } from "./types.js";
import type { Failure } from "./types.js";
