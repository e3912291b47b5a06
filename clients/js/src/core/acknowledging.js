// Telling the server what was delivered and read: once per conversation and a short while, never beyond what was given.

import { ackFrame } from "./frames.js";

/** @import { Chat } from "./chat.js" */
/** @import { Timers } from "./timers.js" */

export class Acknowledging {
  /**
   * @param {Timers} timers
   * @param {number} delayMs
   * @param {(frame: object) => void} send
   */
  constructor(timers, delayMs, send) {
    this._timers = timers;
    this._delayMs = delayMs;
    this._send = send;
    /** @type {Set<Chat>} */
    this._waiting = new Set();
  }

  /** See whether there is something to tell of it. @param {number} now @param {Chat} chat */
  note(now, chat) {
    if (chat.ackSeq === null && chat.readToTell === null) return;
    this._waiting.add(chat);
    if (!this._timers.has("acks")) this._timers.set("acks", now + this._delayMs, () => this.flush());
  }

  flush() {
    for (const chat of this._waiting) {
      const { readToTell, ackSeq } = chat;
      if (readToTell !== null) {
        this._send(ackFrame("read", chat.id, readToTell));
        chat.serverReadSeq = readToTell;
        chat.toldSeq = Math.max(chat.toldSeq, readToTell); // reading is also having received
      }
      if (ackSeq !== null && ackSeq > chat.toldSeq) {
        this._send(ackFrame("delivered", chat.id, ackSeq));
        chat.toldSeq = ackSeq;
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
