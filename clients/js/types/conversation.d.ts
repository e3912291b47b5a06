/** @extends {Emitter<{change: Conversation}>} */
export class Conversation extends Emitter<{
    change: Conversation;
}> {
    /** @param {NexoClient} client @param {ConversationState} state */
    constructor(client: NexoClient, state: ConversationState);
    _client: NexoClient;
    _state: ConversationState;
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
    /** The contiguous point: everything up to it was given to the application. */
    get syncedSeq(): number;
    get unread(): number;
    get unreadMentions(): number;
    get lastMessage(): Message | null;
    get updatedAt(): number;
    get pinned(): boolean;
    get recvMsgOpt(): number;
    /** Until the next message, unless it is muted. */
    get archived(): boolean;
    /** Until this time as with `recvMsgOpt` 2. */
    get silentUntil(): number;
    get markedUnread(): boolean;
    /** @returns {Draft | null} */
    get draft(): Draft | null;
    /** How many seconds later messages are shown, to all members; 0: without end. */
    get messageTtlS(): number;
    /** An object of your own. */
    get extra(): any;
    get peerReadSeq(): number;
    get peerDeliveredSeq(): number;
    /** The messages in memory by seq, without gaps; provisional copies at the end. */
    get messages(): readonly Message[];
    /** The messages that were sent and are not in `messages` yet, in order. @returns {OutgoingMessage[]} */
    get pending(): OutgoingMessage[];
    get hasEarlier(): boolean;
    get hasLater(): boolean;
    set keepsPlace(on: boolean);
    /**
     * Set it while the user reads older messages: new ones are then left out of full `messages` instead of dropping the
     * oldest, and `hasLater` becomes true.
     */
    get keepsPlace(): boolean;
    /** The users that are typing. */
    get typists(): string[];
    /**
     * Kept and tried until it is saved.
     * @param {any} content a string for text, else an object
     * @param {SendOptions} [options]
     * @returns {OutgoingMessage}
     */
    send(content: any, options?: SendOptions): OutgoingMessage;
    /**
     * Uploads a file, and then sends its message; returns at once. What is sent later does not wait for it. A path must lead
     * to the same file until it is uploaded, also after a restart; bytes are kept in the storage.
     * @param {FileLike} file
     * @param {FileOptions} [options]
     * @returns {OutgoingMessage}
     */
    sendFile(file: FileLike, options?: FileOptions): OutgoingMessage;
    /** @param {object} content @param {SendOptions} [options] */
    sendCustom(content: object, options?: SendOptions): OutgoingMessage;
    /**
     * Read up to the newest that was given, or up to `seq`.
     * @param {number} [seq]
     */
    markRead(seq?: number): void;
    /** Call it with each key: the server is informed every few seconds. @param {boolean} [on] */
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
     * Changes the content of an own message. Tried until the server has answered, after earlier changes of the same message.
     * @param {MessageOrId} message
     * @param {any} content
     * @param {{mentions?: readonly string[], clientMsgId?: string}} [options] mentions: none, as before
     * @returns {Promise<EditResult>}
     */
    edit(message: MessageOrId, content: any, options?: {
        mentions?: readonly string[];
        clientMsgId?: string;
    }): Promise<EditResult>;
    /**
     * Adds a reaction, or takes it back. Tried until the server has answered.
     * @param {MessageOrId} message
     * @param {string} emoji
     * @param {boolean} [on]
     * @returns {Promise<Reaction[]>} all reactions to the message
     */
    react(message: MessageOrId, emoji: string, on?: boolean): Promise<Reaction[]>;
    /** Who reacted to a message. @param {MessageOrId} message @param {{cursor?: string, limit?: number}} [page] @returns {Promise<ReactionsPage>} */
    reactions(message: MessageOrId, { cursor, limit }?: {
        cursor?: string;
        limit?: number;
    }): Promise<ReactionsPage>;
    /**
     * Pins a message for all members, or unpins it. Tried until the server has answered.
     * @param {MessageOrId} message
     * @param {boolean} [on]
     * @returns {Promise<{serverMsgId: string, seq: number}>}
     */
    pin(message: MessageOrId, on?: boolean): Promise<{
        serverMsgId: string;
        seq: number;
    }>;
    /** The pinned messages, the last pinned first. @returns {Promise<PlacedMessage[]>} */
    pins(): Promise<PlacedMessage[]>;
    /** Deletes messages for yourself, on all your devices. @param {readonly MessageOrId[]} messages */
    deleteForMe(messages: readonly MessageOrId[]): Promise<void>;
    /** Deletes everything there is for yourself, on all your devices. */
    clear(): Promise<void>;
    /**
     * `saved`, `delivered` or `read` for an own message; null for a message of another user.
     * @param {Message} message
     */
    stateOf(message: Message): "saved" | "delivered" | "read" | null;
    /**
     * @param {string} serverMsgId
     * @returns {Promise<Receipts>}
     */
    receipts(serverMsgId: string): Promise<Receipts>;
    /**
     * Settings of your own, on all your devices; and `messageTtlS`, which is for all members.
     * @param {{pinned?: boolean, recvMsgOpt?: number, hidden?: boolean, archived?: boolean, silentUntil?: number, markedUnread?: boolean, draft?: Draft | null, messageTtlS?: number, extra?: any}} settings
     */
    update({ hidden, draft, ...settings }: {
        pinned?: boolean;
        recvMsgOpt?: number;
        hidden?: boolean;
        archived?: boolean;
        silentUntil?: number;
        markedUnread?: boolean;
        draft?: Draft | null;
        messageTtlS?: number;
        extra?: any;
    }): Promise<void>;
    /** The seq of the first message at or after a time; null when there is none. @param {number} time @returns {Promise<number | null>} */
    at(time: number): Promise<number | null>;
    /**
     * Photos, videos, voice messages, files or links, newest first.
     * @param {"photo" | "video" | "voice" | "file" | "link"} kind
     * @param {{beforeSeq?: number, limit?: number}} [page]
     * @returns {Promise<MediaPage>}
     */
    media(kind: "photo" | "video" | "voice" | "file" | "link", { beforeSeq, limit }?: {
        beforeSeq?: number;
        limit?: number;
    }): Promise<MediaPage>;
    /**
     * Older messages into `messages`.
     * @param {number} [limit]
     * @returns {Promise<number>} how many were added
     */
    loadEarlier(limit?: number): Promise<number>;
    /**
     * Newer ones, after paging back beyond what is kept in memory.
     * @param {number} [limit]
     * @returns {Promise<number>} how many were added
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
import type { ConversationState } from "./core/conversation-state.js";
import type { Message } from "./types.js";
import type { Draft } from "./types.js";
import type { OutgoingMessage } from "./outgoing-message.js";
import type { SendOptions } from "./types.js";
import type { FileLike } from "./upload-source.js";
import type { FileOptions } from "./types.js";
import type { MessageOrId } from "./message-calls.js";
import type { EditResult } from "./types.js";
import type { Reaction } from "./types.js";
import type { ReactionsPage } from "./types.js";
import type { PlacedMessage } from "./types.js";
import type { Receipts } from "./types.js";
import type { MediaPage } from "./types.js";
import type { Page } from "./types.js";
