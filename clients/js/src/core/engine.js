// The whole client without I/O: frames and calls in, frames, events and storage wishes out, time passed in.

import { Acknowledging } from "./acknowledging.js";
import { Baselines } from "./baselines.js";
import { CatchUp } from "./catchup.js";
import { Chat } from "./chat.js";
import { authFrame, sendFrame } from "./frames.js";
import { Link } from "./link.js";
import { RECALLED, isEvent, messageFromFrame, messageFromSaved, recallFromFrame } from "./messages.js";
import { Outbox } from "./outbox.js";
import { Timers } from "./timers.js";
import { Typists } from "./typists.js";

/** @import { EngineOptions } from "./options.js" */
/** @import { ListRow, Message, OutboxItem, PlacedMessage, State, SyncEntry } from "../types.js" */

const EXPLAINING = new Set([
  "kicked", "replaced", "session_invalid", "token_expired", "unauthorized", "auth_timeout", "reauth_uid_mismatch",
  "slow_consumer", "server_shutdown",
]); // prettier-ignore

/**
 * @typedef {object} EngineHost
 * @property {() => void} open
 * @property {(code: number) => void} drop
 * @property {(isExpired: boolean) => void} needToken
 * @property {() => {token: string, deviceId: string}} credentials
 * @property {(frame: object) => void} send
 * @property {(name: string, payload: any) => void} emit
 * @property {(chat: Chat) => void} changed
 * @property {(item: OutboxItem) => void} itemChanged its state or error is another; it is to be stored
 * @property {(item: OutboxItem, message: PlacedMessage) => void} itemSaved
 * @property {(clientMsgId: string) => void} itemGiven its message is among those of the conversation
 * @property {(baselines: Map<string, number>) => void} storeBaselines
 * @property {(reason: string, forgetSession: boolean) => void} ended
 * @property {() => void} loadList
 */

export class Engine {
  /**
   * @param {string} userId
   * @param {EngineHost} host
   * @param {EngineOptions} options
   * @param {() => number} clock
   */
  constructor(userId, host, options, clock) {
    this.userId = userId;
    this._host = host;
    this._options = options;
    this._clock = clock;
    this._timers = new Timers();
    /** @type {Map<string, Chat>} */
    this.chats = new Map();
    /** Saved, but above a hole: still shown as pending. @type {Map<string, OutboxItem>} */
    this.savedAhead = new Map();
    /** Conversations with messages in memory, least recently used first. @type {Set<Chat>} */
    this._inMemory = new Set();
    this._isFirstSync = false;
    this._rank = 0;
    this._isOnline = false;
    /** @type {string[]} */
    this._presence = [];
    this.baselines = new Baselines(this._timers, (baselines) => host.storeBaselines(baselines));
    this.typists = new Typists(this._timers, (id, userId, on) => this._typingChanged(id, userId, on));
    this._acks = new Acknowledging(this._timers, options.ackDelayMs, (frame) => host.send(frame));
    this.outbox = new Outbox(options);
    this.catchUp = new CatchUp(
      {
        ask: (frame) => this._ask(frame),
        pullFrom: (id) => this._pullFrom(id),
        abandon: (id) => this._abandon(id),
        isUnclear: (id) => this._isUnclear(id),
        caughtUp: () => this._setOnline(true),
      },
      options,
    );
    this.link = new Link(
      {
        open: () => host.open(),
        drop: (code) => host.drop(code),
        needToken: (isExpired) => host.needToken(isExpired),
        authFrame: () => this._authFrame(),
        send: (frame) => host.send(frame),
        changed: () => this._linkChanged(),
        disconnected: () => this._disconnected(),
        ended: (reason, forgetSession) => host.ended(reason, forgetSession),
      },
      options,
    );
    /** @type {import("../types.js").StateChange} */
    this._told = { state: "offline", reason: null, retryAt: null };
  }

  // -- state ------------------------------------------------------------------------------------------------

  /** @returns {State} */
  get state() {
    const phase = this.link.phase;
    if (phase === "idle" || phase === "waiting") return "offline";
    if (phase === "ended") return "closed";
    if (phase !== "ready") return "connecting";
    return this._isOnline ? "online" : "syncing";
  }

  get stateChange() {
    return { state: this.state, reason: this.link.reason, retryAt: this.link.retryAt };
  }

  /** When `tick` wants to be called. */
  get deadline() {
    const outbox = this.link.isReady ? this.outbox.deadline : Infinity;
    return Math.min(this._timers.next, this.link.timers.next, this.catchUp.timers.next, outbox);
  }

  tick() {
    const now = this._clock();
    this.link.tick(now);
    this._timers.run(now); // acknowledgements before questions
    this.catchUp.timers.run(now);
    this.pump();
  }

  start() {
    this.link.start(this._clock());
  }

  /** Say what is still to be said, and go. */
  stop() {
    if (this.link.isReady) this._acks.flush();
    this.baselines.flush();
    this.link.stop();
    this._timers.clearAll();
  }

  _linkChanged() {
    if (this.link.phase !== "ready") this._isOnline = false;
    this._tellState();
  }

  _tellState() {
    const change = this.stateChange;
    const told = this._told;
    if (change.state === told.state && change.reason === told.reason && change.retryAt === told.retryAt) return;
    this._told = change;
    this._host.emit("state", change);
  }

  /** @param {boolean} isOnline */
  _setOnline(isOnline) {
    this._isOnline = isOnline;
    this._tellState();
  }

  _disconnected() {
    this._isOnline = false;
    this.outbox.disconnected();
    this.catchUp.stop();
    this._acks.clear();
    this.typists.clear();
    for (const chat of this.chats.values()) {
      chat.reconnected();
      if (chat.timeline.expireProvisional(Infinity)) this._host.changed(chat);
    }
  }

  _authFrame() {
    const { token, deviceId } = this._host.credentials();
    const known = new Map(this.baselines.all);
    for (const chat of this.chats.values()) if (chat.timeline.isPlaced) known.set(chat.id, chat.syncedSeq);
    return authFrame(token, deviceId, known);
  }

  // -- frames -----------------------------------------------------------------------------------------------

  /** @param {any} frame */
  receive(frame) {
    const now = this._clock();
    this.link.heard(now);
    switch (frame.type) {
      case "AUTH_OK":
        return this._signedIn(now, frame);
      case "AUTH_FAIL":
        return this.link.explain(now, frame.reason, frame.retryAfterMs ?? 0);
      case "SYNC":
        return this._synced(now, frame);
      case "RESYNC":
        return this._resync(now, frame);
      case "SINGLE_CHAT":
      case "GROUP_CHAT":
      case "GROUP_EVENT":
        return this._message(now, messageFromFrame(frame, this.userId));
      case "MESSAGE_REVOKED":
        return this._message(now, recallFromFrame(frame));
      case "MESSAGE_WITHDRAWN":
        return this._withdrawn(frame);
      case "PULL_OK":
        return this._pulled(now, frame);
      case "ACK":
        return this._ack(now, frame);
      case "GROUP_NOTIFY":
        return this._headGrew(now, frame.conversationId, frame.headSeq);
      case "HEADS":
        for (const head of frame.conversations) this._headGrew(now, head.conversationId, head.headSeq);
        return;
      case "TYPING":
        return this.typists.tell(now, frame.conversationId, frame.from, frame.on);
      case "PRESENCE":
        return this._host.emit("presence", { users: frame.users });
      case "ERROR":
        return this._error(now, frame);
      default: // PONG, RESEND_DONE (what is still missing is pulled), and what a later server may send
    }
  }

  /** @param {number} now @param {any} frame */
  _signedIn(now, frame) {
    if (this.link.isReady) return; // the answer to REAUTH
    this._isFirstSync = true;
    this._rank = 0;
    this.catchUp.start(now);
    this.link.authOk(now, frame.heartbeatMs);
    if (this._presence.length > 0) this._host.send({ type: "PRESENCE", subscribe: this._presence });
    this.pump();
    this._host.loadList();
  }

  /** @param {number} now @param {any} frame */
  _synced(now, frame) {
    const isFirst = this._isFirstSync;
    for (const entry of /** @type {SyncEntry[]} */ (frame.conversations)) {
      const chat = this.chat(entry.conversationId);
      const isNew = !chat.timeline.isPlaced;
      const given = chat.applyEntry(entry, this.baselines.get(chat.id), isFirst);
      chat.isListed = chat.isListed || isNew;
      if (isFirst) chat.rank = this._rank++;
      this._give(chat, given);
      if (chat.timeline.isBehind) this.catchUp.want(now, chat.id, { holdsUp: true });
      if (chat.unread.isStale) this.catchUp.wantEntry(now, chat.id, 500);
      this._acks.note(now, chat);
      this._host.changed(chat);
    }
    const isWhole = frame.hasMore || this.catchUp.timers.has("sync");
    if (isFirst && !frame.hasMore) this._isFirstSync = false;
    if (isFirst || isWhole) this.catchUp.synced(now, frame.hasMore, frame.cursor);
  }

  /** @param {number} now @param {any} frame */
  _resync(now, frame) {
    for (const chat of this.chats.values()) {
      if (chat.timeline.expireProvisional(Infinity)) this._host.changed(chat);
    }
    this.catchUp.resync(now, frame.afterMs ?? 0, frame.conversations);
  }

  /** @param {number} now @param {Message} message */
  _message(now, message) {
    const chat = this.chat(message.conversationId);
    if (message.provisional) {
      if (!chat.receiveProvisional(message, now + this._options.provisionalMs)) return;
      chat.isListed = true;
      chat.listedAt = now;
      this.typists.stop(chat.id, message.senderId);
      this._timers.set(`provisional ${message.serverMsgId}`, now + this._options.provisionalMs, (later) => {
        if (chat.timeline.expireProvisional(later)) this._host.changed(chat);
      });
      this._host.changed(chat);
      this._host.emit("provisional", { message, chat });
      return;
    }
    this._placed(now, chat, /** @type {PlacedMessage} */ (message));
  }

  /** @param {number} now @param {Chat} chat @param {PlacedMessage} message */
  _placed(now, chat, message) {
    if (!chat.timeline.isPlaced) {
      if (message.seq === 1) chat.timeline.place(0);
      else this.catchUp.wantEntry(now, chat.id);
    }
    chat.isListed = true;
    chat.listedAt = now;
    this._confirm(message);
    this._give(chat, chat.receive(message));
    this._acks.note(now, chat);
    if (chat.timeline.isBehind) this.catchUp.want(now, chat.id);
    this.catchUp.progressed(now, chat.id);
    this._host.changed(chat);
  }

  /** One's own message, seen on the server: that is as good as its ACK. @param {PlacedMessage} message */
  _confirm(message) {
    if (message.senderId !== this.userId || message.clientMsgId === null) return;
    const item = this.outbox.saved(message.clientMsgId);
    if (item) this._itemSaved(item, message);
  }

  /** @param {OutboxItem} item @param {PlacedMessage} message */
  _itemSaved(item, message) {
    this.savedAhead.set(item.clientMsgId, item);
    this._host.itemSaved(item, message);
  }

  /** It is among the messages, and no longer pending. @param {string} clientMsgId */
  _itemGiven(clientMsgId) {
    if (this.savedAhead.delete(clientMsgId)) this._host.itemGiven(clientMsgId);
  }

  /**
   * Messages whose turn it is.
   * @param {Chat} chat
   * @param {readonly PlacedMessage[]} given
   */
  _give(chat, given) {
    if (given.length > 0) this.touch(chat);
    for (const message of given) {
      if (message.clientMsgId !== null) this._itemGiven(message.clientMsgId);
      this.typists.stop(chat.id, message.senderId);
      if (message.msgType === RECALLED) {
        const { server_msg_id: serverMsgId, by } = message.content;
        this._host.emit("recalled", { serverMsgId, seq: message.seq, by, chat });
      } else if (isEvent(message)) this._host.emit("groupEvent", { message, chat });
      else this._host.emit(message.senderId === this.userId ? "sent" : "message", { message, chat });
    }
    if (chat.timeline.isPlaced) this.baselines.note(this._clock(), chat.id, chat.syncedSeq);
  }

  /** @param {number} now @param {any} frame */
  _pulled(now, frame) {
    const chat = this.chat(frame.conversationId);
    const messages = /** @type {PlacedMessage[]} */ (
      frame.messages.map((/** @type {any} */ shape) => messageFromFrame(shape, this.userId))
    );
    if (!chat.timeline.isPlaced) return;
    for (const message of messages) this._confirm(message);
    const { headSeq, nextSeq, hasMore } = frame;
    this._give(chat, chat.receivePage({ messages, headSeq, nextSeq, hasMore }));
    this._acks.note(now, chat);
    this.catchUp.pulled(now, chat.id);
    this._host.changed(chat);
  }

  /** @param {any} frame */
  _withdrawn(frame) {
    const chat = this.chats.get(frame.conversationId);
    if (!chat?.timeline.dropProvisional(frame.serverMsgId)) return;
    this._timers.clear(`provisional ${frame.serverMsgId}`);
    this._host.changed(chat);
    this._host.emit("withdrawn", { serverMsgId: frame.serverMsgId, reason: frame.reason, chat });
  }

  /** @param {number} now @param {string} conversationId @param {number} headSeq */
  _headGrew(now, conversationId, headSeq) {
    const chat = this.chat(conversationId);
    chat.timeline.learnHead(headSeq);
    if (!chat.timeline.isPlaced) this.catchUp.wantEntry(now, conversationId);
    else if (chat.timeline.isBehind) this.catchUp.want(now, conversationId, { isSure: true });
  }

  /** @param {string} conversationId */
  _pullFrom(conversationId) {
    const chat = this.chats.get(conversationId);
    return chat?.timeline.isBehind ? chat.syncedSeq + 1 : null;
  }

  /** @param {string} conversationId */
  _abandon(conversationId) {
    const chat = this.chats.get(conversationId);
    chat?.timeline.restart(chat.syncedSeq);
  }

  /** @param {string} conversationId */
  _isUnclear(conversationId) {
    const chat = this.chats.get(conversationId);
    return chat !== undefined && (!chat.timeline.isPlaced || chat.unread.isStale);
  }

  // -- acknowledgements -------------------------------------------------------------------------------------

  /** @param {number} now @param {any} frame */
  _ack(now, frame) {
    if (frame.ackType === "saved") return this._saved(now, frame);
    if (frame.ackType === "accepted") {
      if (this.outbox.accepted(frame.clientMsgId, now)) {
        const entry = this.outbox.get(frame.clientMsgId);
        if (entry) this._host.itemChanged(entry.item);
      }
      return;
    }
    if (frame.ackType !== "delivered" && frame.ackType !== "read") return;
    const chat = this.chat(frame.conversationId);
    const seq = Number(frame.msgSeq);
    if (frame.from === undefined || frame.from === this.userId) {
      if (frame.ackType === "read") this._readMoved(now, chat, chat.readElsewhere(seq));
      return;
    }
    chat.applyReceipt(frame.from, frame.ackType, seq);
    this._host.changed(chat);
    const { ackType: type, from: userId, serverMsgId } = frame;
    this._host.emit("receipt", { type, userId, seq, serverMsgId, chat });
  }

  /** @param {number} now @param {any} frame */
  _saved(now, frame) {
    const item = this.outbox.saved(frame.clientMsgId);
    if (!item) return;
    const chat = this.chat(item.conversationId);
    const target = item.replyTo === null ? undefined : chat.window.find(item.replyTo);
    const message = messageFromSaved(item, frame, this.userId, target);
    this._itemSaved(item, message);
    if (chat.timeline.isPlaced && message.seq <= chat.syncedSeq) this._itemGiven(item.clientMsgId);
    this._placed(now, chat, message);
    this.pump();
  }

  /** @param {Chat} chat @param {number} seq */
  markRead(chat, seq) {
    this._readMoved(this._clock(), chat, chat.read(seq));
  }

  /** @param {number} now @param {Chat} chat @param {boolean} hasMoved */
  _readMoved(now, chat, hasMoved) {
    if (!hasMoved) return;
    this._acks.note(now, chat);
    if (chat.unread.isStale) this.catchUp.wantEntry(now, chat.id, this._options.ackDelayMs + 300);
    if (chat.mentions.isStale) this._host.loadList();
    this._host.changed(chat);
  }

  // -- sending ----------------------------------------------------------------------------------------------

  /**
   * Before the first message to somebody: SYNC told of all conversations, so this one does not exist yet, and
   * begins with whatever comes. (Else, if the answer to that message were lost, it would pass for history.)
   * @param {Chat} chat
   */
  beginIfNew(chat) {
    if (chat.timeline.isPlaced || !this.link.isReady || !this.catchUp.isCaughtUp) return;
    this._give(chat, chat.begin());
  }

  /** Put on the wire what may go. */
  pump() {
    if (!this.link.isReady) return;
    const now = this._clock();
    for (const item of this.outbox.take(now)) {
      this.link.asked(now);
      this._host.send(sendFrame(item));
    }
  }

  /** @param {object} frame */
  _ask(frame) {
    this.link.asked(this._clock());
    this._host.send(frame);
  }

  /** @param {number} now @param {any} frame */
  _error(now, frame) {
    const { reason, clientMsgId, detail = "", retryAfterMs = 0 } = frame;
    if (clientMsgId === undefined) {
      if (EXPLAINING.has(reason) || reason === "too_many_requests") this.link.explain(now, reason, retryAfterMs);
      if (!EXPLAINING.has(reason)) this._host.emit("error", frame);
      return;
    }
    const outcome = this.outbox.refused(clientMsgId, { reason, detail }, retryAfterMs, now);
    if (outcome === "failed") {
      const entry = this.outbox.get(clientMsgId);
      if (entry) this._host.itemChanged(entry.item);
    }
    if (outcome !== "unknown") this.pump();
    else if (!this.catchUp.failed(now, clientMsgId, reason, retryAfterMs)) this._host.emit("error", frame);
  }

  // -- the rest ---------------------------------------------------------------------------------------------

  /** @param {string} conversationId @param {string} userId @param {boolean} on */
  _typingChanged(conversationId, userId, on) {
    const chat = this.chat(conversationId);
    this._host.changed(chat);
    this._host.emit("typing", { userId, on, chat });
  }

  /** @param {string[]} userIds */
  watchPresence(userIds) {
    this._presence = userIds;
    if (this.link.isReady) this._host.send({ type: "PRESENCE", subscribe: userIds });
  }

  /**
   * Rows of the list.
   * @param {readonly ListRow[]} rows
   */
  applyRows(rows) {
    for (const row of rows) {
      const chat = this.chat(row.conversationId);
      chat.applyRow(row);
      this._host.changed(chat);
    }
  }

  /**
   * The list is complete: what is not in it was hidden, unless something came since.
   * @param {ReadonlySet<string>} listed
   * @param {number} since
   */
  hideUnlisted(listed, since) {
    for (const chat of this.chats.values()) {
      if (!chat.isListed || listed.has(chat.id) || chat.listedAt >= since) continue;
      chat.isHidden = true;
      this._host.changed(chat);
    }
  }

  /** @param {string} conversationId */
  chat(conversationId) {
    let chat = this.chats.get(conversationId);
    if (!chat) {
      chat = new Chat(conversationId, this.userId, this._options.windowSize);
      this.chats.set(conversationId, chat);
    }
    return chat;
  }

  /** Its messages are in use. @param {Chat} chat */
  touch(chat) {
    this._inMemory.delete(chat);
    this._inMemory.add(chat);
    if (this._inMemory.size <= this._options.maxConversations) return;
    const [oldest] = this._inMemory;
    if (oldest) {
      this._inMemory.delete(oldest);
      oldest.window.shrink(1);
    }
  }
}
