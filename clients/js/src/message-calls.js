// Calls about messages: what `Conversation` and `NexoClient` offer beyond sending and reading.

import { camel, snake } from "./camel-case.js";
import { groupConversationId, groupOf, peerOf, singleConversationId } from "./core/ids.js";
import { messageFromApi } from "./core/messages.js";

/** @import { RepeatedCalls } from "./repeated-calls.js" */
/** @import { EditResult, Forwarded, MediaPage, Message, PlacedMessage, Reaction, ReactionsPage, SearchPage } from "./types.js" */

/** A message, or the `serverMsgId` of one. @typedef {Message | string} MessageOrId */
/** A conversation, or the id of one. @typedef {{id: string} | string} ConversationOrId */

/** @param {MessageOrId} message @returns {string} */
export function idOf(message) {
  return typeof message === "string" ? message : (message.serverMsgId ?? "");
}

export class MessageCalls {
  /**
   * @param {import("./users.js").Call} call
   * @param {RepeatedCalls} repeated
   * @param {() => string} makeId
   * @param {() => string} userId
   */
  constructor(call, repeated, makeId, userId) {
    this._call = call;
    this._repeated = repeated;
    this._makeId = makeId;
    this._userId = userId;
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {string} lane
   * @param {Record<string, any>} params
   */
  _repeat(method, path, lane, params) {
    return this._repeated.run(lane, () => this._call(method, path, params));
  }

  /**
   * @param {MessageOrId} message
   * @param {any} content
   * @param {{mentions?: readonly string[], clientMsgId?: string}} options
   * @returns {Promise<EditResult>}
   */
  async edit(message, content, { mentions, clientMsgId = this._makeId() }) {
    const serverMsgId = idOf(message);
    const params = snake({ serverMsgId, content, mentions, clientMsgId });
    return { editedAt: null, content: null, ...camel(await this._repeat("PUT", "/msg/edit", serverMsgId, params)) };
  }

  /** @param {MessageOrId} message @param {string} emoji @param {boolean} on @returns {Promise<Reaction[]>} */
  async react(message, emoji, on) {
    const serverMsgId = idOf(message);
    return (await this._repeat("POST", "/msg/react", serverMsgId, snake({ serverMsgId, emoji, on }))).reactions;
  }

  /** @param {MessageOrId} message @param {boolean} on @returns {Promise<{serverMsgId: string, seq: number}>} */
  async pin(message, on) {
    const serverMsgId = idOf(message);
    const { seq } = await this._repeat("POST", "/msg/pin", serverMsgId, snake({ serverMsgId, on }));
    return { serverMsgId, seq };
  }

  /** @param {string} conversationId @returns {Promise<PlacedMessage[]>} */
  async pins(conversationId) {
    return this._read((await this._call("GET", "/msg/pins", { conversation_id: conversationId })).messages);
  }

  /** @param {MessageOrId} message @param {{cursor?: string, limit?: number}} page @returns {Promise<ReactionsPage>} */
  async reactions(message, { cursor, limit }) {
    return camel(await this._call("GET", "/msg/reactions", snake({ serverMsgId: idOf(message), cursor, limit })));
  }

  /** @param {readonly MessageOrId[]} messages @returns {Promise<string[]>} their ids */
  async deleteForMe(messages) {
    const serverMsgIds = messages.map(idOf);
    await this._call("POST", "/msg/delete", { server_msg_ids: serverMsgIds });
    return serverMsgIds;
  }

  /** @param {string} conversationId @returns {Promise<{upToSeq: number, deletedRev: number, unread: number}>} */
  async clear(conversationId) {
    return camel(await this._call("POST", "/conversation/clear", { conversation_id: conversationId }));
  }

  /**
   * @param {string} conversationId
   * @param {number} after
   * @returns {Promise<{serverMsgIds: string[], upToSeq: number | null, deletedRev: number, hasMore: boolean}>}
   */
  async deleted(conversationId, after) {
    return camel(await this._call("GET", "/msg/deleted", snake({ conversationId, after })));
  }

  /** @param {string} conversationId @param {number} time @returns {Promise<number | null>} */
  async at(conversationId, time) {
    return (await this._call("GET", "/conversation/at", snake({ conversationId, time }))).seq;
  }

  /**
   * @param {string} conversationId
   * @param {string} kind
   * @param {{beforeSeq?: number, limit?: number}} page
   * @returns {Promise<MediaPage>}
   */
  async media(conversationId, kind, { beforeSeq, limit }) {
    const page = await this._call("GET", "/msg/media", snake({ conversationId, kind, beforeSeq, limit }));
    return { messages: this._read(page.messages), nextSeq: page.next_seq, hasMore: page.has_more };
  }

  /** @param {string} q @param {Record<string, any>} options @returns {Promise<SearchPage>} */
  async search(q, options) {
    const page = await this._call("GET", "/msg/search", snake({ q, ...options }));
    const results = page.results.map((/** @type {any} */ { message, snippet, ranges }) => ({
      message: messageFromApi(message, this._userId()),
      snippet,
      ranges,
    }));
    return { results, nextCursor: page.next_cursor, hasMore: page.has_more };
  }

  /**
   * @param {readonly MessageOrId[]} messages
   * @param {readonly ConversationOrId[]} targets
   * @param {{merge?: boolean, title?: string, clientMsgId?: string}} options
   * @returns {Promise<Forwarded[]>}
   */
  async forward(messages, targets, { merge, title, clientMsgId = this._makeId() }) {
    const me = this._userId();
    const to = targets.map((target) => {
      const id = typeof target === "string" ? target : target.id;
      const groupId = groupOf(id);
      return groupId === null ? { recv_id: peerOf(id, me) } : { group_id: groupId };
    });
    const params = snake({ serverMsgIds: messages.map(idOf), to, merge, title, clientMsgId });
    const { sent } = await this._repeat("POST", "/msg/forward", clientMsgId, params);
    return sent.map((/** @type {any} */ one) => ({
      conversationId: one.group_id === undefined ? singleConversationId(me, one.recv_id) : groupConversationId(one.group_id),
      serverMsgIds: one.server_msg_ids ?? [],
      error: one.error ?? null,
    }));
  }

  /** @param {MessageOrId} message @param {string} reason @returns {Promise<string>} */
  async report(message, reason) {
    return (await this._call("POST", "/msg/report", { server_msg_id: idOf(message), reason })).report_id;
  }

  /** @param {any[]} shapes @returns {PlacedMessage[]} */
  _read(shapes) {
    return shapes.map((shape) => messageFromApi(shape, this._userId()));
  }
}
