// What the server sends about conversations: entries, messages, notices; and the requests that follow. No I/O.

import { Acks } from "./acks.js";
import { Baselines } from "./baselines.js";
import { CatchUp } from "./catchup.js";
import { ConversationState } from "./conversation-state.js";
import { EDITED, PINNED, RECALLED, isEvent, isQuiet, messageFromFrame } from "./messages.js";
import { ServerClock } from "./server-clock.js";
import { Timers } from "./timers.js";
import { Typists } from "./typists.js";

/** @import { Connection } from "./connection.js" */
/** @import { Options } from "./options.js" */
/** @import { Outbox } from "./outbox.js" */
/** @import { Outputs } from "./outputs.js" */
/** @import { ListRow, Message, OutboxItem, PlacedMessage, SyncEntry } from "../types.js" */

const STALE_ENTRY_MS = 500; // a count may become exact by what is on its way
const STALE_READ_MS = 300; // the server has to receive what was read before it counts

/**
 * @typedef {object} InboxParts
 * @property {Outbox} outbox
 * @property {() => Connection} connection
 * @property {() => void} caughtUp everything that the server reported at signing in is here
 * @property {() => number} clock
 */

export class Inbox {
  /**
   * @param {string} userId
   * @param {Outputs} outputs
   * @param {Options} options
   * @param {InboxParts} parts
   */
  constructor(userId, outputs, options, parts) {
    this._userId = userId;
    this._outputs = outputs;
    this._options = options;
    this._parts = parts;
    this.timers = new Timers();
    this.serverClock = new ServerClock();
    /** @type {Map<string, ConversationState>} */
    this.conversations = new Map();
    /** Saved above a gap: still shown as pending. @type {Map<string, OutboxItem>} */
    this.savedAhead = new Map();
    /** Conversations with messages in memory, least recently used first. @type {Set<ConversationState>} */
    this._inMemory = new Set();
    /** The application takes messages from its inbox and reports each as handled. */
    this.holdsUnhandled = false;
    this._isFirstSync = false;
    this._rank = 0;
    this.baselines = new Baselines(this.timers, (baselines) => outputs.storeBaselines(baselines));
    this.typists = new Typists(this.timers, (id, userId, on) => this._typingChanged(id, userId, on));
    this.acks = new Acks(this.timers, options.ackDelayMs, (frame) => outputs.send(frame));
    this.catchUp = new CatchUp(
      {
        ask: (frame) => this._ask(frame),
        pullFrom: (id) => this._pullFrom(id),
        abandon: (id) => this._abandon(id),
        isUnclear: (id) => this._isUnclear(id),
        caughtUp: () => parts.caughtUp(),
      },
      options,
    );
  }

  /** @param {string} conversationId */
  conversation(conversationId) {
    let conversation = this.conversations.get(conversationId);
    if (!conversation) {
      conversation = new ConversationState(conversationId, this._userId, this._options.windowSize);
      this.conversations.set(conversationId, conversation);
    }
    return conversation;
  }

  /** Notes that its messages are in use: those of unused conversations are dropped first. @param {ConversationState} conversation */
  touch(conversation) {
    this._inMemory.delete(conversation);
    this._inMemory.add(conversation);
    if (this._inMemory.size <= this._options.maxConversations) return;
    const [oldest] = this._inMemory;
    if (oldest) {
      this._inMemory.delete(oldest);
      oldest.window.shrink(1);
    }
  }

  /** How far this device has each conversation. @returns {Map<string, number>} the most recent last */
  knownSeqs() {
    const known = new Map(this.baselines.all);
    for (const conversation of this.conversations.values()) {
      if (conversation.timeline.isPlaced) known.set(conversation.id, conversation.syncedSeq);
    }
    return known;
  }

  // -- the connection ---------------------------------------------------------------------------------------

  /** @param {number} now */
  signedIn(now) {
    this._isFirstSync = true;
    this._rank = 0;
    this.catchUp.start(now);
    for (const conversation of this.conversations.values()) this.watchExpiry(conversation);
  }

  disconnected() {
    this.catchUp.stop();
    this.acks.clear();
    this.typists.clear();
    for (const conversation of this.conversations.values()) conversation.reconnected();
    this._dropProvisional();
  }

  /** Sends a request. @param {object} frame */
  _ask(frame) {
    this._parts.connection().asked(this._parts.clock());
    this._outputs.send(frame);
  }

  // -- entries ----------------------------------------------------------------------------------------------

  /** @param {number} now @param {any} frame */
  receiveSync(now, frame) {
    const isFirst = this._isFirstSync;
    for (const entry of /** @type {SyncEntry[]} */ (frame.conversations)) {
      const conversation = this.conversation(entry.conversationId);
      const isNew = !conversation.timeline.isPlaced;
      const given = conversation.applyEntry(entry, this.baselines.get(conversation.id), isFirst);
      conversation.isListed = conversation.isListed || isNew;
      if (isFirst) conversation.rank = this._rank++;
      this._give(conversation, given);
      this._applySettings(conversation, entry, isNew);
      if (entry.deletedRev !== undefined) conversation.isHidden = entry.hidden === true;
      if (conversation.timeline.isBehind) this.catchUp.want(now, conversation.id, { holdsUp: true });
      if (conversation.unread.isStale) this.catchUp.wantEntry(now, conversation.id, STALE_ENTRY_MS);
      this.acks.note(now, conversation);
      this._outputs.changed(conversation);
    }
    const isWhole = frame.hasMore || this.catchUp.timers.has("sync");
    if (isFirst && !frame.hasMore) this._isFirstSync = false;
    if (isFirst || isWhole) this.catchUp.synced(now, frame.hasMore, frame.cursor);
  }

  /** Pushes may have been lost, among them the final copies of provisional messages. @param {number} now @param {any} frame */
  receiveResync(now, frame) {
    this._dropProvisional();
    this.catchUp.resync(now, frame.afterMs ?? 0, frame.conversations);
  }

  /** @param {readonly ListRow[]} rows of the conversation list */
  applyRows(rows) {
    for (const row of rows) {
      const conversation = this.conversation(row.conversationId);
      const isNew = !conversation.isListed;
      conversation.applyRow(row);
      this._applySettings(conversation, row, isNew);
      this.watchExpiry(conversation);
      this._outputs.changed(conversation);
    }
  }

  /** @param {ConversationState} conversation @param {SyncEntry | ListRow} source @param {boolean} isNew */
  _applySettings(conversation, source, isNew) {
    if (conversation.applySettings(source) && !isNew) this._outputs.emit("settings", { conversation });
    if (conversation.missesDeletions(source.deletedRev)) this._outputs.loadDeleted(conversation);
  }

  /**
   * Hides conversations that a complete list did not contain, unless a message arrived since it was read.
   * @param {ReadonlySet<string>} listed
   * @param {number} since
   */
  hideUnlisted(listed, since) {
    for (const conversation of this.conversations.values()) {
      if (!conversation.isListed || listed.has(conversation.id) || conversation.listedAt >= since) continue;
      conversation.isHidden = true;
      this._outputs.changed(conversation);
    }
  }

  // -- messages ---------------------------------------------------------------------------------------------

  /** @param {number} now @param {Message} message */
  receiveMessage(now, message) {
    const conversation = this.conversation(message.conversationId);
    if (!message.provisional) {
      this.applyMessage(now, conversation, /** @type {PlacedMessage} */ (message));
      return;
    }
    const until = now + this._options.provisionalMs;
    if (!conversation.receiveProvisional(message, until)) return;
    conversation.isListed = true;
    conversation.listedAt = now;
    this.typists.stop(conversation.id, message.senderId);
    this.timers.set(`provisional ${message.serverMsgId}`, until, (later) => {
      if (conversation.timeline.expireProvisional(later)) this._outputs.changed(conversation);
    });
    this._outputs.changed(conversation);
    this._outputs.emit("provisional", { message, conversation });
  }

  /** @param {number} now @param {ConversationState} conversation @param {PlacedMessage} message */
  applyMessage(now, conversation, message) {
    if (!conversation.timeline.isPlaced) {
      if (message.seq === 1) conversation.timeline.place(0);
      else this.catchUp.wantEntry(now, conversation.id);
    }
    if (!isQuiet(message)) {
      conversation.isListed = true;
      conversation.listedAt = now;
    }
    this._confirm(message);
    this._give(conversation, conversation.receive(message));
    this.acks.note(now, conversation);
    if (conversation.timeline.isBehind) this.catchUp.want(now, conversation.id);
    this.catchUp.progressed(now, conversation.id);
    this._outputs.changed(conversation);
  }

  /** An own message that the server sends is saved, also if its ACK was lost. @param {PlacedMessage} message */
  _confirm(message) {
    if (message.senderId !== this._userId || message.clientMsgId === null) return;
    const item = this._parts.outbox.saved(message.clientMsgId);
    if (item) this._itemSaved(item, message);
  }

  /**
   * Applies the sender's own copy of a message that was saved.
   * @param {number} now
   * @param {OutboxItem} item
   * @param {PlacedMessage} message
   */
  applySaved(now, item, message) {
    const conversation = this.conversation(item.conversationId);
    this._itemSaved(item, message);
    if (conversation.timeline.isPlaced && message.seq <= conversation.syncedSeq) this._itemGiven(item.clientMsgId);
    this.applyMessage(now, conversation, message);
  }

  /** @param {OutboxItem} item @param {PlacedMessage} message */
  _itemSaved(item, message) {
    this.savedAhead.set(item.clientMsgId, item);
    this._outputs.itemSaved(item, message);
  }

  /** It is among the messages, and no longer pending. @param {string} clientMsgId */
  _itemGiven(clientMsgId) {
    if (this.savedAhead.delete(clientMsgId)) this._outputs.itemGiven(clientMsgId);
  }

  /**
   * Emits the events of messages that are in order now.
   * @param {ConversationState} conversation
   * @param {readonly PlacedMessage[]} given
   */
  _give(conversation, given) {
    if (given.length > 0) {
      this.touch(conversation);
      this.watchExpiry(conversation);
    }
    for (const message of given) {
      if (message.clientMsgId !== null) this._itemGiven(message.clientMsgId);
      this.typists.stop(conversation.id, message.senderId);
      if (message.msgType === RECALLED) {
        const { server_msg_id: serverMsgId, by } = message.content;
        this._outputs.emit("recalled", { serverMsgId, seq: message.seq, by, conversation });
      } else if (isQuiet(message)) this._emitChange(conversation, message);
      else if (isEvent(message)) this._outputs.emit("groupEvent", { message, conversation });
      else if (message.senderId === this._userId) this._outputs.emit("sent", { message, conversation });
      else {
        if (this.holdsUnhandled) conversation.unhandled.add(message.seq);
        this._outputs.emit("message", { message, conversation });
      }
    }
    if (!conversation.timeline.isPlaced) return;
    this.baselines.note(this._parts.clock(), conversation.id, conversation.handledSeq);
  }

  /** @param {ConversationState} conversation @param {PlacedMessage} event */
  _emitChange(conversation, { msgType, seq, content }) {
    const { server_msg_id: serverMsgId, on, by } = content;
    if (msgType === PINNED) this._outputs.emit("pinned", { serverMsgId, seq, on, by, conversation });
    else this._emitChanged(conversation, serverMsgId, msgType === EDITED ? "edited" : "reactions");
  }

  /** @param {ConversationState} conversation @param {string} serverMsgId @param {"edited" | "reactions" | "expired"} change */
  _emitChanged(conversation, serverMsgId, change) {
    const message = conversation.window.find(serverMsgId) ?? null;
    this._outputs.emit("changed", { serverMsgId, change, message, conversation });
  }

  // -- changes of earlier messages --------------------------------------------------------------------------

  /**
   * The answer to an own edit, before its event.
   * @param {ConversationState} conversation
   * @param {string} serverMsgId
   * @param {import("./message-changes.js").Edit} edit
   */
  applyEdit(conversation, serverMsgId, edit) {
    conversation.markEdited(serverMsgId, edit);
    this._outputs.changed(conversation);
  }

  /**
   * The answer to an own reaction, before its event.
   * @param {ConversationState} conversation
   * @param {string} serverMsgId
   * @param {readonly import("../types.js").Reaction[]} reactions
   * @param {string} emoji
   */
  applyReactions(conversation, serverMsgId, reactions, emoji) {
    const own = reactions.map((one) => /** @type {[string, boolean]} */ ([one.emoji, one.mine]));
    conversation.markReacted(serverMsgId, reactions, [[emoji, false], ...own]);
    this._outputs.changed(conversation);
  }

  /** DELETED: what the user has deleted on another device. @param {number} now @param {any} frame */
  receiveDeleted(now, frame) {
    const conversation = this.conversation(frame.conversationId);
    const rev = frame.deletedRev;
    if (rev === (conversation.deletedRev ?? 0) + 1) conversation.deletedRev = rev;
    this.applyDeleted(now, conversation, frame.serverMsgIds ?? [], frame.upToSeq ?? null, rev);
    if (conversation.missesDeletions(frame.deletedRev)) this._outputs.loadDeleted(conversation);
  }

  /**
   * The user has deleted messages, here or on another device.
   * @param {number} now
   * @param {ConversationState} conversation
   * @param {readonly string[]} serverMsgIds
   * @param {number | null} upToSeq
   * @param {number | null} rev the revision that this led to; null when it is not known
   */
  applyDeleted(now, conversation, serverMsgIds, upToSeq, rev) {
    if (!conversation.markDeleted(serverMsgIds, upToSeq, rev)) return;
    if (conversation.unread.isStale) this.catchUp.wantEntry(now, conversation.id, STALE_ENTRY_MS);
    if (conversation.mentions.isStale || conversation.lastMessage === null) this._outputs.loadList();
    this._outputs.changed(conversation);
    this._outputs.emit("deleted", { serverMsgIds, upToSeq, conversation });
  }

  /** Blanks messages at their time. @param {ConversationState} conversation */
  watchExpiry(conversation) {
    const next = conversation.nextExpiry;
    if (next === Infinity) return;
    this.timers.set(`expiry ${conversation.id}`, this.serverClock.when(next), (now) => {
      // by the clock as it is known now
      for (const id of conversation.expire(this.serverClock.at(now))) this._emitChanged(conversation, id, "expired");
      this._outputs.changed(conversation);
      this.watchExpiry(conversation);
    });
  }

  /** The application has handled a message of its inbox. @param {number} now @param {ConversationState} conversation @param {number} seq */
  handled(now, conversation, seq) {
    if (!conversation.unhandled.delete(seq)) return;
    this.baselines.note(now, conversation.id, conversation.handledSeq);
    this.acks.note(now, conversation);
  }

  /** @param {any} frame */
  receiveWithdrawn(frame) {
    const conversation = this.conversations.get(frame.conversationId);
    if (!conversation?.timeline.dropProvisional(frame.serverMsgId)) return;
    this.timers.clear(`provisional ${frame.serverMsgId}`);
    this._outputs.changed(conversation);
    this._outputs.emit("withdrawn", { serverMsgId: frame.serverMsgId, reason: frame.reason, conversation });
  }

  _dropProvisional() {
    for (const conversation of this.conversations.values()) {
      if (conversation.timeline.expireProvisional(Infinity)) this._outputs.changed(conversation);
    }
  }

  /**
   * Begins a conversation before its first message is sent. SYNC has reported all conversations, so this one is new, and
   * all its messages are still to be given; else, if the answer to that message were lost, it would be taken for history.
   * @param {ConversationState} conversation
   */
  beginIfNew(conversation) {
    const isReady = this._parts.connection().isReady;
    if (conversation.timeline.isPlaced || !isReady || !this.catchUp.isCaughtUp) return;
    this._give(conversation, conversation.begin());
  }

  // -- gaps -------------------------------------------------------------------------------------------------

  /** @param {number} now @param {any} frame */
  receivePage(now, frame) {
    const conversation = this.conversation(frame.conversationId);
    const messages = /** @type {PlacedMessage[]} */ (
      frame.messages.map((/** @type {any} */ shape) => messageFromFrame(shape, this._userId))
    );
    if (!conversation.timeline.isPlaced) return;
    for (const message of messages) this._confirm(message);
    const { headSeq, nextSeq, hasMore } = frame;
    this._give(conversation, conversation.receivePage({ messages, headSeq, nextSeq, hasMore }));
    this.acks.note(now, conversation);
    this.catchUp.pulled(now, conversation.id);
    this._outputs.changed(conversation);
  }

  /** @param {number} now @param {string} conversationId @param {number} headSeq */
  receiveHead(now, conversationId, headSeq) {
    const conversation = this.conversation(conversationId);
    conversation.timeline.learnHead(headSeq);
    if (!conversation.timeline.isPlaced) this.catchUp.wantEntry(now, conversationId);
    else if (conversation.timeline.isBehind) this.catchUp.want(now, conversationId, { isSure: true });
  }

  /** @param {string} conversationId */
  _pullFrom(conversationId) {
    const conversation = this.conversations.get(conversationId);
    return conversation?.timeline.isBehind ? conversation.syncedSeq + 1 : null;
  }

  /** @param {string} conversationId */
  _abandon(conversationId) {
    const conversation = this.conversations.get(conversationId);
    conversation?.timeline.restart(conversation.syncedSeq);
  }

  /** @param {string} conversationId */
  _isUnclear(conversationId) {
    const conversation = this.conversations.get(conversationId);
    return conversation !== undefined && (!conversation.timeline.isPlaced || conversation.unread.isStale);
  }

  // -- reading and typing -----------------------------------------------------------------------------------

  /** @param {number} now @param {ConversationState} conversation @param {boolean} hasMoved */
  readMoved(now, conversation, hasMoved) {
    if (!hasMoved) return;
    if (conversation.settings.markedUnread) conversation.settings = { ...conversation.settings, markedUnread: false };
    this.acks.note(now, conversation);
    if (conversation.unread.isStale) {
      this.catchUp.wantEntry(now, conversation.id, this._options.ackDelayMs + STALE_READ_MS);
    }
    if (conversation.mentions.isStale) this._outputs.loadList();
    this._outputs.changed(conversation);
  }

  /** @param {string} conversationId @param {string} userId @param {boolean} on */
  _typingChanged(conversationId, userId, on) {
    const conversation = this.conversation(conversationId);
    this._outputs.changed(conversation);
    this._outputs.emit("typing", { userId, on, conversation });
  }
}
