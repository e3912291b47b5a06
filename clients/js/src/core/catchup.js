// What has to be fetched: SYNC and its pages, RESYNC, and pulls for gaps, a few at a time. No I/O.

import { isTransient } from "./outbox.js";
import { Timers } from "./timers.js";

const PULLS_AT_ONCE = 4;
const PULL_LIMIT = 200;
const ENTRIES_AT_ONCE = 200;
const RETRY_MS = 500;

/**
 * @typedef {object} CatchUpHost
 * @property {(frame: object) => void} ask send a frame that is answered
 * @property {(conversationId: string) => number | null} pullFrom the first seq that is missing, null when none is
 * @property {(conversationId: string) => void} abandon it cannot be read: what is here is all
 * @property {(conversationId: string) => boolean} isUnclear its entry is still needed
 * @property {() => void} caughtUp everything that the last SYNC reported is here
 */

export class CatchUp {
  /**
   * @param {CatchUpHost} host
   * @param {object} options
   * @param {number} options.gapWaitMs
   * @param {number} options.ackTimeoutMs
   * @param {() => number} options.random
   */
  constructor(host, options) {
    this._host = host;
    this._options = options;
    this.timers = new Timers();
    /** Conversations to pull, in that order. @type {Set<string>} */
    this._wanted = new Set();
    /** The pull under way: its id. @type {Map<string, string>} */
    this._pulls = new Map();
    /** Waiting for SYNC, and what it must bring before the client is up to date. */
    this._isSyncing = false;
    this._isCaughtUp = false;
    /** @type {Set<string>} */
    this._behind = new Set();
    /** Entries to ask for one by one. @type {Set<string>} */
    this._entries = new Set();
    /** What RESYNC is to ask for; null: everything. @type {Set<string> | null} */
    this._resyncIn = null;
    this._count = 0;
  }

  /** Whether everything that the server reported at signing in is here. */
  get isCaughtUp() {
    return this._isCaughtUp;
  }

  /** Signed in: the server sends SYNC by itself. @param {number} now */
  start(now) {
    this._isSyncing = true;
    this._isCaughtUp = false;
    this._expectSync(now, {});
  }

  /** The connection has gone. */
  stop() {
    this.timers.clearAll();
    this._wanted.clear();
    this._pulls.clear();
    this._behind.clear();
    this._entries.clear();
    this._isSyncing = false;
    this._isCaughtUp = false;
  }

  /** @param {number} now @param {object} question to repeat when there is no answer */
  _expectSync(now, question) {
    this.timers.set("sync", now + this._options.ackTimeoutMs, (later) => this._askSync(later, question));
  }

  /** @param {number} now @param {object} question */
  _askSync(now, question) {
    this._host.ask({ type: "SYNC", ...question, clientMsgId: this._nextId("s") });
    this._expectSync(now, question);
  }

  /**
   * A page of SYNC was taken.
   * @param {number} now
   * @param {boolean} hasMore
   * @param {string | undefined} cursor
   */
  synced(now, hasMore, cursor) {
    this.timers.clear("sync");
    if (hasMore && cursor) {
      this._askSync(now, { cursor });
      return;
    }
    this._isSyncing = false;
    this._check();
  }

  /**
   * Pushes may have been lost.
   * @param {number} now
   * @param {number} afterMs
   * @param {string[] | undefined} conversationIds
   */
  resync(now, afterMs, conversationIds) {
    const names = conversationIds?.length ? conversationIds : null;
    if (!this.timers.has("resync")) {
      this._resyncIn = names && new Set(names);
    } else if (names === null) {
      this._resyncIn = null;
    } else {
      names.forEach((name) => this._resyncIn?.add(name));
    }
    // one that waits already is not put off, and asks for no less than it was to
    this.timers.set("resync", Math.min(now + afterMs, this.timers.at("resync")), (later) => {
      const isAll = this._resyncIn === null || this._resyncIn.size > ENTRIES_AT_ONCE;
      this._askSync(later, isAll ? {} : { conversations: [...(this._resyncIn ?? [])] });
    });
  }

  /**
   * One conversation is not known, or not well: ask for its entry.
   * @param {number} now
   * @param {string} conversationId
   * @param {number} [delayMs]
   */
  wantEntry(now, conversationId, delayMs = 0) {
    this._entries.add(conversationId);
    if (this.timers.has("entries")) return;
    this.timers.set("entries", now + delayMs, () => {
      const conversations = [...this._entries].slice(0, ENTRIES_AT_ONCE);
      this._entries.clear();
      this._host.ask({ type: "SYNC", conversations, clientMsgId: this._nextId("s") });
      this.timers.set("entries answered", now + delayMs + this._options.ackTimeoutMs, (later) => {
        for (const id of conversations) if (this._host.isUnclear(id)) this.wantEntry(later, id);
      });
    });
  }

  /**
   * Something is missing. Unless `isSure`, it may be on its way: wait a moment.
   * @param {number} now
   * @param {string} conversationId
   * @param {object} how
   * @param {boolean} [how.isSure]
   * @param {boolean} [how.holdsUp] the client is not up to date before this is here
   */
  want(now, conversationId, { isSure = false, holdsUp = false } = {}) {
    if (holdsUp && !this._isCaughtUp) this._behind.add(conversationId);
    if (this._pulls.has(conversationId)) return;
    const name = `gap ${conversationId}`;
    if (isSure) {
      this.timers.clear(name);
      this._wanted.add(conversationId);
      this._pump(now);
    } else if (!this.timers.has(name) && !this._wanted.has(conversationId)) {
      this._wait(now, conversationId);
    }
  }

  /** @param {number} now @param {string} conversationId @param {number} [ms] */
  _wait(now, conversationId, ms = this._options.gapWaitMs) {
    const at = now + ms * (1 + this._options.random() / 2);
    this.timers.set(`gap ${conversationId}`, at, (later) => {
      this._wanted.add(conversationId);
      this._pump(later);
    });
  }

  /**
   * Messages arrived: the gap may be filled, or smaller.
   * @param {number} now
   * @param {string} conversationId
   */
  progressed(now, conversationId) {
    if (this._pulls.has(conversationId)) return;
    const name = `gap ${conversationId}`;
    if (this._host.pullFrom(conversationId) !== null) {
      if (this.timers.has(name)) this._wait(now, conversationId);
      return;
    }
    this.timers.clear(name);
    this._wanted.delete(conversationId);
    this._done(conversationId);
  }

  /**
   * PULL_OK was taken.
   * @param {number} now
   * @param {string} conversationId
   */
  pulled(now, conversationId) {
    this._forgetPull(conversationId);
    if (this._host.pullFrom(conversationId) === null) this._done(conversationId);
    else this._wanted.add(conversationId);
    this._pump(now);
  }

  /**
   * An ERROR with the id of one of these questions.
   * @param {number} now
   * @param {string} id
   * @param {string} reason
   * @param {number} retryAfterMs
   * @returns {boolean} whether it was one
   */
  failed(now, id, reason, retryAfterMs) {
    if (id.startsWith("s-")) {
      if (this._isSyncing || this.timers.has("sync")) this._retrySync(now, retryAfterMs);
      return true;
    }
    for (const [conversationId, pullId] of this._pulls) {
      if (pullId !== id) continue;
      this._forgetPull(conversationId);
      if (isTransient(reason)) {
        this._wait(now, conversationId, Math.max(retryAfterMs, RETRY_MS));
      } else {
        this._host.abandon(conversationId);
        this._done(conversationId);
      }
      this._pump(now);
      return true;
    }
    return id.startsWith("p-");
  }

  /** @param {number} now @param {number} retryAfterMs */
  _retrySync(now, retryAfterMs) {
    const pause = Math.max(retryAfterMs, RETRY_MS) * (1 + this._options.random());
    this.timers.set("sync", now + pause, (later) => this._askSync(later, {}));
  }

  /** @param {number} now */
  _pump(now) {
    for (const conversationId of this._wanted) {
      if (this._pulls.size >= PULLS_AT_ONCE) return;
      this._wanted.delete(conversationId);
      const beginSeq = this._host.pullFrom(conversationId);
      if (beginSeq === null) {
        this._done(conversationId);
        continue;
      }
      const id = this._nextId("p");
      this._pulls.set(conversationId, id);
      this.timers.set(`pull ${conversationId}`, now + this._options.ackTimeoutMs, (later) => {
        this._pulls.delete(conversationId);
        this._wanted.add(conversationId);
        this._pump(later);
      });
      this._host.ask({ type: "PULL", conversationId, beginSeq, limit: PULL_LIMIT, clientMsgId: id });
    }
  }

  /** @param {string} conversationId */
  _forgetPull(conversationId) {
    this._pulls.delete(conversationId);
    this.timers.clear(`pull ${conversationId}`);
  }

  /** @param {string} conversationId */
  _done(conversationId) {
    if (this._behind.delete(conversationId)) this._check();
  }

  _check() {
    if (this._isCaughtUp || this._isSyncing || this._behind.size > 0) return;
    this._isCaughtUp = true;
    this._host.caughtUp();
  }

  /** @param {string} kind */
  _nextId(kind) {
    this._count += 1;
    return `${kind}-${this._count}`;
  }
}
