// Calls that a product's backend makes for one of its users: `backend.act(userId)`.

import { camel, snake } from "./camel-case.js";
import { Contacts } from "./contacts.js";
import { MessageIds } from "./core/ids.js";
import { messageFromApi } from "./core/messages.js";
import { Groups } from "./groups.js";
import { Users } from "./users.js";

/** @import { HistoryPage, SentMessage } from "./types.js" */
/** @typedef {(method: string, path: string, params: Record<string, any>, how?: {userId?: string, waitS?: number}) => Promise<any>} BackendCall */

/** A user as whom the backend acts. `users`, `contacts` and `groups` are the calls of the chat SDK, done as this user. */
export class ActingUser {
  /** @param {string} userId @param {BackendCall} call */
  constructor(userId, call) {
    this.userId = userId;
    this._call = call;
    this._ids = new MessageIds(Math.random);
    this.users = new Users((method, path, params) => this.call(method, path, params));
    this.contacts = new Contacts((method, path, params) => this.call(method, path, params));
    this.groups = new Groups((method, path, params) => this.call(method, path, params));
  }

  /**
   * Any call of the HTTP API as this user, with its own names.
   * @param {string} method
   * @param {string} path
   * @param {Record<string, any>} [params]
   * @returns {Promise<any>}
   */
  call(method, path, params = {}) {
    return this._call(method, path, params, { userId: this.userId });
  }

  /**
   * Sends a message to a user or a group. After an error, the same call with the same `clientMsgId` never stores it twice;
   * without one an id is made.
   * @param {any} content
   * @param {{to?: string, groupId?: string, msgType?: number, mentions?: readonly string[], replyTo?: string, extra?: any, expiresS?: number, clientMsgId?: string}} options
   * @returns {Promise<SentMessage>}
   */
  async send(content, { to, clientMsgId = this._ids.next(Date.now()), ...options }) {
    const sent = await this.call("POST", "/msg/send", { recv_id: to, content, ...snake({ ...options, clientMsgId }) });
    return { seq: null, sendAt: null, content: null, ...camel(sent) };
  }

  /** @param {string} serverMsgId @returns {Promise<{serverMsgId: string, seq: number}>} */
  async recall(serverMsgId) {
    return camel(await this.call("POST", "/msg/recall", { server_msg_id: serverMsgId }));
  }

  /**
   * Messages of a conversation, newest first, below `beforeSeq` or from the newest on.
   * @param {string} conversationId
   * @param {{beforeSeq?: number, limit?: number}} [options]
   * @returns {Promise<HistoryPage>}
   */
  async history(conversationId, { beforeSeq, limit } = {}) {
    const page = await this.call("GET", "/msg/history", snake({ conversationId, beforeSeq, limit }));
    const messages = page.messages.map((/** @type {any} */ shape) => messageFromApi(shape, this.userId));
    return { ...camel({ head_seq: page.head_seq, next_seq: page.next_seq, has_more: page.has_more }), messages };
  }

  /** @param {string} conversationId @param {number} seq */
  async markRead(conversationId, seq) {
    await this.call("POST", "/conversation/read", { conversation_id: conversationId, seq });
  }
}
