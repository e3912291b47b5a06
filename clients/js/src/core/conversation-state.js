// One conversation as this device knows it: messages in order, what is shown, cursors and unread counts. No I/O.

import { groupOf, peerOf } from "./ids.js";
import { MessageChanges } from "./message-changes.js";
import { DEFAULT_SETTINGS, EDITED, REACTIONS, RECALLED, areSameSettings, expiredCopy, isCountable } from "./messages.js";
import { isEvent, isMention, isQuiet, settingsOf } from "./messages.js";
import { Timeline } from "./timeline.js";
import { UnreadCounter } from "./unread-counter.js";
import { Window } from "./window.js";

/** @import { ConversationSettings, ListRow, Message, Page, PlacedMessage, SyncEntry } from "../types.js" */

const MEMBER_CURSORS_MAX = 200;

export class ConversationState {
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
    /** The cursor of the server. */
    this.deliveredSeq = 0;
    /** `delivered` was sent up to here on this connection, and has to be sent up to there. */
    this.acknowledged = 0;
    this.toAcknowledge = 0;
    /** Seqs that were given to the application's inbox, in order. @type {Set<number>} */
    this.unhandled = new Set();
    /** The server's read cursor; the own one may be ahead of it. */
    this.serverReadSeq = 0;
    this.peerReadSeq = 0;
    this.peerDeliveredSeq = 0;
    /** @type {ConversationSettings} */
    this.settings = DEFAULT_SETTINGS;
    /** Up to which revision this device has the user's deletions; null before the server named one. @type {number | null} */
    this.deletedRev = null;
    /** The revisions that the server's last counts are without. */
    this.unreadRev = 0;
    this.mentionsRev = 0;
    this.updatedAt = 0;
    this.isListed = false;
    /** When its last message arrived, by this device's clock. */
    this.listedAt = 0;
    this.isHidden = false;
    /** Its position in SYNC, for conversations without a time. */
    this.rank = Infinity;
    /** @type {Message | null} */
    this.lastMessage = null;
    this.timeline = new Timeline();
    this.window = new Window(windowSize);
    this.unread = new UnreadCounter();
    this.mentions = new UnreadCounter();
    /** What members of a small group have got and read. @type {Map<string, {delivered: number, read: number}>} */
    this.memberCursors = new Map();
    this.changes = new MessageChanges();
    this._hasExpiring = false;
  }

  get syncedSeq() {
    return this.timeline.syncedSeq ?? 0;
  }

  /** How far the application has it: the contiguous point, unless messages wait in its inbox. */
  get handledSeq() {
    const [first] = this.unhandled;
    return first === undefined ? this.syncedSeq : first - 1;
  }

  // -- entries and rows --------------------------------------------------------------------------------

  /**
   * A SYNC entry.
   * @param {SyncEntry} entry
   * @param {number | undefined} baseline how far this device had it before the restart
   * @param {boolean} isFirst the SYNC of signing in: nothing can be newer than it
   * @returns {PlacedMessage[]} what can be given now
   */
  applyEntry(entry, baseline, isFirst) {
    this.minSeq = entry.minSeq;
    this.deliveredSeq = Math.max(entry.deliveredSeq, isFirst ? 0 : this.deliveredSeq);
    this.acknowledged = Math.max(this.acknowledged, entry.deliveredSeq);
    this.serverReadSeq = entry.readSeq;
    let given = this._place(entry, baseline, isFirst);
    if (this.syncedSeq < entry.minSeq - 1) given = given.concat(this.timeline.stepTo(entry.minSeq));
    this.timeline.learnHead(entry.headSeq);
    // messages between two memberships are not visible, and earlier ones are history: the window starts again
    if (given[0]) this.window.append(given, given[0].seq, this.syncedSeq);
    this._moveRead(entry.readSeq);
    this._setUnread(entry);
    return this._take(given);
  }

  /** @param {SyncEntry | ListRow} source */
  _setUnread(source) {
    this.unread.set(source.unread, source.readSeq, source.headSeq, this.readSeq, this._countUnread);
    this.unreadRev = source.deletedRev ?? 0;
    if (this.unreadRev < (this.deletedRev ?? 0)) this.unread.isStale = true; // counted before the latest deletions
  }

  /**
   * The settings of a SYNC entry or of a row of the list.
   * @param {SyncEntry | ListRow} source
   * @returns {boolean} whether any has changed
   */
  applySettings(source) {
    if (source.deletedRev === undefined) return false; // of an older server: it has none
    const settings = settingsOf(source);
    if (areSameSettings(settings, this.settings)) return false;
    this.settings = settings;
    return true;
  }

  /**
   * The server's revision of the user's deletions.
   * @param {number | undefined} rev
   * @returns {boolean} whether there are some that this device does not have
   */
  missesDeletions(rev) {
    if (rev === undefined) return false;
    // what is fetched from now on does not contain what was deleted before
    if (this.deletedRev === null) this.deletedRev = this.window.messages.length === 0 ? rev : 0;
    return rev > this.deletedRev;
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
      this.unread = new UnreadCounter();
      this.mentions = new UnreadCounter();
      this.toAcknowledge = 0;
    }
    return [];
  }

  /**
   * A row of the list, which may be older than what the socket brought.
   * @param {ListRow} row
   */
  applyRow(row) {
    this.isListed = true;
    this.isHidden = false;
    if (row.deletedRev === undefined) this.settings = { ...this.settings, pinned: row.pinned, recvMsgOpt: row.recvMsgOpt };
    this.minSeq = Math.max(this.minSeq, row.minSeq);
    this.peerReadSeq = Math.max(this.peerReadSeq, row.peerReadSeq ?? 0);
    this.peerDeliveredSeq = Math.max(this.peerDeliveredSeq, row.peerDeliveredSeq ?? 0, this.peerReadSeq);
    this.updatedAt = Math.max(this.updatedAt, row.updatedAt);
    const last = row.lastMessage;
    if (last && (last.seq ?? 0) >= (this.lastMessage?.seq ?? 0) && !this.changes.hides(last)) {
      this.lastMessage = this.changes.apply(last);
      this._noteExpiry(last);
    }
    this._moveRead(row.readSeq);
    this._setUnread(row);
    this.mentionsRev = row.deletedRev ?? 0;
    this.mentions.set(row.unreadMentions, row.readSeq, row.headSeq, this.readSeq, this._countMentions);
  }

  /** Begins a new conversation. */
  begin() {
    const given = this.timeline.place(0);
    this.window.hasEarlier = false;
    if (given[0]) this.window.append(given, given[0].seq, this.syncedSeq);
    return this._take(given);
  }

  /** Forgets what was sent on the last connection: it may be lost. */
  reconnected() {
    this.acknowledged = 0;
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
    if (id === null || this.window.find(id) || this.timeline.findAhead(id)) return false; // the final copy arrived first
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
      else this.toAcknowledge = message.seq;
      const isHidden = this.changes.hides(message);
      this.unread.given(message.seq, isCountable(message, this.userId) && !isHidden);
      this.mentions.given(message.seq, isMention(message, this.userId) && !isHidden);
      this._noteExpiry(message);
      if (isQuiet(message)) this._applyChange(message);
      else this._moveUp(message);
    }
    return given;
  }

  /** The newest activity. @param {PlacedMessage} message */
  _moveUp(message) {
    if (message.msgType === RECALLED) this.markRecalled(message.content.server_msg_id, message.sendAt);
    else if (message.seq >= (this.lastMessage?.seq ?? 0)) this.lastMessage = this.changes.apply(message);
    this.updatedAt = Math.max(this.updatedAt, message.sendAt);
    this.isHidden = false;
    const { archived, recvMsgOpt, silentUntil } = this.settings;
    if (archived && recvMsgOpt === 0 && message.sendAt > silentUntil) this.settings = { ...this.settings, archived: false };
  }

  // -- changes of earlier messages --------------------------------------------------------------------------

  /** An edit or reactions; without their content, they are of a message that this user may not see. @param {PlacedMessage} event */
  _applyChange({ msgType, content }) {
    const { server_msg_id: id } = content;
    if (msgType === EDITED && content.content !== undefined) {
      this.markEdited(id, { content: content.content, mentions: content.mentions ?? [], editedAt: content.edited_at });
    }
    if (msgType === REACTIONS && content.reactions !== undefined) {
      const own = (/** @type {any[] | undefined} */ changes, /** @type {boolean} */ on) =>
        (changes ?? []).filter((one) => one.user_id === this.userId).map((one) => /** @type {[string, boolean]} */ ([one.emoji, on]));
      this.markReacted(id, content.reactions, [...own(content.removed, false), ...own(content.added, true)]);
    }
  }

  /**
   * Blank it, and the quotes of it, wherever they are in memory.
   * @param {string} serverMsgId
   * @param {number} at
   */
  markRecalled(serverMsgId, at) {
    this.changes.recalled(serverMsgId, at);
    this._correctAll();
  }

  /** @param {string} serverMsgId @param {import("./message-changes.js").Edit} edit */
  markEdited(serverMsgId, edit) {
    if (this.changes.edited(serverMsgId, edit)) this._correctAll();
  }

  /**
   * @param {string} serverMsgId
   * @param {readonly {emoji: string, count: number}[]} counts
   * @param {Iterable<[string, boolean]>} own what this user has added and removed
   */
  markReacted(serverMsgId, counts, own) {
    this.changes.reacted(serverMsgId, counts, own);
    this._correctAll();
  }

  /**
   * This user has deleted messages, here or on another device.
   * @param {readonly string[]} serverMsgIds
   * @param {number | null} upToSeq everything up to it
   * @param {number | null} rev the revision that this led to; null when it is not known
   * @returns {boolean} whether any of it is new
   */
  markDeleted(serverMsgIds, upToSeq, rev) {
    let isNew = (upToSeq ?? 0) > this.changes.clearedSeq;
    this.changes.clearedSeq = Math.max(this.changes.clearedSeq, upToSeq ?? 0);
    for (const id of serverMsgIds) isNew = this.changes.deleted(id) || isNew;
    if (!isNew) return false;
    this._recount(this.unread, this._countUnread, rev !== null && rev <= this.unreadRev);
    this._recount(this.mentions, this._countMentions, rev !== null && rev <= this.mentionsRev);
    this._correctAll();
    return true;
  }

  /** @param {UnreadCounter} counter @param {import("./unread-counter.js").Count} count @param {boolean} isCounted its value is without them */
  _recount(counter, count, isCounted) {
    const low = Math.max(this.changes.clearedSeq, this.readSeq);
    const left = low >= counter.at ? 0 : count(low, counter.at);
    if (left !== null) counter.value = left;
    else if (!isCounted && counter.value > 0) counter.isStale = true;
  }

  _correctAll() {
    /** @template {Message} M @param {M} message */
    const correct = (message) => this.changes.apply(message);
    this.window.map(correct);
    const last = this.lastMessage;
    if (last && this.changes.hides(last)) {
      this.lastMessage = this.window.findLast((one) => !this.changes.hides(one) && !isQuiet(one) && one.msgType !== RECALLED) ?? null;
    } else if (last) this.lastMessage = correct(last);
  }

  /**
   * A page as it is now: it may have been read before later changes.
   * @param {PlacedMessage[]} messages
   */
  correct(messages) {
    for (const message of messages) this._noteExpiry(message);
    return messages.filter((message) => !this.changes.hides(message)).map((message) => this.changes.apply(message));
  }

  // -- expiry -----------------------------------------------------------------------------------------------

  /** @param {Message} message */
  _noteExpiry(message) {
    if (message.expiresAt !== null && message.status === 0) this._hasExpiring = true;
  }

  /** When `expire` has something to do, by the server's clock. */
  get nextExpiry() {
    if (!this._hasExpiring) return Infinity;
    let next = Infinity;
    for (const message of this.lastMessage ? [...this.window.messages, this.lastMessage] : this.window.messages) {
      if (message.status === 0 && message.expiresAt !== null && message.expiresAt < next) next = message.expiresAt;
    }
    this._hasExpiring = next < Infinity || this.timeline.isBehind;
    return next;
  }

  /**
   * Blanks what is over, and its quotes.
   * @param {number} now by the server's clock
   * @returns {string[]} the ids of the messages
   */
  expire(now) {
    const isOver = (/** @type {Message} */ message) => message.status === 0 && message.expiresAt !== null && message.expiresAt <= now;
    const ids = new Set(this.window.messages.filter(isOver).map((message) => message.serverMsgId));
    /** @template {Message} M @param {M} message @returns {M} */
    const change = (message) => {
      if (isOver(message)) return expiredCopy(message);
      return message.quote && ids.has(message.quote.serverMsgId) ? { ...message, quote: null } : message;
    };
    this.window.map(change);
    if (this.lastMessage) this.lastMessage = change(this.lastMessage);
    return /** @type {string[]} */ ([...ids]);
  }

  // -- cursors ----------------------------------------------------------------------------------------------

  /** The seq up to which `delivered` has to be sent, or null. */
  get ackSeq() {
    const { handledSeq, acknowledged } = this;
    return this.toAcknowledge > acknowledged && handledSeq > acknowledged ? handledSeq : null;
  }

  /** The read cursor that the server does not know yet, or null. */
  get unsentReadSeq() {
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
  readOnOtherDevice(seq) {
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
    if (this.acknowledged === seq - 1) this.acknowledged = seq;
  }

  /** @param {Message} message */
  _isOwn(message) {
    return message.senderId === this.userId && !isEvent(message);
  }

  /**
   * Notes that another user has received or read up to `seq`.
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
   * The state of an own message.
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

  /** @type {import("./unread-counter.js").Count} */
  _countUnread = (low, high) =>
    this.window.count(low, high, (message) => isCountable(message, this.userId) && !this.changes.hides(message));

  /**
   * A recalled message still counts, but no longer has its mentions, and one that was edited may have been mentioning or not
   * when it was sent: the server has to be asked.
   * @type {import("./unread-counter.js").Count}
   */
  _countMentions = (low, high) => {
    const unclear = this.window.count(low, high, (message) => (message.status !== 0 ? !message.important : message.editedAt !== null));
    if (unclear !== 0) return null;
    return this.window.count(low, high, (message) => isMention(message, this.userId) && !this.changes.hides(message));
  };
}
