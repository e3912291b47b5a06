/** Who is who: names and pictures by user id, fetched when first needed and remembered by this browser. */

import { Emitter, soon } from "./emitter.js";
import { remember, remembered } from "./prefs.js";

const FRESH_MS = 3_600_000;
const REMEMBERED_MAX = 500;
const AT_ONCE = 4;
const SAVE_AFTER_MS = 1500;

/** @typedef {{userId: string, nickname: string, avatar: string, at: number, unknown?: boolean}} Person */

export class People extends Emitter {
  /** @type {Map<string, Person>} */
  #known = new Map();
  #queue = [];
  #asked = new Set();
  #running = 0;
  #saving = 0;
  #isOver = false;
  #changed = soon(() => this.emit("change"));

  /** @param {any} client @param {string} me */
  constructor(client, me) {
    super();
    this.client = client;
    this.me = me;
    for (const [userId, nickname, avatar, at] of remembered(this.#key) ?? [])
      this.#known.set(userId, { userId, nickname, avatar, at });
  }

  get #key() {
    return `people.${this.me}`;
  }

  /** What is known now; what is not, or is old, is asked for. @param {string} userId @returns {Person} */
  get(userId) {
    const found = this.#known.get(userId);
    if (!found || Date.now() - found.at > FRESH_MS) this.#want(userId);
    return found ?? { userId, nickname: "", avatar: "", at: 0 };
  }

  /** @param {string} userId */
  name(userId) {
    return this.get(userId).nickname || userId;
  }

  /** Resolves when the name is known, or after `ms`. @param {string} userId @param {number} ms */
  whenKnown(userId, ms) {
    if (this.#known.has(userId)) return Promise.resolve();
    this.#want(userId);
    return new Promise((resolve) => {
      const end = this.on("change", () => {
        if (this.#known.has(userId)) done();
      });
      const timer = setTimeout(() => done(), ms);
      const done = () => {
        end();
        clearTimeout(timer);
        resolve(undefined);
      };
    });
  }

  /** All known users except the own one. @returns {Person[]} */
  all() {
    return [...this.#known.values()].filter((person) => person.userId !== this.me && !person.unknown);
  }

  /** @param {{userId: string, nickname?: string, avatar?: string}} user */
  learn(user) {
    const before = this.#known.get(user.userId);
    const avatar = user.avatar ?? before?.avatar ?? "";
    const nickname = user.nickname ?? "";
    // A member list has no pictures: it has the name; the rest is still to be asked for.
    const at = user.avatar === undefined ? (before?.at ?? 0) : Date.now();
    this.#known.set(user.userId, { userId: user.userId, nickname, avatar, at });
    this.#save();
    if (before?.nickname !== nickname || before?.avatar !== avatar) this.#changed();
  }

  /** Asks again, whatever is known. @param {string} userId */
  async refresh(userId) {
    const user = await this.client.users.info(userId);
    this.learn(user);
    return user;
  }

  #want(userId) {
    if (this.#asked.has(userId)) return;
    this.#asked.add(userId);
    this.#queue.push(userId);
    this.#next();
  }

  async #next() {
    if (this.#running >= AT_ONCE || this.#queue.length === 0) return;
    this.#running += 1;
    const userId = this.#queue.shift();
    try {
      await this.refresh(userId);
    } catch (error) {
      if (error?.reason === "user_not_found") this.#known.set(userId, { userId, nickname: "", avatar: "", at: Date.now(), unknown: true });
      else setTimeout(() => this.#asked.delete(userId), 5000); // when it is wanted again
    } finally {
      this.#running -= 1;
      this.#next();
    }
  }

  /** Nothing more is remembered. */
  stop() {
    clearTimeout(this.#saving);
    this.#isOver = true;
  }

  #save() {
    if (this.#isOver) return;
    clearTimeout(this.#saving);
    this.#saving = window.setTimeout(() => {
      const newest = this.all().sort((a, b) => b.at - a.at).slice(0, REMEMBERED_MAX);
      remember(this.#key, newest.map(({ userId, nickname, avatar, at }) => [userId, nickname, avatar, at]));
    }, SAVE_AFTER_MS);
  }
}
