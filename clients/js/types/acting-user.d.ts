/** @import { HistoryPage, SentMessage } from "./types.js" */
/** @typedef {(method: string, path: string, params: Record<string, any>, how?: {userId?: string, waitS?: number}) => Promise<any>} BackendCall */
/** A user as whom the backend acts. `users`, `contacts` and `groups` are the calls of the chat SDK, done as this user. */
export class ActingUser {
    /** @param {string} userId @param {BackendCall} call */
    constructor(userId: string, call: BackendCall);
    userId: string;
    _call: BackendCall;
    _ids: MessageIds;
    users: Users;
    contacts: Contacts;
    groups: Groups;
    /**
     * Any call of the HTTP API as this user, with its own names.
     * @param {string} method
     * @param {string} path
     * @param {Record<string, any>} [params]
     * @returns {Promise<any>}
     */
    call(method: string, path: string, params?: Record<string, any>): Promise<any>;
    /**
     * Sends a message to a user or a group. After an error, the same call with the same `clientMsgId` never stores it twice;
     * without one an id is made.
     * @param {any} content
     * @param {{to?: string, groupId?: string, msgType?: number, mentions?: readonly string[], replyTo?: string, extra?: any, expiresS?: number, clientMsgId?: string}} options
     * @returns {Promise<SentMessage>}
     */
    send(content: any, { to, clientMsgId, ...options }: {
        to?: string;
        groupId?: string;
        msgType?: number;
        mentions?: readonly string[];
        replyTo?: string;
        extra?: any;
        expiresS?: number;
        clientMsgId?: string;
    }): Promise<SentMessage>;
    /** @param {string} serverMsgId @returns {Promise<{serverMsgId: string, seq: number}>} */
    recall(serverMsgId: string): Promise<{
        serverMsgId: string;
        seq: number;
    }>;
    /**
     * Messages of a conversation, newest first, below `beforeSeq` or from the newest on.
     * @param {string} conversationId
     * @param {{beforeSeq?: number, limit?: number}} [options]
     * @returns {Promise<HistoryPage>}
     */
    history(conversationId: string, { beforeSeq, limit }?: {
        beforeSeq?: number;
        limit?: number;
    }): Promise<HistoryPage>;
    /** @param {string} conversationId @param {number} seq */
    markRead(conversationId: string, seq: number): Promise<void>;
}
export type BackendCall = (method: string, path: string, params: Record<string, any>, how?: {
    userId?: string;
    waitS?: number;
}) => Promise<any>;
import { MessageIds } from "./core/ids.js";
import { Users } from "./users.js";
import { Contacts } from "./contacts.js";
import { Groups } from "./groups.js";
import type { SentMessage } from "./types.js";
import type { HistoryPage } from "./types.js";
