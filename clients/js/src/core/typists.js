// Who types in which conversation: forgotten some seconds after the last TYPING frame.

/** @import { Timers } from "./timers.js" */

const TYPING_MS = 6000;

export class Typists {
  /**
   * @param {Timers} timers
   * @param {(conversationId: string, userId: string, on: boolean) => void} changed
   */
  constructor(timers, changed) {
    this._timers = timers;
    this._changed = changed;
    /** @type {Map<string, Set<string>>} */
    this._typists = new Map();
  }

  /** @param {string} conversationId */
  in(conversationId) {
    return [...(this._typists.get(conversationId) ?? [])];
  }

  /** @param {number} now @param {string} conversationId @param {string} userId @param {boolean} on */
  receive(now, conversationId, userId, on) {
    if (!on) return this.stop(conversationId, userId);
    const typists = this._typists.get(conversationId) ?? new Set();
    this._typists.set(conversationId, typists.add(userId));
    this._timers.set(name(conversationId, userId), now + TYPING_MS, () => this.stop(conversationId, userId));
    this._changed(conversationId, userId, true);
  }

  /** @param {string} conversationId @param {string} userId */
  stop(conversationId, userId) {
    const typists = this._typists.get(conversationId);
    if (!typists?.delete(userId)) return;
    this._timers.clear(name(conversationId, userId));
    if (typists.size === 0) this._typists.delete(conversationId);
    this._changed(conversationId, userId, false);
  }

  /** The connection has ended. */
  clear() {
    for (const [conversationId, typists] of this._typists) {
      for (const userId of [...typists]) this.stop(conversationId, userId);
    }
  }
}

/** @param {string} conversationId @param {string} userId */
function name(conversationId, userId) {
  return `typing ${conversationId} ${userId}`;
}
