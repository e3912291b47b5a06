// One conversation as this device knows it: its place in the list, cursors, counters and messages. No I/O.

import { Counter } from "./counter.js";
import { groupOf, peerOf } from "./ids.js";
import { RECALLED, isCountable, isEvent, recalledCopy } from "./messages.js";
import { Timeline } from "./timeline.js";
import { Window } from "./window.js";

/** @import { ListRow, Message, Page, PlacedMessage, SyncEntry } from "../types.js" */

const MEMBER_CURSORS_MAX = 200;
const RECALLS_MAX = 200;

export class Chat {
  /**
   * @param {string} id
   * @param {string} userId
   * @param {number} windowSize
   */
  constructor(id, userId, windowSize) {
    this.id = id;
    this.userId = userId;
    this.groupId = groupOf(id);
    this.peerId = peerOf(id, userId);
    this.minSeq = 1;
    this.readSeq = 0;
    /** As the server last told. */
    this.deliveredSeq = 0;
    /** What the server was told on this connection, and what is worth telling. */
    this.toldSeq = 0;
    this.worthSeq = 0;
    /** The server's read cursor; the own one may be ahead of it. */
    this.serverReadSeq = 0;
    this.peerReadSeq = 0;
    this.peerDeliveredSeq = 0;
    this.pinned = false;
    this.recvMsgOpt = 0;
    this.updatedAt = 0;
    this.isListed = false;
    /** When it was last told of by a message, by this device's clock. */
    this.listedAt = 0;
    this.isHidden = false;
    /** In what order SYNC told of it, for rows that have no time yet. */
    this.rank = Infinity;
    /** @type {Message | null} */
    this.lastMessage = null;
    this.timeline = new Timeline();
    this.window = new Window(windowSize);
    this.unread = new Counter();
    this.mentions = new Counter();
    /** What members of a small group have got and read. @type {Map<string, {delivered: number, read: number}>} */
    this.memberCursors = new Map();
    /** The latest recalls that were told. @type {Map<string, number>} */
    this._recalls = new Map();
  }

  get syncedSeq() {
    return this.timeline.syncedSeq ?? 0;
  }

  // -- what the server tells of the whole -------------------------------------------------------------------

  /**
   * A SYNC entry.
   * @param {SyncEntry} entry
   * @param {number | undefined} baseline how far this device had it in an earlier life
   * @param {boolean} isFirst the SYNC of signing in: nothing can be newer than it
   * @returns {PlacedMessage[]} what can be given now
   */
  applyEntry(entry, baseline, isFirst) {
    this.minSeq = entry.minSeq;
    this.deliveredSeq = Math.max(entry.deliveredSeq, isFirst ? 0 : this.deliveredSeq);
    this.toldSeq = Math.max(this.toldSeq, entry.deliveredSeq);
    this.serverReadSeq = entry.readSeq;
    let given = this._place(entry, baseline, isFirst);
    if (this.syncedSeq < entry.minSeq - 1) given = given.concat(this.timeline.stepTo(entry.minSeq));
    this.timeline.learnHead(entry.headSeq);
    // what an earlier membership held between is history: the window begins anew
    if (given[0]) this.window.append(given, given[0].seq, this.syncedSeq);
    this._moveRead(entry.readSeq);
    this.unread.set(entry.unread, entry.readSeq, entry.headSeq, this.readSeq, this._countUnread);
    return this._take(given);
  }

  /**
   * @param {SyncEntry} entry
   * @param {number | undefined} baseline
   * @param {boolean} isFirst
   */
  _place(entry, baseline, isFirst) {
    const start = Math.max(entry.minSeq - 1, Math.min(baseline ?? entry.deliveredSeq, entry.headSeq));
    if (!this.timeline.isPlaced) {
      if (start === 0) this.window.hasEarlier = false;
      return this.timeline.place(start);
    }
    if (isFirst && this.syncedSeq > Math.max(entry.headSeq, entry.minSeq - 1)) {
      // a server that lost its end (restored from a copy): begin again with what it has
      this.timeline.restart(Math.max(entry.minSeq - 1, entry.headSeq));
      this.window.reset([], 0, true, true);
      this.readSeq = Math.min(this.readSeq, entry.readSeq);
      this.unread = new Counter();
      this.mentions = new Counter();
      this.worthSeq = 0;
    }
    return [];
  }

  /**
   * A row of the list, which may be older than what came over the socket.
   * @param {ListRow} row
   */
  applyRow(row) {
    this.isListed = true;
    this.isHidden = false;
    this.pinned = row.pinned;
    this.recvMsgOpt = row.recvMsgOpt;
    this.minSeq = Math.max(this.minSeq, row.minSeq);
    this.peerReadSeq = Math.max(this.peerReadSeq, row.peerReadSeq ?? 0);
    this.peerDeliveredSeq = Math.max(this.peerDeliveredSeq, row.peerDeliveredSeq ?? 0, this.peerReadSeq);
    this.updatedAt = Math.max(this.updatedAt, row.updatedAt);
    const last = row.lastMessage;
    if (last && (last.seq ?? 0) >= (this.lastMessage?.seq ?? 0)) this.lastMessage = last;
    this._moveRead(row.readSeq);
    this.unread.set(row.unread, row.readSeq, row.headSeq, this.readSeq, this._countUnread);
    this.mentions.set(row.unreadMentions, row.readSeq, row.headSeq, this.readSeq, this._countMentions);
  }

  /** It is new: everything is still to come. */
  begin() {
    const given = this.timeline.place(0);
    this.window.hasEarlier = false;
    if (given[0]) this.window.append(given, given[0].seq, this.syncedSeq);
    return this._take(given);
  }

  /** A new connection: what was told on the old one may be lost. */
  reconnected() {
    this.toldSeq = 0;
  }

  // -- messages ---------------------------------------------------------------------------------------------

  /**
   * A message with its place, pushed, resent, pulled or one's own.
   * @param {PlacedMessage} message
   * @returns {PlacedMessage[]} what can be given now, in order
   */
  receive(message) {
    const from = this.syncedSeq + 1;
    const given = this.timeline.accept(message);
    this.window.append(given, from, this.syncedSeq);
    return this._take(given);
  }

  /**
   * The answer to a pull from the contiguous point.
   * @param {Page} page
   * @returns {PlacedMessage[]}
   */
  receivePage(page) {
    const from = this.syncedSeq + 1;
    let given = page.messages.flatMap((message) => this.timeline.accept(message));
    given = given.concat(this.timeline.stepTo(page.nextSeq));
    if (!page.hasMore) this.timeline.settleHead(page.headSeq);
    this.window.append(given, from, this.syncedSeq);
    return this._take(given);
  }

  /** @param {Message} message @param {number} until @returns {boolean} whether it is new */
  receiveProvisional(message, until) {
    const id = message.serverMsgId;
    if (id === null || this.window.find(id) || this.timeline.isAhead(id)) return false; // the final copy came first
    this.timeline.holdProvisional(message, until);
    return true;
  }

  /**
   * What follows from messages that are given now.
   * @param {PlacedMessage[]} given
   */
  _take(given) {
    for (const message of given) {
      const isOwn = message.senderId === this.userId;
      if (isOwn && !isEvent(message)) this._stepOverOwn(message.seq);
      else this.worthSeq = message.seq;
      this.unread.given(message.seq, isCountable(message, this.userId));
      this.mentions.given(message.seq, isCountable(message, this.userId) && message.important);
      if (message.msgType === RECALLED) this.markRecalled(message.content.server_msg_id, message.sendAt);
      if (message.msgType !== RECALLED && message.seq >= (this.lastMessage?.seq ?? 0)) this.lastMessage = message;
      this.updatedAt = Math.max(this.updatedAt, message.sendAt);
      this.isHidden = false;
    }
    return given;
  }

  /**
   * Blank it, and the quotes of it, wherever they are in memory.
   * @param {string} serverMsgId
   * @param {number} at
   */
  markRecalled(serverMsgId, at) {
    this._recalls.set(serverMsgId, at);
    const [oldest] = this._recalls.keys();
    if (this._recalls.size > RECALLS_MAX && oldest !== undefined) this._recalls.delete(oldest);
    /** @template {Message} M @param {M} message @returns {M} */
    const change = (message) => {
      if (message.serverMsgId === serverMsgId && message.status !== 1) return recalledCopy(message, at);
      if (message.quote?.serverMsgId === serverMsgId) return { ...message, quote: null };
      return message;
    };
    this.window.map(change);
    if (this.lastMessage) this.lastMessage = change(this.lastMessage);
  }

  /**
   * A page that was asked for over HTTP may be older than a recall that came over the socket.
   * @param {PlacedMessage[]} messages
   */
  correct(messages) {
    return messages.map((message) => {
      const at = message.serverMsgId === null ? undefined : this._recalls.get(message.serverMsgId);
      return at === undefined || message.status === 1 ? message : recalledCopy(message, at);
    });
  }

  // -- cursors ----------------------------------------------------------------------------------------------

  /** The place that `delivered` should be told for, or null. */
  get ackSeq() {
    return this.worthSeq > this.toldSeq ? this.syncedSeq : null;
  }

  /** What was read here and the server does not know. */
  get readToTell() {
    return this.readSeq > this.serverReadSeq ? this.readSeq : null;
  }

  /**
   * Read up to `seq`, here. Never beyond what was given.
   * @param {number} seq
   * @returns {boolean} whether that moved the cursor
   */
  read(seq) {
    return this._moveRead(Math.min(seq, this.syncedSeq));
  }

  /** Another device of this user has read. @param {number} seq */
  readElsewhere(seq) {
    this.serverReadSeq = Math.max(this.serverReadSeq, seq);
    return this._moveRead(seq);
  }

  /** @param {number} seq */
  _moveRead(seq) {
    if (seq <= this.readSeq) return false;
    const from = this.readSeq;
    this.readSeq = seq;
    this.unread.read(from, seq, this._countUnread);
    this.mentions.read(from, seq, this._countMentions);
    for (let next = this.window.at(this.readSeq + 1); next && this._isOwn(next); next = this.window.at(next.seq + 1)) {
      this.readSeq = next.seq;
      if (this.serverReadSeq === next.seq - 1) this.serverReadSeq = next.seq;
    }
    return true;
  }

  /** Cursors step over one's own message when everything before it is covered. @param {number} seq */
  _stepOverOwn(seq) {
    if (this.readSeq === seq - 1) this.readSeq = seq;
    if (this.serverReadSeq === seq - 1) this.serverReadSeq = seq;
    if (this.deliveredSeq === seq - 1) this.deliveredSeq = seq;
    if (this.toldSeq === seq - 1) this.toldSeq = seq;
  }

  /** @param {Message} message */
  _isOwn(message) {
    return message.senderId === this.userId && !isEvent(message);
  }

  /**
   * Somebody has got or read what this user wrote.
   * @param {string} userId
   * @param {"delivered" | "read"} type
   * @param {number} seq
   */
  applyReceipt(userId, type, seq) {
    if (this.peerId !== null) {
      if (type === "read") this.peerReadSeq = Math.max(this.peerReadSeq, seq);
      this.peerDeliveredSeq = Math.max(this.peerDeliveredSeq, seq);
      return;
    }
    const cursors = this.memberCursors.get(userId) ?? { delivered: 0, read: 0 };
    if (type === "read") cursors.read = Math.max(cursors.read, seq);
    cursors.delivered = Math.max(cursors.delivered, seq);
    if (this.memberCursors.size < MEMBER_CURSORS_MAX) this.memberCursors.set(userId, cursors);
  }

  /**
   * How far one's own message has come.
   * @param {number} seq
   * @returns {"saved" | "delivered" | "read"}
   */
  stateOf(seq) {
    let { peerReadSeq: read, peerDeliveredSeq: delivered } = this;
    for (const cursors of this.memberCursors.values()) {
      read = Math.max(read, cursors.read);
      delivered = Math.max(delivered, cursors.delivered);
    }
    return seq <= read ? "read" : seq <= delivered ? "delivered" : "saved";
  }

  /** @type {import("./counter.js").Count} */
  _countUnread = (low, high) => this.window.count(low, high, (message) => isCountable(message, this.userId));

  /**
   * A recalled message does not tell any more whom it mentioned, and counts all the same.
   * @type {import("./counter.js").Count}
   */
  _countMentions = (low, high) => {
    const blanked = this.window.count(low, high, (message) => message.status === 1 && !message.important);
    if (blanked !== 0) return null;
    return this.window.count(low, high, (message) => message.important && isCountable(message, this.userId));
  };
}
