// The conversation list over HTTP: last messages, settings and the peers' cursors, which SYNC does not have.

import { messageFromApi } from "./core/messages.js";
import { NexoError } from "./errors.js";
import { camel } from "./naming.js";

/** @import { Shell } from "./shell.js" */
/** @typedef {import("./users.js").Call} Call */

const PAGE = 100;
const AGAIN_MS = 5000;

export class Listing {
  /**
   * @param {Call} call
   * @param {Shell} shell
   * @param {() => number} clock
   * @param {(error: unknown) => void} failed
   */
  constructor(call, shell, clock, failed) {
    this._call = call;
    this._shell = shell;
    this._clock = clock;
    this._failed = failed;
    this._cursor = "";
    this._hasMore = true;
    /** @type {Set<string>} */
    this._seen = new Set();
    /** @type {Promise<boolean> | null} */
    this._loading = null;
    /** @type {ReturnType<typeof setTimeout> | null} */
    this._again = null;
    this._round = 0;
  }

  /** From the beginning, in the background: it is an extra, SYNC has what counts. */
  reload() {
    this.stop();
    this._cursor = "";
    this._hasMore = true;
    this._seen.clear();
    const round = this._round;
    this._load(PAGE).catch((error) => {
      if (round !== this._round) return; // stopped, or begun anew, meanwhile
      if (error instanceof NexoError && error.isTransient) this._again = setTimeout(() => this.reload(), AGAIN_MS);
      else this._failed(error);
    });
  }

  stop() {
    this._round += 1;
    if (this._again !== null) clearTimeout(this._again);
    this._again = null;
  }

  /** The next page; whether there are more. @param {number} [limit] */
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
    if (!page.has_more) this._shell.drive((engine) => engine.hideUnlisted(this._seen, startedAt));
    return page.has_more;
  }

  /** @param {any[]} rows of the API */
  apply(rows) {
    const { userId } = this._shell;
    const read = rows.map((row) => ({
      ...camel({ ...row, last_message: null }),
      lastMessage: row.last_message ? messageFromApi(row.last_message, userId) : null,
    }));
    this._shell.drive((engine) => engine.applyRows(read));
  }
}
