/** @import { Driver } from "./driver.js" */
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
    _size: number | null;
    _reported: number;
    /** Called while its file is uploaded. @type {((uploaded: number, size: number) => void) | null} */
    onProgress: ((uploaded: number, size: number) => void) | null;
    /** The message, once it is saved. @type {PlacedMessage | null} */
    message: PlacedMessage | null;
    /** @type {{resolve: (message: PlacedMessage) => void, reject: (error: NexoError) => void}[]} */
    _waiting: {
        resolve: (message: PlacedMessage) => void;
        reject: (error: NexoError) => void;
    }[];
    get clientMsgId(): string;
    /** A text that sorts by creation time. */
    get order(): string;
    get conversationId(): string;
    get content(): any;
    get msgType(): number;
    get mentions(): readonly string[];
    get replyTo(): string | null;
    get extra(): any;
    /** How many seconds its content is shown; null: without end. */
    get expiresS(): number | null;
    get createdAt(): number;
    get serverMsgId(): string | null;
    get seq(): number | null;
    get sendAt(): number | null;
    /** @returns {SendState} */
    get state(): SendState;
    /** How many bytes of its file the server has, of how many; null without a file. */
    get progress(): {
        uploaded: number;
        size: number;
    } | null;
    /** Why it failed. @returns {Failure | null} */
    get error(): Failure | null;
    /**
     * The message once it is saved; rejects when it failed.
     * @returns {Promise<PlacedMessage>}
     */
    whenSaved(): Promise<PlacedMessage>;
    /** Sends a failed message once more, with the same id; returns whether it had failed. */
    retry(): boolean;
    /** Removes it from the outbox, unless the server may have stored it; returns whether it was removed. */
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
/** All messages on their way: each is the same object until it is among the messages. */
export class OutgoingMessages {
    /**
     * @param {() => Driver | null} driver
     * @param {(outgoing: OutgoingMessage) => void} changed
     */
    constructor(driver: () => Driver | null, changed: (outgoing: OutgoingMessage) => void);
    _driver: () => Driver | null;
    _changed: (outgoing: OutgoingMessage) => void;
    /** @type {Map<string, OutgoingMessage>} */
    _byId: Map<string, OutgoingMessage>;
    /** @type {Set<() => void>} */
    _flushing: Set<() => void>;
    /** By creation time. */
    get all(): OutgoingMessage[];
    /** What the server has not saved. */
    get unsent(): OutgoingMessage[];
    /** Lets `flush` look again, because the connection has changed. */
    wake(): void;
    /**
     * Resolves when everything is saved. Rejects with the error of a message that failed, with `timeout`, or with what `check`
     * throws, which is called while there are messages to wait for.
     * @param {number} timeoutMs
     * @param {() => void} check
     */
    flush(timeoutMs: number, check: () => void): Promise<void>;
    /** Until anything changes. @returns {Promise<void>} */
    _next(): Promise<void>;
    /** @param {OutgoingMessage} outgoing */
    _report(outgoing: OutgoingMessage): void;
    /** @param {string} clientMsgId */
    get(clientMsgId: string): OutgoingMessage | undefined;
    /** @param {OutboxItem} item */
    of(item: OutboxItem): OutgoingMessage;
    /** What is not among the messages of a conversation yet. @param {string} conversationId */
    in(conversationId: string): OutgoingMessage[];
    /** @param {string} clientMsgId */
    _cancel(clientMsgId: string): boolean;
    /** @param {OutboxItem} item @param {boolean} isAccepted */
    changed(item: OutboxItem, isAccepted: boolean): void;
    /** @param {OutboxItem} item @param {PlacedMessage} message */
    saved(item: OutboxItem, message: PlacedMessage): void;
    /** It is among the messages. @param {string} clientMsgId */
    given(clientMsgId: string): void;
    clear(): void;
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
import type { Driver } from "./driver.js";
