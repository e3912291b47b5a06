// What happened on the server, for a product's backend: `for await (const event of backend.events(cursor))`.

import { camel } from "./camel-case.js";
import { Backoff } from "./core/backoff.js";
import { DEFAULTS } from "./core/options.js";
import { NexoError } from "./errors.js";

/** @import { BackendCall } from "./acting-user.js" */
/** @import { BackendEvent } from "./types.js" */

const WAIT_S = 30;
const LIMIT = 100;
const WARNED_FAILURES = [2, 10]; // in a row: a wrong address must not go unnoticed, and a long outage must not fill a log

/**
 * Events in order, each at least once, without end. Errors that may pass are waited for; others are thrown.
 *
 * After an event was handled, its `cursor` is stored: a later run continues there. Pages are the unit of that, so a few events
 * may be received again; `eventId` identifies them. `cursor` of the iterator is the same for all events before the current one.
 */
export class BackendEvents {
  /**
   * @param {BackendCall} call
   * @param {string | null} cursor
   * @param {{types?: readonly string[], limit?: number, waitS?: number}} options
   */
  constructor(call, cursor, { types = [], limit = LIMIT, waitS = WAIT_S }) {
    this.cursor = cursor;
    this._call = call;
    this._options = { types: types.join(",") || null, limit, waitS };
    /** @type {BackendEvent[]} */
    this._waiting = [];
    /** @type {BackendEvent | null} */
    this._current = null;
    this._isOver = false;
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  /** @returns {Promise<IteratorResult<BackendEvent, undefined>>} */
  async next() {
    if (this._current) this.cursor = this._current.cursor;
    this._current = null;
    while (this._waiting.length === 0 && !this._isOver) await this._fetch();
    const event = this._isOver ? undefined : this._waiting.shift();
    if (!event) return { done: true, value: undefined };
    this._current = event;
    return { done: false, value: event };
  }

  /** @returns {Promise<IteratorResult<BackendEvent, undefined>>} */
  async return() {
    this._isOver = true;
    return { done: true, value: undefined };
  }

  /**
   * Requests the next page. The first request without a cursor does not wait: its answer is the place from which a restart
   * continues.
   */
  async _fetch() {
    const waitS = this.cursor === null ? 0 : this._options.waitS;
    const asked = { cursor: this.cursor, types: this._options.types, limit: this._options.limit, wait_s: waitS };
    const backoff = new Backoff(DEFAULTS.backoffMinMs, DEFAULTS.backoffMaxMs, Math.random);
    for (let failures = 0; ; failures += 1) {
      try {
        return this._take(await this._call("GET", "/server/events", asked, { waitS }));
      } catch (error) {
        if (!(error instanceof NexoError) || !error.isTransient) throw error;
        if (WARNED_FAILURES.includes(failures)) console.warn(`Nexo: events cannot be fetched (${error.message}), trying again`);
        await new Promise((resolve) => setTimeout(resolve, backoff.next(error.retryAfterMs)));
      }
    }
  }

  /** @param {any} page */
  _take(page) {
    const events = page.events.map((/** @type {any} */ event) => ({
      conversationId: null,
      userId: null,
      ...camel({ ...event, data: null }),
      data: event.data ?? null,
      cursor: this.cursor,
    }));
    if (events.length > 0) events[events.length - 1].cursor = page.next_cursor;
    else this.cursor = page.next_cursor;
    this._waiting.push(...events);
  }
}
