// The client of one signed-in user: what to do with each frame, and what to send when. No I/O: frames and calls go in,
// `Outputs` are called, the time is passed in.

import { Connection } from "./connection.js";
import { authFrame, sendFrame } from "./frames.js";
import { Inbox } from "./inbox.js";
import { changeFromFrame, messageFromFrame, messageFromSaved, recallFromFrame } from "./messages.js";
import { Outbox } from "./outbox.js";

/** @import { ConversationState } from "./conversation-state.js" */
/** @import { Options } from "./options.js" */
/** @import { Outputs } from "./outputs.js" */
/** @import { State } from "../types.js" */

const PRESENT = new Set(["delivered", "read", "edited", "reacted", "pinned", "revoked"]); // ACKs whose `ts` is the present time
// Errors after which the server closes the connection.
const CLOSING = new Set([
  "kicked", "replaced", "session_invalid", "token_expired", "unauthorized", "auth_timeout", "reauth_uid_mismatch",
  "slow_consumer", "server_shutdown", "user_disabled", "user_deleted",
]); // prettier-ignore

export class Engine {
  /**
   * @param {string} userId
   * @param {Outputs} outputs
   * @param {Options} options
   * @param {() => number} clock
   */
  constructor(userId, outputs, options, clock) {
    this.userId = userId;
    this._outputs = outputs;
    this._clock = clock;
    this._isOnline = false;
    /** @type {string[]} */
    this._watchedUsers = [];
    this.outbox = new Outbox(options);
    /** @type {Inbox} */
    this.inbox = new Inbox(userId, outputs, options, {
      outbox: this.outbox,
      connection: () => this.connection,
      caughtUp: () => this._caughtUp(),
      clock,
    });
    /** @type {Connection} */
    this.connection = new Connection(
      {
        open: () => outputs.open(),
        drop: (code) => outputs.drop(code),
        needToken: (isExpired) => outputs.needToken(isExpired),
        authFrame: () => this._authFrame(),
        send: (frame) => outputs.send(frame),
        changed: () => this._connectionChanged(),
        disconnected: () => this._disconnected(),
        ended: (reason, forgetSession) => outputs.ended(reason, forgetSession),
      },
      options,
    );
    /** @type {import("../types.js").StateChange} */
    this._emitted = { state: "offline", reason: null, retryAt: null };
  }

  get conversations() {
    return this.inbox.conversations;
  }

  /** @param {string} conversationId */
  conversation(conversationId) {
    return this.inbox.conversation(conversationId);
  }

  // -- the connection ---------------------------------------------------------------------------------------

  /** @returns {State} */
  get state() {
    const phase = this.connection.phase;
    if (phase === "idle" || phase === "waiting") return "offline";
    if (phase === "ended") return "closed";
    if (phase !== "ready") return "connecting";
    return this._isOnline ? "online" : "syncing";
  }

  get stateChange() {
    return { state: this.state, reason: this.connection.reason, retryAt: this.connection.retryAt };
  }

  start() {
    this.connection.start(this._clock());
  }

  /** Sends the acknowledgements that are waiting, and disconnects. */
  stop() {
    if (this.connection.isReady) this.inbox.acks.flush();
    this.inbox.baselines.flush();
    this.connection.stop();
    this.inbox.timers.clearAll();
  }

  _connectionChanged() {
    if (this.connection.phase !== "ready") this._isOnline = false;
    this._emitState();
  }

  _caughtUp() {
    this._isOnline = true;
    this._emitState();
  }

  _emitState() {
    const now = this.stateChange;
    const before = this._emitted;
    if (now.state === before.state && now.reason === before.reason && now.retryAt === before.retryAt) return;
    this._emitted = now;
    this._outputs.emit("state", now);
  }

  _disconnected() {
    this._isOnline = false;
    this.outbox.disconnected();
    this.inbox.disconnected();
  }

  _authFrame() {
    const { token, deviceId } = this._outputs.credentials();
    return authFrame(token, deviceId, this.inbox.knownSeqs());
  }

  // -- time -------------------------------------------------------------------------------------------------

  /** When `tick` has to be called. */
  get deadline() {
    const { timers, catchUp } = this.inbox;
    const outbox = this.connection.isReady ? this.outbox.deadline : Infinity;
    return Math.min(timers.next, this.connection.timers.next, catchUp.timers.next, outbox);
  }

  tick() {
    const now = this._clock();
    this.connection.tick(now);
    this.inbox.timers.run(now); // acknowledgements before requests
    this.inbox.catchUp.timers.run(now);
    this.pump();
  }

  // -- sending ----------------------------------------------------------------------------------------------

  /** Sends what the outbox holds, as far as it may go out now. */
  pump() {
    if (!this.connection.isReady) return;
    const now = this._clock();
    for (const item of this.outbox.take(now)) {
      this.connection.asked(now);
      this._outputs.send(sendFrame(item));
    }
  }

  /** @param {ConversationState} conversation @param {number} seq */
  markRead(conversation, seq) {
    this.inbox.readMoved(this._clock(), conversation, conversation.read(seq));
  }

  /** Replaces the subscription; it is repeated after a reconnect. @param {string[]} userIds */
  watchPresence(userIds) {
    this._watchedUsers = userIds;
    if (this.connection.isReady) this._outputs.send({ type: "PRESENCE", subscribe: userIds });
  }

  // -- receiving --------------------------------------------------------------------------------------------

  /** @param {any} frame */
  receive(frame) {
    const now = this._clock();
    this.connection.heard(now);
    this.inbox.serverClock.heard(now, frame.ts, frame.type === "ERROR" || PRESENT.has(frame.ackType));
    switch (frame.type) {
      case "AUTH_OK":
        return this._receiveAuthOk(now, frame);
      case "AUTH_FAIL":
        return this.connection.explain(now, frame.reason, frame.retryAfterMs ?? 0);
      case "SYNC":
        return this.inbox.receiveSync(now, frame);
      case "RESYNC":
        return this.inbox.receiveResync(now, frame);
      case "SINGLE_CHAT":
      case "GROUP_CHAT":
      case "GROUP_EVENT":
        return this.inbox.receiveMessage(now, messageFromFrame(frame, this.userId));
      case "MESSAGE_REVOKED":
        return this.inbox.receiveMessage(now, recallFromFrame(frame));
      case "MESSAGE_EDITED":
      case "REACTIONS":
      case "PINNED":
        return this.inbox.receiveMessage(now, changeFromFrame(frame));
      case "DELETED":
        return this.inbox.receiveDeleted(now, frame);
      case "FRIEND_REQUEST":
        return this._emitRequest("contactRequest", frame, { requestId: frame.requestId });
      case "FRIEND_DECISION":
        return this._outputs.emit("contactDecision", {
          requestId: frame.requestId,
          userId: frame.from,
          accepted: frame.accepted,
          at: frame.ts,
        });
      case "GROUP_JOIN_REQUEST":
        return this._emitRequest("joinRequest", frame, { groupId: frame.groupId });
      case "MESSAGE_WITHDRAWN":
        return this.inbox.receiveWithdrawn(frame);
      case "PULL_OK":
        return this.inbox.receivePage(now, frame);
      case "ACK":
        return this._receiveAck(now, frame);
      case "GROUP_NOTIFY":
        return this.inbox.receiveHead(now, frame.conversationId, frame.headSeq);
      case "HEADS":
        for (const head of frame.conversations) this.inbox.receiveHead(now, head.conversationId, head.headSeq);
        return;
      case "TYPING":
        return this.inbox.typists.receive(now, frame.conversationId, frame.from, frame.on);
      case "PRESENCE":
        return this._outputs.emit("presence", { users: frame.users });
      case "ERROR":
        return this._receiveError(now, frame);
      default: // PONG, RESEND_DONE (what is still missing is pulled), and frames of a later server
        if (frame.type.startsWith("CALL_")) this._outputs.emit("call", frame);
    }
  }

  /** @param {string} name @param {any} frame @param {object} ids */
  _emitRequest(name, frame, ids) {
    this._outputs.emit(name, { ...ids, userId: frame.from, message: frame.body, at: frame.ts });
  }

  /** @param {number} now @param {any} frame */
  _receiveAuthOk(now, frame) {
    if (this.connection.isReady) return; // the answer to REAUTH
    this.inbox.signedIn(now);
    this.connection.authOk(now, frame.heartbeatMs);
    if (this._watchedUsers.length > 0) this._outputs.send({ type: "PRESENCE", subscribe: this._watchedUsers });
    this.pump();
    this._outputs.loadList();
  }

  /** @param {number} now @param {any} frame */
  _receiveAck(now, frame) {
    if (frame.ackType === "saved") return this._receiveSaved(now, frame);
    if (frame.ackType === "accepted") {
      if (this.outbox.accepted(frame.clientMsgId, now)) this._itemChanged(frame.clientMsgId);
      return;
    }
    if (frame.ackType !== "delivered" && frame.ackType !== "read") return;
    const conversation = this.conversation(frame.conversationId);
    const seq = Number(frame.msgSeq);
    if (frame.from === undefined || frame.from === this.userId) {
      if (frame.ackType === "read") this.inbox.readMoved(now, conversation, conversation.readOnOtherDevice(seq));
      return;
    }
    conversation.applyReceipt(frame.from, frame.ackType, seq);
    this._outputs.changed(conversation);
    const { ackType: type, from: userId, serverMsgId } = frame;
    this._outputs.emit("receipt", { type, userId, seq, serverMsgId, conversation });
  }

  /** @param {number} now @param {any} frame */
  _receiveSaved(now, frame) {
    const item = this.outbox.saved(frame.clientMsgId);
    if (!item) return;
    const { window } = this.conversation(item.conversationId);
    const target = item.replyTo === null ? undefined : window.find(item.replyTo);
    this.inbox.applySaved(now, item, messageFromSaved(item, frame, this.userId, target));
    this.pump();
  }

  /** @param {string} clientMsgId */
  _itemChanged(clientMsgId) {
    const entry = this.outbox.get(clientMsgId);
    if (entry) this._outputs.itemChanged(entry.item);
  }

  /** @param {number} now @param {any} frame */
  _receiveError(now, frame) {
    const { reason, clientMsgId, detail = "", retryAfterMs = 0 } = frame;
    if (clientMsgId === undefined) {
      if (CLOSING.has(reason) || reason === "too_many_requests") this.connection.explain(now, reason, retryAfterMs);
      if (!CLOSING.has(reason)) this._outputs.emit("error", frame);
      return;
    }
    const outcome = this.outbox.refused(clientMsgId, { reason, detail }, retryAfterMs, now);
    if (outcome === "failed") this._itemChanged(clientMsgId);
    if (outcome !== "unknown") this.pump();
    else if (!this.inbox.catchUp.failed(now, clientMsgId, reason, retryAfterMs)) this._outputs.emit("error", frame);
  }
}
