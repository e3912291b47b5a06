/** @import { RepeatedCalls } from "./repeated-calls.js" */
/** @import { EditResult, Forwarded, MediaPage, Message, PlacedMessage, Reaction, ReactionsPage, SearchPage } from "./types.js" */
/** A message, or the `serverMsgId` of one. @typedef {Message | string} MessageOrId */
/** A conversation, or the id of one. @typedef {{id: string} | string} ConversationOrId */
/** @param {MessageOrId} message @returns {string} */
export function idOf(message: MessageOrId): string;
export class MessageCalls {
    /**
     * @param {import("./users.js").Call} call
     * @param {RepeatedCalls} repeated
     * @param {() => string} makeId
     * @param {() => string} userId
     */
    constructor(call: import("./users.js").Call, repeated: RepeatedCalls, makeId: () => string, userId: () => string);
    _call: import("./users.js").Call;
    _repeated: RepeatedCalls;
    _makeId: () => string;
    _userId: () => string;
    /**
     * @param {string} method
     * @param {string} path
     * @param {string} lane
     * @param {Record<string, any>} params
     */
    _repeat(method: string, path: string, lane: string, params: Record<string, any>): Promise<any>;
    /**
     * @param {MessageOrId} message
     * @param {any} content
     * @param {{mentions?: readonly string[], clientMsgId?: string}} options
     * @returns {Promise<EditResult>}
     */
    edit(message: MessageOrId, content: any, { mentions, clientMsgId }: {
        mentions?: readonly string[];
        clientMsgId?: string;
    }): Promise<EditResult>;
    /** @param {MessageOrId} message @param {string} emoji @param {boolean} on @returns {Promise<Reaction[]>} */
    react(message: MessageOrId, emoji: string, on: boolean): Promise<Reaction[]>;
    /** @param {MessageOrId} message @param {boolean} on @returns {Promise<{serverMsgId: string, seq: number}>} */
    pin(message: MessageOrId, on: boolean): Promise<{
        serverMsgId: string;
        seq: number;
    }>;
    /** @param {string} conversationId @returns {Promise<PlacedMessage[]>} */
    pins(conversationId: string): Promise<PlacedMessage[]>;
    /** @param {MessageOrId} message @param {{cursor?: string, limit?: number}} page @returns {Promise<ReactionsPage>} */
    reactions(message: MessageOrId, { cursor, limit }: {
        cursor?: string;
        limit?: number;
    }): Promise<ReactionsPage>;
    /** @param {readonly MessageOrId[]} messages @returns {Promise<string[]>} their ids */
    deleteForMe(messages: readonly MessageOrId[]): Promise<string[]>;
    /** @param {string} conversationId @returns {Promise<{upToSeq: number, deletedRev: number, unread: number}>} */
    clear(conversationId: string): Promise<{
        upToSeq: number;
        deletedRev: number;
        unread: number;
    }>;
    /**
     * @param {string} conversationId
     * @param {number} after
     * @returns {Promise<{serverMsgIds: string[], upToSeq: number | null, deletedRev: number, hasMore: boolean}>}
     */
    deleted(conversationId: string, after: number): Promise<{
        serverMsgIds: string[];
        upToSeq: number | null;
        deletedRev: number;
        hasMore: boolean;
    }>;
    /** @param {string} conversationId @param {number} time @returns {Promise<number | null>} */
    at(conversationId: string, time: number): Promise<number | null>;
    /**
     * @param {string} conversationId
     * @param {string} kind
     * @param {{beforeSeq?: number, limit?: number}} page
     * @returns {Promise<MediaPage>}
     */
    media(conversationId: string, kind: string, { beforeSeq, limit }: {
        beforeSeq?: number;
        limit?: number;
    }): Promise<MediaPage>;
    /** @param {string} q @param {Record<string, any>} options @returns {Promise<SearchPage>} */
    search(q: string, options: Record<string, any>): Promise<SearchPage>;
    /**
     * @param {readonly MessageOrId[]} messages
     * @param {readonly ConversationOrId[]} targets
     * @param {{merge?: boolean, title?: string, clientMsgId?: string}} options
     * @returns {Promise<Forwarded[]>}
     */
    forward(messages: readonly MessageOrId[], targets: readonly ConversationOrId[], { merge, title, clientMsgId }: {
        merge?: boolean;
        title?: string;
        clientMsgId?: string;
    }): Promise<Forwarded[]>;
    /** @param {MessageOrId} message @param {string} reason @returns {Promise<string>} */
    report(message: MessageOrId, reason: string): Promise<string>;
    /** @param {any[]} shapes @returns {PlacedMessage[]} */
    _read(shapes: any[]): PlacedMessage[];
}
/**
 * A message, or the `serverMsgId` of one.
 */
export type MessageOrId = Message | string;
/**
 * A conversation, or the id of one.
 */
export type ConversationOrId = {
    id: string;
} | string;
import type { RepeatedCalls } from "./repeated-calls.js";
import type { EditResult } from "./types.js";
import type { Reaction } from "./types.js";
import type { PlacedMessage } from "./types.js";
import type { ReactionsPage } from "./types.js";
import type { MediaPage } from "./types.js";
import type { SearchPage } from "./types.js";
import type { Forwarded } from "./types.js";
import type { Message } from "./types.js";
