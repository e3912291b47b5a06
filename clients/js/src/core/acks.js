// Acknowledgements of what was delivered and read: collected for a short time, one per conversation.

import { ackFrame } from "./frames.js";

/** @import { ConversationState } from "./conversation-state.js" */
/** @import { Timers } from "./timers.js" */

export class Acks {
  /**
   * @param {Timers} timers
   * @param {number} delayMs
   * @param {(frame: object) => void} send
   */
  constructor(timers, delayMs, send) {
    this._timers = timers;
    this._delayMs = delayMs;
    this._send = send;
    /** @type {Set<ConversationState>} */
    this._waiting = new Set();
  }

  /** Plans an acknowledgement if one is due. @param {number} now @param {ConversationState} conversation */
  note(now, conversation) {
    if (conversation.ackSeq === null && conversation.unsentReadSeq === null) return;
    this._waiting.add(conversation);
    if (!this._timers.has("acks")) this._timers.set("acks", now + this._delayMs, () => this.flush());
  }

  flush() {
    for (const conversation of this._waiting) {
      const { unsentReadSeq, ackSeq } = conversation;
      if (unsentReadSeq !== null) {
        this._send(ackFrame("read", conversation.id, unsentReadSeq));
        conversation.serverReadSeq = unsentReadSeq;
        conversation.acknowledged = Math.max(conversation.acknowledged, unsentReadSeq); // `read` covers `delivered`
      }
      if (ackSeq !== null && ackSeq > conversation.acknowledged) {
        this._send(ackFrame("delivered", conversation.id, ackSeq));
        conversation.acknowledged = ackSeq;
      }
    }
    this.clear();
  }

  /** The connection has gone: SYNC will show what the server knows. */
  clear() {
    this._waiting.clear();
    this._timers.clear("acks");
  }
}
