// A conversation as the application sees it: a row of the list and the view of its messages.

import { messageFromApi } from "./core/messages.js";
import { Emitter } from "./emitter.js";
import { NexoError } from "./errors.js";
import { camel, snake } from "./camel-case.js";
import { idOf } from "./message-calls.js";
import { describeFile, mediaType } from "./upload-source.js";

/** @import { NexoClient } from "./client.js" */
/** @import { ConversationState } from "./core/conversation-state.js" */
/** @import { OutgoingMessage } from "./outgoing-message.js" */
/** @import { MessageOrId } from "./message-calls.js" */
/** @import { Draft, EditResult, FileOptions, MediaPage, Message, Page, PlacedMessage, Reaction, ReactionsPage } from "./types.js" */
/** @import { Receipts, SendOptions } from "./types.js" */
/** @import { FileLike } from "./upload-source.js" */

const PAGE = 50;
const PAGE_MAX = 200;
const TYPING_AGAIN_MS = 3000;

/** @extends {Emitter<{change: Conversation}>} */
export class Conversation extends Emitter {
  /** @param {NexoClient} client @param {ConversationState} state */
  constructor(client, state) {
    super(["change"]);
    this._client = client;
    this._state = state;
    /** @type {readonly Message[] | null} */
    this._messages = null;
    /** Pages are loaded one after the other. @type {Promise<any>} */
    this._loading = Promise.resolve();
    this._typingAt = 0;
  }

  get id() {
    return this._state.id;
  }

  /** @returns {"single" | "group"} */
  get type() {
    return this._state.groupId === null ? "single" : "group";
  }

  get peerId() {
    return this._state.peerId;
  }

  get groupId() {
    return this._state.groupId;
  }

  get headSeq() {
    return this._state.timeline.headSeq;
  }

  get minSeq() {
    return this._state.minSeq;
  }

  get readSeq() {
    return this._state.readSeq;
  }

  get deliveredSeq() {
    return Math.max(this._state.deliveredSeq, this._state.acknowledged);
  }

  /** The contiguous point: everything up to it was given to the application. */
  get syncedSeq() {
    return this._state.syncedSeq;
  }

  get unread() {
    return this._state.unread.value;
  }

  get unreadMentions() {
    return this._state.mentions.value;
  }

  get lastMessage() {
    return this._state.lastMessage;
  }

  get updatedAt() {
    return this._state.updatedAt;
  }

  get pinned() {
    return this._state.settings.pinned;
  }

  get recvMsgOpt() {
    return this._state.settings.recvMsgOpt;
  }

  /** Until the next message, unless it is muted. */
  get archived() {
    return this._state.settings.archived;
  }

  /** Until this time as with `recvMsgOpt` 2. */
  get silentUntil() {
    return this._state.settings.silentUntil;
  }

  get markedUnread() {
    return this._state.settings.markedUnread;
  }

  /** @returns {Draft | null} */
  get draft() {
    return this._state.settings.draft;
  }

  /** How many seconds later messages are shown, to all members; 0: without end. */
  get messageTtlS() {
    return this._state.settings.messageTtlS;
  }

  /** An object of your own. */
  get extra() {
    return this._state.settings.extra;
  }

  get peerReadSeq() {
    return this._state.peerReadSeq;
  }

  get peerDeliveredSeq() {
    return this._state.peerDeliveredSeq;
  }

  /** The messages in memory by seq, without gaps; provisional copies at the end. */
  get messages() {
    if (this._messages === null) {
      const { window, timeline, changes } = this._state;
      const shown = window.messages.filter((message) => !changes.hides(message));
      this._messages = Object.freeze([...shown, ...timeline.provisional]);
    }
    return this._messages;
  }

  /** The messages that were sent and are not in `messages` yet, in order. @returns {OutgoingMessage[]} */
  get pending() {
    return this._client._pendingOf(this.id);
  }

  get hasEarlier() {
    return this._state.window.hasEarlier;
  }

  get hasLater() {
    return !this._state.window.isAtEnd;
  }

  /**
   * Set it while the user reads older messages: new ones are then left out of full `messages` instead of dropping the
   * oldest, and `hasLater` becomes true.
   */
  get keepsPlace() {
    return this._state.window.keepsPlace;
  }

  set keepsPlace(on) {
    this._state.window.keepsPlace = on;
  }

  /** The users that are typing. */
  get typists() {
    return this._client._typistsIn(this.id);
  }

  // -- writing ----------------------------------------------------------------------------------------------

  /**
   * Kept and tried until it is saved.
   * @param {any} content a string for text, else an object
   * @param {SendOptions} [options]
   * @returns {OutgoingMessage}
   */
  send(content, options = {}) {
    this._typingAt = 0;
    return this._client._enqueue(this._state, content, options);
  }

  /**
   * Uploads a file, and then sends its message; returns at once. What is sent later does not wait for it. A path must lead
   * to the same file until it is uploaded, also after a restart; bytes are kept in the storage.
   * @param {FileLike} file
   * @param {FileOptions} [options]
   * @returns {OutgoingMessage}
   */
  sendFile(file, options = {}) {
    const { name, caption = "", onProgress = null, address = "", ...rest } = options;
    const described = describeFile(file, name);
    described.upload.address = address;
    const msgType = rest.msgType ?? mediaType(described.upload.name, described.blob?.type);
    this._typingAt = 0;
    const outgoing = this._client._enqueue(this._state, caption ? { text: caption } : {}, { ...rest, msgType }, described);
    outgoing.onProgress = onProgress;
    return outgoing;
  }

  /** @param {object} content @param {SendOptions} [options] */
  sendCustom(content, options = {}) {
    return this.send(content, { ...options, msgType: 6 });
  }

  /**
   * Read up to the newest that was given, or up to `seq`.
   * @param {number} [seq]
   */
  markRead(seq = this.syncedSeq) {
    this._client._markRead(this._state, seq);
    if (this.markedUnread) this.update({ markedUnread: false }).catch((error) => this._client._failed(error));
  }

  /** Call it with each key: the server is informed every few seconds. @param {boolean} [on] */
  typing(on = true) {
    const now = this._client._now();
    if (on && now - this._typingAt < TYPING_AGAIN_MS) return;
    if (!on && this._typingAt === 0) return;
    this._typingAt = on ? now : 0;
    const to = this.groupId === null ? { to: this.peerId } : { groupId: this.groupId };
    this._client._sendFrame({ type: "TYPING", ...to, on });
  }

  /**
   * @param {string} serverMsgId
   * @returns {Promise<{serverMsgId: string, seq: number}>}
   */
  async recall(serverMsgId) {
    return camel(await this._client.call("POST", "/msg/recall", { server_msg_id: serverMsgId }));
  }

  /**
   * Changes the content of an own message. Tried until the server has answered, after earlier changes of the same message.
   * @param {MessageOrId} message
   * @param {any} content
   * @param {{mentions?: readonly string[], clientMsgId?: string}} [options] mentions: none, as before
   * @returns {Promise<EditResult>}
   */
  async edit(message, content, options = {}) {
    const result = await this._client._messageCalls.edit(message, content, options);
    const { serverMsgId, editedAt, content: filtered } = result;
    if (editedAt !== null) {
      const mentions = options.mentions ?? this._state.window.find(serverMsgId)?.mentions ?? [];
      const edit = { content: filtered ?? content, mentions, editedAt };
      this._client._driver?.drive(({ inbox }) => inbox.applyEdit(this._state, serverMsgId, edit));
    }
    return result;
  }

  /**
   * Adds a reaction, or takes it back. Tried until the server has answered.
   * @param {MessageOrId} message
   * @param {string} emoji
   * @param {boolean} [on]
   * @returns {Promise<Reaction[]>} all reactions to the message
   */
  async react(message, emoji, on = true) {
    const reactions = await this._client._messageCalls.react(message, emoji, on);
    this._client._driver?.drive(({ inbox }) => inbox.applyReactions(this._state, idOf(message), reactions, emoji));
    return reactions;
  }

  /** Who reacted to a message. @param {MessageOrId} message @param {{cursor?: string, limit?: number}} [page] @returns {Promise<ReactionsPage>} */
  reactions(message, { cursor, limit } = {}) {
    return this._client._messageCalls.reactions(message, { cursor, limit });
  }

  /**
   * Pins a message for all members, or unpins it. Tried until the server has answered.
   * @param {MessageOrId} message
   * @param {boolean} [on]
   * @returns {Promise<{serverMsgId: string, seq: number}>}
   */
  pin(message, on = true) {
    return this._client._messageCalls.pin(message, on);
  }

  /** The pinned messages, the last pinned first. @returns {Promise<PlacedMessage[]>} */
  pins() {
    return this._client._messageCalls.pins(this.id);
  }

  /** Deletes messages for yourself, on all your devices. @param {readonly MessageOrId[]} messages */
  async deleteForMe(messages) {
    const ids = await this._client._messageCalls.deleteForMe(messages);
    this._client._driver?.drive(({ inbox }) => inbox.applyDeleted(this._client._now(), this._state, ids, null, null));
  }

  /** Deletes everything there is for yourself, on all your devices. */
  async clear() {
    const { upToSeq } = await this._client._messageCalls.clear(this.id);
    this._client._driver?.drive(({ inbox }) => inbox.applyDeleted(this._client._now(), this._state, [], upToSeq, null));
  }

  // -- receipts and settings --------------------------------------------------------------------------------

  /**
   * `saved`, `delivered` or `read` for an own message; null for a message of another user.
   * @param {Message} message
   */
  stateOf(message) {
    if (message.senderId !== this._state.userId || message.seq === null) return null;
    return this._state.stateOf(message.seq);
  }

  /**
   * @param {string} serverMsgId
   * @returns {Promise<Receipts>}
   */
  async receipts(serverMsgId) {
    return camel(await this._client.call("GET", "/msg/receipts", { server_msg_id: serverMsgId }));
  }

  /**
   * Settings of your own, on all your devices; and `messageTtlS`, which is for all members.
   * @param {{pinned?: boolean, recvMsgOpt?: number, hidden?: boolean, archived?: boolean, silentUntil?: number, markedUnread?: boolean, draft?: Draft | null, messageTtlS?: number, extra?: any}} settings
   */
  async update({ hidden, draft, ...settings }) {
    const shape = draft ? { text: draft.text, reply_to: draft.replyTo ?? undefined } : draft;
    const params = snake({ conversationId: this.id, hidden, draft: shape, ...settings });
    const row = await this._client.call("PUT", "/conversation/update", params);
    this._client._applyRows([row]);
    if (hidden !== undefined) this._state.isHidden = hidden;
    this._client._views.changed(this._state);
  }

  /** The seq of the first message at or after a time; null when there is none. @param {number} time @returns {Promise<number | null>} */
  at(time) {
    return this._client._messageCalls.at(this.id, time);
  }

  /**
   * Photos, videos, voice messages, files or links, newest first.
   * @param {"photo" | "video" | "voice" | "file" | "link"} kind
   * @param {{beforeSeq?: number, limit?: number}} [page]
   * @returns {Promise<MediaPage>}
   */
  media(kind, { beforeSeq, limit } = {}) {
    return this._client._messageCalls.media(this.id, kind, { beforeSeq, limit });
  }

  // -- paging -----------------------------------------------------------------------------------------------

  /**
   * Older messages into `messages`.
   * @param {number} [limit]
   * @returns {Promise<number>} how many were added
   */
  loadEarlier(limit = PAGE) {
    return this._load(async () => {
      const { window } = this._state;
      if (!window.hasEarlier) return 0;
      if (window.messages.length === 0) return this._loadNewest(limit);
      const page = await this._history(window.messages[0]?.seq, limit);
      return window.prepend(page.messages, page.hasMore);
    });
  }

  /**
   * Newer ones, after paging back beyond what is kept in memory.
   * @param {number} [limit]
   * @returns {Promise<number>} how many were added
   */
  loadLater(limit = PAGE) {
    return this._load(() => this._extend(limit));
  }

  /** To the newest messages. @param {number} [limit] @returns {Promise<number>} */
  loadLatest(limit = PAGE) {
    return this._load(async () => {
      const { window } = this._state;
      if (window.isAtEnd && window.messages.length >= Math.min(limit, window.size)) return 0;
      if (window.isAtEnd && window.messages.length > 0) {
        if (!window.hasEarlier) return 0;
        const page = await this._history(window.messages[0]?.seq, limit - window.messages.length);
        return window.prepend(page.messages, page.hasMore);
      }
      return this._loadNewest(limit);
    });
  }

  /**
   * The window around a place.
   * @param {number} seq
   * @param {number} [limit]
   */
  loadAround(seq, limit = PAGE) {
    return this._load(async () => {
      const before = Math.min(seq + Math.ceil(limit / 2), this._end + 1);
      const page = await this._history(before, limit);
      this._state.window.reset(page.messages, before - 1, page.hasMore, before > this._end);
      if (before <= this._end) await this._extend(Math.ceil(limit / 2));
      return page.messages.length;
    });
  }

  /** Where the window's end is, or would be. */
  get _end() {
    return this._state.timeline.isPlaced ? this._state.syncedSeq : Number.MAX_SAFE_INTEGER - 1;
  }

  /** @param {number} limit */
  async _loadNewest(limit) {
    const { window, timeline } = this._state;
    const end = this._state.syncedSeq;
    const page = await this._history(timeline.isPlaced ? end + 1 : undefined, limit);
    if (window.isAtEnd && window.messages.length > 0) return window.prepend(page.messages, page.hasMore); // arrived while it was loaded
    const last = page.messages[page.messages.length - 1]?.seq ?? 0;
    window.reset(page.messages, timeline.isPlaced ? end : last, page.hasMore, true);
    while (timeline.isPlaced && window.toSeq < this._state.syncedSeq) {
      window.isAtEnd = false;
      if ((await this._extend(PAGE_MAX)) === 0) break;
    }
    return page.messages.length;
  }

  /** @param {number} limit */
  async _extend(limit) {
    const { window } = this._state;
    if (window.isAtEnd) return 0;
    const begin = window.toSeq + 1;
    const params = { conversation_id: this.id, begin_seq: begin, end_seq: Math.max(begin, this._end), limit: clip(limit) };
    const page = this._page(await this._client.call("GET", "/msg/pull", params));
    const toSeq = Math.min(page.nextSeq - 1, this._end);
    return window.extend(
      page.messages.filter((message) => message.seq <= toSeq),
      toSeq,
      toSeq >= this._end,
    );
  }

  /** @param {number | undefined} beforeSeq @param {number} limit @returns {Promise<Page>} ascending */
  async _history(beforeSeq, limit) {
    const params = { conversation_id: this.id, before_seq: beforeSeq, limit: clip(limit) };
    try {
      const page = this._page(await this._client.call("GET", "/msg/history", params));
      page.messages.reverse();
      return page;
    } catch (error) {
      // there are no messages yet
      if (error instanceof NexoError && error.reason === "conversation_not_found") return EMPTY;
      throw error;
    }
  }

  /** @param {any} data @returns {Page} */
  _page(data) {
    const messages = data.messages.map((/** @type {any} */ shape) => messageFromApi(shape, this._state.userId));
    const { head_seq: headSeq, next_seq: nextSeq, has_more: hasMore } = data;
    return { messages: this._state.correct(messages), headSeq, nextSeq, hasMore };
  }

  /**
   * @param {() => Promise<number>} work
   * @returns {Promise<number>}
   */
  _load(work) {
    const done = this._loading.then(async () => {
      const count = await work();
      this._client._touch(this._state);
      this._client._driver?.drive(({ inbox }) => inbox.watchExpiry(this._state));
      this._client._views.changed(this._state);
      return count;
    });
    this._loading = done.catch(() => {});
    return done;
  }

  _invalidate() {
    this._messages = null;
  }
}

/** @type {Page} */
const EMPTY = { messages: [], headSeq: 0, nextSeq: 1, hasMore: false };

/** @param {number} limit */
function clip(limit) {
  return Math.max(1, Math.min(PAGE_MAX, Math.floor(limit)));
}
