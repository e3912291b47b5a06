/** @import { Conversation } from "./conversation.js" */
/** @import { EventStream } from "./emitter.js" */
/** @import { PlacedMessage } from "./types.js" */
/** @typedef {{message: PlacedMessage, conversation: Conversation}} Received */
/** A message of another user, to be handled. */
export class InboxMessage {
    /** @param {Received} event @param {(conversationId: string, seq: number) => void} handled */
    constructor(event: Received, handled: (conversationId: string, seq: number) => void);
    message: PlacedMessage;
    conversation: Conversation;
    _event: Received;
    _handled: (conversationId: string, seq: number) => void;
    _isDone: boolean;
    /** Counts it as handled. Otherwise that happens when the next one is requested. */
    done(): void;
}
/**
 * Messages in the order of their conversations. One counts as handled when the next is requested or `done` was called; only then
 * is it acknowledged and stored that this device has it. It ends as an iterator of events does.
 */
export class InboxStream {
    /**
     * @param {EventStream<any>} stream
     * @param {(conversationId: string, seq: number) => void} handled
     * @param {(conversationId: string) => Promise<void>} keep stores that a conversation has messages that are not handled
     * @param {() => Promise<void>} ended stores what was handled
     */
    constructor(stream: EventStream<any>, handled: (conversationId: string, seq: number) => void, keep: (conversationId: string) => Promise<void>, ended: () => Promise<void>);
    _stream: EventStream<any>;
    _handled: (conversationId: string, seq: number) => void;
    _keep: (conversationId: string) => Promise<void>;
    _ended: () => Promise<void>;
    /** @type {InboxMessage | null} */
    _current: InboxMessage | null;
    /** @type {Set<string>} */
    _kept: Set<string>;
    get isOver(): boolean;
    /** @returns {Promise<IteratorResult<InboxMessage, undefined>>} */
    next(): Promise<IteratorResult<InboxMessage, undefined>>;
    /** Ends it; the current message is not handled. @returns {Promise<IteratorResult<InboxMessage, undefined>>} */
    return(): Promise<IteratorResult<InboxMessage, undefined>>;
    /** The messages that this iterator leaves to the next one. @returns {Received[]} */
    takeUnhandled(): Received[];
    [Symbol.asyncIterator](): this;
}
export type Received = {
    message: PlacedMessage;
    conversation: Conversation;
};
import type { PlacedMessage } from "./types.js";
import type { Conversation } from "./conversation.js";
import type { EventStream } from "./emitter.js";
