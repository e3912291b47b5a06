// The conversation list: its order, and its pages over HTTP, which have fields that SYNC does not have.

import { messageFromApi } from "./core/messages.js";
import { NexoError } from "./errors.js";
import { camel } from "./camel-case.js";

/** @import { ConversationState } from "./core/conversation-state.js" */
/** @import { Driver } from "./driver.js" */
/** @typedef {import("./users.js").Call} Call */

const PAGE = 100;
const RETRY_MS = 5000;

/**
 * The listed conversations: pinned ones first, then by newest activity.
 * @param {Iterable<ConversationState>} conversations
 * @returns {ConversationState[]}
 */
export function sortConversations(conversations) {
  return [...conversations].filter((conversation) => conversation.isListed && !conversation.isHidden).sort(compare);
}

/** @param {ConversationState} one @param {ConversationState} other */
function compare(one, other) {
  if (one.settings.pinned !== other.settings.pinned) return one.settings.pinned ? -1 : 1;
  if (one.updatedAt !== other.updatedAt) return other.updatedAt - one.updatedAt;
  if (one.rank !== other.rank) return one.rank - other.rank; // without a time: as in SYNC
  return one.id < other.id ? -1 : 1;
}

export class ConversationList {
  /**
   * @param {Call} call
   * @param {Driver} driver
   * @param {() => number} clock
   * @param {(error: unknown) => void} failed
   */
  constructor(call, driver, clock, failed) {
    this._call = call;
    this._driver = driver;
    this._clock = clock;
    this._failed = failed;
    this._cursor = "";
    this._hasMore = true;
    /** @type {Set<string>} */
    this._seen = new Set();
    /** @type {Promise<boolean> | null} */
    this._loading = null;
    /** @type {ReturnType<typeof setTimeout> | null} */
    this._retry = null;
    this._round = 0;
  }

  /** Loads the first page in the background. */
  reload() {
    this.stop();
    this._cursor = "";
    this._hasMore = true;
    this._seen.clear();
    const round = this._round;
    this._load(PAGE).catch((error) => {
      if (round !== this._round) return; // stopped or reloaded since
      if (error instanceof NexoError && error.isTransient) this._retry = setTimeout(() => this.reload(), RETRY_MS);
      else this._failed(error);
    });
  }

  stop() {
    this._round += 1;
    if (this._retry !== null) clearTimeout(this._retry);
    this._retry = null;
  }

  /** Loads the next page; returns whether there are more. @param {number} [limit] */
  async more(limit = PAGE) {
    await this._loading?.catch(() => {});
    return this._hasMore ? this._load(limit) : false;
  }

  /** @param {number} limit */
  _load(limit) {
    this._loading ??= this._fetch(limit).finally(() => (this._loading = null));
    return this._loading;
  }

  /** @param {number} limit */
  async _fetch(limit) {
    const startedAt = this._clock();
    const page = await this._call("GET", "/conversation/list", { cursor: this._cursor || undefined, limit });
    this.apply(page.conversations);
    for (const row of page.conversations) this._seen.add(row.conversation_id);
    this._cursor = page.next_cursor;
    this._hasMore = page.has_more;
    if (!page.has_more) this._driver.drive((engine) => engine.inbox.hideUnlisted(this._seen, startedAt));
    return page.has_more;
  }

  /** @param {any[]} rows of the API */
  apply(rows) {
    const { userId } = this._driver;
    const read = rows.map((row) => ({
      ...camel({ ...row, last_message: null }),
      lastMessage: row.last_message ? messageFromApi(row.last_message, userId) : null,
    }));
    this._driver.drive((engine) => engine.inbox.applyRows(read));
  }
}
