// How far this device has each conversation: stored for the next start, in batches, because it changes often.

/** @import { Timers } from "./timers.js" */

const DELAY_MS = 1000;

export class Baselines {
  /**
   * @param {Timers} timers
   * @param {(baselines: Map<string, number>) => void} store
   */
  constructor(timers, store) {
    this._timers = timers;
    this._store = store;
    /** The most recent last. @type {Map<string, number>} */
    this.all = new Map();
    /** @type {Map<string, number>} */
    this._changed = new Map();
  }

  /** @param {string} conversationId */
  get(conversationId) {
    return this.all.get(conversationId);
  }

  /** From the storage. @param {string} conversationId @param {number} seq */
  load(conversationId, seq) {
    this.all.set(conversationId, seq);
  }

  /** @param {number} now @param {string} conversationId @param {number} seq */
  note(now, conversationId, seq) {
    if (this.all.get(conversationId) === seq) return;
    this.all.delete(conversationId);
    this.all.set(conversationId, seq);
    this._changed.set(conversationId, seq);
    if (!this._timers.has("baselines")) this._timers.set("baselines", now + DELAY_MS, () => this.flush());
  }

  /** Stores it at once, also if it has not moved. @param {string} conversationId @param {number} seq */
  keep(conversationId, seq) {
    this.all.set(conversationId, seq);
    this._changed.set(conversationId, seq);
    this.flush();
  }

  flush() {
    if (this._changed.size === 0) return;
    const changed = this._changed;
    this._changed = new Map();
    this._store(changed);
  }
}
