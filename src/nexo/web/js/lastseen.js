/** When people were here last, where the server states it: asked for when it is shown, several at once. */

import { soon } from "./emitter.js";

const FRESH_MS = 60_000;
const AT_ONCE = 100;

export class LastSeen {
  /** @type {Map<string, {at: number, asked: number}>} 0: not stated */
  #known = new Map();
  #wanted = new Set();
  #ask = soon(() => this.#askAll());

  /** @param {any} client @param {() => void} onchange */
  constructor(client, onchange) {
    this.client = client;
    this.onchange = onchange;
  }

  /** 0: not known, or not stated. @param {string} userId */
  of(userId) {
    const found = this.#known.get(userId);
    if (!found || Date.now() - found.asked > FRESH_MS) {
      this.#known.set(userId, { at: found?.at ?? 0, asked: Date.now() });
      this.#wanted.add(userId);
      this.#ask();
    }
    return found?.at ?? 0;
  }

  /** Someone has come or gone. @param {string} userId */
  forget(userId) {
    const found = this.#known.get(userId);
    if (found) found.asked = 0;
  }

  async #askAll() {
    const ids = [...this.#wanted].slice(0, AT_ONCE);
    for (const id of ids) this.#wanted.delete(id);
    try {
      for (const { userId, lastSeenAt } of await this.client.users.online(ids)) this.#known.set(userId, { at: lastSeenAt ?? 0, asked: Date.now() });
    } catch {
      return; // the next drawing asks again
    }
    this.onchange();
    if (this.#wanted.size > 0) this.#ask();
  }
}
