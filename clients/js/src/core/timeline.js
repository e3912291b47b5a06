// The contiguous part of one conversation: which messages are in order, which wait above a gap, what is missing.

/** @import { Message, PlacedMessage } from "../types.js" */

const AHEAD_MAX = 1000;

export class Timeline {
  constructor() {
    /** Everything up to here has been given; null until the conversation's place is known. @type {number | null} */
    this.syncedSeq = null;
    /** The newest seq heard of. */
    this.headSeq = 0;
    /** Above a gap. @type {Map<number, PlacedMessage>} */
    this._ahead = new Map();
    /** @type {Map<string, {message: Message, until: number}>} */
    this._provisional = new Map();
  }

  get isBehind() {
    return this.syncedSeq !== null && this.headSeq > this.syncedSeq;
  }

  get isPlaced() {
    return this.syncedSeq !== null;
  }

  /** @returns {Message[]} */
  get provisional() {
    return [...this._provisional.values()].map((held) => held.message);
  }

  /** @param {string} serverMsgId */
  findAhead(serverMsgId) {
    for (const message of this._ahead.values()) if (message.serverMsgId === serverMsgId) return message;
    return undefined;
  }

  /**
   * Sets the contiguous point. A message that arrived before the conversation was known is still given.
   * @param {number} seq
   * @returns {PlacedMessage[]} what can be given now
   */
  place(seq) {
    const lowest = Math.min(...this._ahead.keys());
    this.syncedSeq = Math.min(seq, lowest - 1);
    return this._drain();
  }

  /** Forget where it stood: the server's history is shorter than what was given. @param {number} seq */
  restart(seq) {
    this.syncedSeq = seq;
    this.headSeq = seq;
    this._ahead.clear();
  }

  /** @param {number} seq */
  learnHead(seq) {
    if (seq > this.headSeq) this.headSeq = seq;
  }

  /**
   * @param {PlacedMessage} message
   * @returns {PlacedMessage[]} what can be given now, in order
   */
  accept(message) {
    this.dropProvisional(message.serverMsgId);
    this.learnHead(message.seq);
    if (this.syncedSeq !== null && message.seq <= this.syncedSeq) return [];
    this._ahead.set(message.seq, message);
    const given = this._drain();
    // far above a gap: a pull brings it
    if (this._ahead.size > AHEAD_MAX) this._ahead.delete(Math.max(...this._ahead.keys()));
    return given;
  }

  /**
   * Everything below `seq` is here or does not exist for this user.
   * @param {number} seq
   * @returns {PlacedMessage[]}
   */
  stepTo(seq) {
    const given = [];
    while (this.syncedSeq !== null && this.syncedSeq < seq - 1) {
      this.syncedSeq += 1;
      const message = this._ahead.get(this.syncedSeq);
      if (message === undefined) {
        if (this._ahead.size === 0) this.syncedSeq = seq - 1;
        continue;
      }
      this._ahead.delete(this.syncedSeq);
      given.push(message);
    }
    given.push(...this._drain());
    return given;
  }

  /**
   * The end of a pull: there is nothing above, unless it arrived since.
   * @param {number} headSeq
   */
  settleHead(headSeq) {
    const ahead = this._ahead.size === 0 ? 0 : Math.max(...this._ahead.keys());
    this.headSeq = Math.max(headSeq, ahead, this.syncedSeq ?? 0);
  }

  _drain() {
    /** @type {PlacedMessage[]} */
    const given = [];
    while (this.syncedSeq !== null) {
      const message = this._ahead.get(this.syncedSeq + 1);
      if (message === undefined) break;
      this.syncedSeq += 1;
      this._ahead.delete(this.syncedSeq);
      given.push(message);
    }
    if (this.syncedSeq !== null) this.learnHead(this.syncedSeq);
    return given;
  }

  /** @param {Message} message @param {number} until */
  holdProvisional(message, until) {
    if (message.serverMsgId !== null) this._provisional.set(message.serverMsgId, { message, until });
  }

  /** @param {string | null} serverMsgId */
  dropProvisional(serverMsgId) {
    return serverMsgId !== null && this._provisional.delete(serverMsgId);
  }

  /** @param {number} now @returns {boolean} whether any were dropped */
  expireProvisional(now) {
    const before = this._provisional.size;
    for (const [id, held] of this._provisional) if (held.until <= now) this._provisional.delete(id);
    return this._provisional.size < before;
  }
}
