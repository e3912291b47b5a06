/** @extends {Emitter<{change: Conversation}>} */
export class Conversation extends Emitter<{
    change: Conversation;
}> {
    /** @param {NexoClient} client @param {Chat} chat */
    constructor(client: NexoClient, chat: Chat);
    _client: NexoClient;
    _chat: Chat;
    /** @type {readonly Message[] | null} */
    _messages: readonly Message[] | null;
    /** Pages are loaded one after the other. @type {Promise<any>} */
    _loading: Promise<any>;
    _typingAt: number;
    get id(): string;
    /** @returns {"single" | "group"} */
    get type(): "single" | "group";
    get peerId(): string | null;
    get groupId(): string | null;
    get headSeq(): number;
    get minSeq(): number;
    get readSeq(): number;
    get deliveredSeq(): number;
    /** Everything up to here was given. */
    get syncedSeq(): number;
    get unread(): number;
    get unreadMentions(): number;
    get lastMessage(): Message | null;
    get updatedAt(): number;
    get pinned(): boolean;
    get recvMsgOpt(): number;
    get peerReadSeq(): number;
    get peerDeliveredSeq(): number;
    /** What is in memory, by seq and without holes; provisional copies at the end. */
    get messages(): readonly Message[];
    /** What was sent and is not among the messages yet, in order. @returns {OutgoingMessage[]} */
    get pending(): OutgoingMessage[];
    get hasEarlier(): boolean;
    get hasLater(): boolean;
    set keepsPlace(on: boolean);
    /**
     * Set it while somebody reads in the middle of `messages`: when they are at their limit, the oldest are not pushed
     * out by what comes; then `hasLater` is true.
     */
    get keepsPlace(): boolean;
    /** Who types now. */
    get typists(): string[];
    /**
     * Kept and tried until it is saved.
     * @param {any} content a string for text, else an object
     * @param {SendOptions} [options]
     * @returns {OutgoingMessage}
     */
    send(content: any, options?: SendOptions): OutgoingMessage;
    /** @param {object} content @param {SendOptions} [options] */
    sendCustom(content: object, options?: SendOptions): OutgoingMessage;
    /**
     * Read up to the newest that was given, or up to `seq`.
     * @param {number} [seq]
     */
    markRead(seq?: number): void;
    /** Call it with each key: it is told every few seconds. @param {boolean} [on] */
    typing(on?: boolean): void;
    /**
     * @param {string} serverMsgId
     * @returns {Promise<{serverMsgId: string, seq: number}>}
     */
    recall(serverMsgId: string): Promise<{
        serverMsgId: string;
        seq: number;
    }>;
    /**
     * How far one of your own messages has come; null for others'.
     * @param {Message} message
     */
    stateOf(message: Message): "saved" | "delivered" | "read" | null;
    /**
     * @param {string} serverMsgId
     * @returns {Promise<Receipts>}
     */
    receipts(serverMsgId: string): Promise<Receipts>;
    /** @param {{pinned?: boolean, recvMsgOpt?: number, hidden?: boolean}} settings */
    update({ pinned, recvMsgOpt, hidden }: {
        pinned?: boolean;
        recvMsgOpt?: number;
        hidden?: boolean;
    }): Promise<void>;
    /**
     * Older messages into `messages`.
     * @param {number} [limit]
     * @returns {Promise<number>} how many came
     */
    loadEarlier(limit?: number): Promise<number>;
    /**
     * Newer ones, after paging back beyond what is kept in memory.
     * @param {number} [limit]
     * @returns {Promise<number>} how many came
     */
    loadLater(limit?: number): Promise<number>;
    /** To the newest messages. @param {number} [limit] @returns {Promise<number>} */
    loadLatest(limit?: number): Promise<number>;
    /**
     * The window around a place.
     * @param {number} seq
     * @param {number} [limit]
     */
    loadAround(seq: number, limit?: number): Promise<number>;
    /** Where the window's end is, or would be. */
    get _end(): number;
    /** @param {number} limit */
    _loadNewest(limit: number): Promise<number>;
    /** @param {number} limit */
    _extend(limit: number): Promise<number>;
    /** @param {number | undefined} beforeSeq @param {number} limit @returns {Promise<Page>} ascending */
    _history(beforeSeq: number | undefined, limit: number): Promise<Page>;
    /** @param {any} data @returns {Page} */
    _page(data: any): Page;
    /**
     * @param {() => Promise<number>} work
     * @returns {Promise<number>}
     */
    _load(work: () => Promise<number>): Promise<number>;
    _invalidate(): void;
}
import { Emitter } from "./emitter.js";
import type { NexoClient } from "./client.js";
import type { Chat } from "./core/chat.js";
import type { Message } from "./types.js";
import type { OutgoingMessage } from "./outgoing.js";
import type { SendOptions } from "./types.js";
import type { Receipts } from "./types.js";
import type { Page } from "./types.js";
