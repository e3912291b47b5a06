// Which of the watched users are connected.

/** @import { OnlineUser } from "./types.js" */

const WATCHED_MAX = 100; // as many as the server takes

export class Presence {
  /** @param {(userIds: string[]) => void} watch */
  constructor(watch) {
    this._watch = watch;
    /** The newest subscription last. @type {Map<string, OnlineUser | null>} */
    this._users = new Map();
  }

  /** Beyond a hundred the oldest subscriptions end. @param {string[]} userIds */
  subscribe(userIds) {
    for (const userId of userIds) {
      const known = this._users.get(userId) ?? null;
      this._users.delete(userId);
      this._users.set(userId, known);
    }
    for (const userId of this._users.keys()) {
      if (this._users.size <= WATCHED_MAX) break;
      this._users.delete(userId);
    }
    this._watch([...this._users.keys()]);
  }

  /** @param {string[]} userIds */
  unsubscribe(userIds) {
    for (const userId of userIds) this._users.delete(userId);
    this._watch([...this._users.keys()]);
  }

  /** What is known of a user; null when nothing is. @param {string} userId */
  of(userId) {
    return this._users.get(userId) ?? null;
  }

  get watched() {
    return [...this._users.keys()];
  }

  /** @param {OnlineUser[]} users */
  _learn(users) {
    for (const user of users) if (this._users.has(user.userId)) this._users.set(user.userId, user);
  }
}
