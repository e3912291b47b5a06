// A conversation as the application sees it: a row of the list and the view of its messages.

import { messageFromApi } from "./core/messages.js";
import { Emitter } from "./emitter.js";
import { NexoError } from "./errors.js";
import { camel } from "./naming.js";

/** @import { NexoClient } from "./client.js" */
/** @import { Chat } from "./core/chat.js" */
/** @import { OutgoingMessage } from "./outgoing.js" */
/** @import { Message, Page, Receipts, SendOptions } from "./types.js" */

const PAGE = 50;
const PAGE_MAX = 200;
const TYPING_AGAIN_MS = 3000;

/** @extends {Emitter<{change: Conversation}>} */
export class Conversation extends Emitter {
  /** @param {NexoClient} client @param {Chat} chat */
  constructor(client, chat) {
    super();
    this._client = client;
    this._chat = chat;
    /** @type {readonly Message[] | null} */
    this._messages = null;
    /** Pages are loaded one after the other. @type {Promise<any>} */
    this._loading = Promise.resolve();
    this._typingAt = 0;
  }

  get id() {
    return this._chat.id;
  }

  /** @returns {"single" | "group"} */
  get type() {
    return this._chat.groupId === null ? "single" : "group";
  }

  get peerId() {
    return this._chat.peerId;
  }

  get groupId() {
    return this._chat.groupId;
  }

  get headSeq() {
    return this._chat.timeline.headSeq;
  }

  get minSeq() {
    return this._chat.minSeq;
  }

  get readSeq() {
    return this._chat.readSeq;
  }

  get deliveredSeq() {
    return Math.max(this._chat.deliveredSeq, this._chat.toldSeq);
  }

  /** Everything up to here was given. */
  get syncedSeq() {
    return this._chat.syncedSeq;
  }

  get unread() {
    return this._chat.unread.value;
  }

  get unreadMentions() {
    return this._chat.mentions.value;
  }

  get lastMessage() {
    return this._chat.lastMessage;
  }

  get updatedAt() {
    return this._chat.updatedAt;
  }

  get pinned() {
    return this._chat.pinned;
  }

  get recvMsgOpt() {
    return this._chat.recvMsgOpt;
  }

  get peerReadSeq() {
    return this._chat.peerReadSeq;
  }

  get peerDeliveredSeq() {
    return this._chat.peerDeliveredSeq;
  }

  /** What is in memory, by seq and without holes; provisional copies at the end. */
  get messages() {
    this._messages ??= Object.freeze([...this._chat.window.messages, ...this._chat.timeline.provisional]);
    return this._messages;
  }

  /** What was sent and is not among the messages yet, in order. @returns {OutgoingMessage[]} */
  get pending() {
    return this._client._pendingOf(this.id);
  }

  get hasEarlier() {
    return this._chat.window.hasEarlier;
  }

  get hasLater() {
    return !this._chat.window.isAtEnd;
  }

  /**
   * Set it while somebody reads in the middle of `messages`: when they are at their limit, the oldest are not pushed
   * out by what comes; then `hasLater` is true.
   */
  get keepsPlace() {
    return this._chat.window.keepsPlace;
  }

  set keepsPlace(on) {
    this._chat.window.keepsPlace = on;
  }

  /** Who types now. */
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
    return this._client._enqueue(this._chat, content, options);
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
    this._client._markRead(this._chat, seq);
  }

  /** Call it with each key: it is told every few seconds. @param {boolean} [on] */
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

  // -- receipts and settings --------------------------------------------------------------------------------

  /**
   * How far one of your own messages has come; null for others'.
   * @param {Message} message
   */
  stateOf(message) {
    if (message.senderId !== this._chat.userId || message.seq === null) return null;
    return this._chat.stateOf(message.seq);
  }

  /**
   * @param {string} serverMsgId
   * @returns {Promise<Receipts>}
   */
  async receipts(serverMsgId) {
    return camel(await this._client.call("GET", "/msg/receipts", { server_msg_id: serverMsgId }));
  }

  /** @param {{pinned?: boolean, recvMsgOpt?: number, hidden?: boolean}} settings */
  async update({ pinned, recvMsgOpt, hidden }) {
    const row = await this._client.call("PUT", "/conversation/update", {
      conversation_id: this.id,
      pinned,
      recv_msg_opt: recvMsgOpt,
      hidden,
    });
    this._client._applyRows([row]);
    if (hidden !== undefined) this._chat.isHidden = hidden;
    this._client._changed(this._chat);
  }

  // -- paging -----------------------------------------------------------------------------------------------

  /**
   * Older messages into `messages`.
   * @param {number} [limit]
   * @returns {Promise<number>} how many came
   */
  loadEarlier(limit = PAGE) {
    return this._load(async () => {
      const { window } = this._chat;
      if (!window.hasEarlier) return 0;
      if (window.messages.length === 0) return this._loadNewest(limit);
      const page = await this._history(window.messages[0]?.seq, limit);
      return window.prepend(page.messages, page.hasMore);
    });
  }

  /**
   * Newer ones, after paging back beyond what is kept in memory.
   * @param {number} [limit]
   * @returns {Promise<number>} how many came
   */
  loadLater(limit = PAGE) {
    return this._load(() => this._extend(limit));
  }

  /** To the newest messages. @param {number} [limit] @returns {Promise<number>} */
  loadLatest(limit = PAGE) {
    return this._load(async () => {
      const { window } = this._chat;
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
      this._chat.window.reset(page.messages, before - 1, page.hasMore, before > this._end);
      if (before <= this._end) await this._extend(Math.ceil(limit / 2));
      return page.messages.length;
    });
  }

  /** Where the window's end is, or would be. */
  get _end() {
    return this._chat.timeline.isPlaced ? this._chat.syncedSeq : Number.MAX_SAFE_INTEGER - 1;
  }

  /** @param {number} limit */
  async _loadNewest(limit) {
    const { window, timeline } = this._chat;
    const end = this._chat.syncedSeq;
    const page = await this._history(timeline.isPlaced ? end + 1 : undefined, limit);
    if (window.isAtEnd && window.messages.length > 0) return window.prepend(page.messages, page.hasMore); // came meanwhile
    const last = page.messages[page.messages.length - 1]?.seq ?? 0;
    window.reset(page.messages, timeline.isPlaced ? end : last, page.hasMore, true);
    while (timeline.isPlaced && window.toSeq < this._chat.syncedSeq) {
      window.isAtEnd = false;
      if ((await this._extend(PAGE_MAX)) === 0) break;
    }
    return page.messages.length;
  }

  /** @param {number} limit */
  async _extend(limit) {
    const { window } = this._chat;
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
      // nobody has written yet
      if (error instanceof NexoError && error.reason === "conversation_not_found") return EMPTY;
      throw error;
    }
  }

  /** @param {any} data @returns {Page} */
  _page(data) {
    const messages = data.messages.map((/** @type {any} */ shape) => messageFromApi(shape, this._chat.userId));
    const { head_seq: headSeq, next_seq: nextSeq, has_more: hasMore } = data;
    return { messages: this._chat.correct(messages), headSeq, nextSeq, hasMore };
  }

  /**
   * @param {() => Promise<number>} work
   * @returns {Promise<number>}
   */
  _load(work) {
    const done = this._loading.then(async () => {
      const count = await work();
      this._client._touch(this._chat);
      this._client._changed(this._chat);
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
