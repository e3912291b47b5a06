// What was sent and is not saved yet: per conversation in order, several on the wire, retried until there is an answer.

import { Backoff } from "./backoff.js";
import { Pace } from "./pace.js";

/** @import { OutboxItem } from "../types.js" */

const TRANSIENT = new Set(["server_busy", "too_many_requests", "internal_error"]);
const LANE_IN_FLIGHT = 16; // so that one conversation does not keep the others waiting
const ACCEPTED_PATIENCE = 3; // accepted: it is in the server's queue, its save may take longer

/** @param {string} reason */
export function isTransient(reason) {
  return TRANSIENT.has(reason);
}

/**
 * @typedef {object} Entry
 * @property {OutboxItem} item
 * @property {boolean} isStored it may go on the wire
 * @property {boolean} isAccepted
 * @property {number} sentAt on this connection; 0 when it is to be sent
 */

class Lane {
  /** @param {Backoff} backoff */
  constructor(backoff) {
    /** @type {Entry[]} */
    this.entries = [];
    this.backoff = backoff;
    this.blockedUntil = 0;
  }
}

export class Outbox {
  /**
   * @param {object} options
   * @param {number} options.maxInFlight
   * @param {number} options.ackTimeoutMs
   * @param {number} options.backoffMinMs
   * @param {number} options.backoffMaxMs
   * @param {() => number} options.random
   */
  constructor(options) {
    this._options = options;
    /** @type {Map<string, Lane>} */
    this._lanes = new Map();
    /** @type {Map<string, Entry>} */
    this._entries = new Map();
    /** Those with `sentAt`. @type {Set<Entry>} */
    this._onWire = new Set();
    this._pace = new Pace();
    /** When `take` is worth calling next. */
    this.deadline = Infinity;
  }

  get size() {
    return this._entries.size;
  }

  /** All, in the order in which they were made. */
  items() {
    const items = [...this._entries.values()].map((entry) => entry.item);
    return items.sort((one, other) => (one.order < other.order ? -1 : 1));
  }

  /** @param {string} conversationId */
  itemsOf(conversationId) {
    return (this._lanes.get(conversationId)?.entries ?? []).map((entry) => entry.item);
  }

  /** @param {string} clientMsgId */
  get(clientMsgId) {
    return this._entries.get(clientMsgId);
  }

  /** @param {OutboxItem} item @param {boolean} isStored */
  add(item, isStored) {
    if (this._entries.has(item.clientMsgId)) return;
    const entry = { item, isStored, isAccepted: false, sentAt: 0 };
    this._entries.set(item.clientMsgId, entry);
    const lane = this._lane(item.conversationId);
    // one that comes from the storage goes before those made since
    let place = lane.entries.length;
    while (place > 0 && /** @type {Entry} */ (lane.entries[place - 1]).item.order > item.order) place -= 1;
    lane.entries.splice(place, 0, entry);
  }

  /** @param {string} clientMsgId */
  stored(clientMsgId) {
    const entry = this._entries.get(clientMsgId);
    if (entry) entry.isStored = true;
  }

  /** @param {string} clientMsgId @returns {OutboxItem | undefined} */
  remove(clientMsgId) {
    const entry = this._entries.get(clientMsgId);
    if (!entry) return undefined;
    this._entries.delete(clientMsgId);
    this._onWire.delete(entry);
    const { conversationId } = entry.item;
    const lane = this._lane(conversationId);
    lane.entries.splice(lane.entries.indexOf(entry), 1);
    if (lane.entries.length === 0) this._lanes.delete(conversationId);
    return entry.item;
  }

  /** The server took it into its queue. @param {string} clientMsgId @param {number} now */
  accepted(clientMsgId, now) {
    const entry = this._entries.get(clientMsgId);
    if (!entry || entry.item.error) return false;
    this._sent(entry, now);
    this._laneWorks(entry);
    const isNews = !entry.isAccepted;
    entry.isAccepted = true;
    return isNews;
  }

  /** It is stored for good. @param {string} clientMsgId */
  saved(clientMsgId) {
    const entry = this._entries.get(clientMsgId);
    if (entry) {
      this._pace.worked();
      this._laneWorks(entry);
    }
    return this.remove(clientMsgId);
  }

  /**
   * @param {string} clientMsgId
   * @param {import("../types.js").Failure} error
   * @param {number} retryAfterMs
   * @param {number} now
   * @returns {"failed" | "again" | "unknown"}
   */
  refused(clientMsgId, error, retryAfterMs, now) {
    const entry = this._entries.get(clientMsgId);
    if (!entry || entry.item.error) return "unknown";
    this._sent(entry, 0);
    entry.isAccepted = false;
    if (!isTransient(error.reason)) {
      this._laneWorks(entry);
      entry.item = { ...entry.item, error };
      return "failed";
    }
    if (error.reason === "too_many_requests") this._pace.slowDown(now, retryAfterMs);
    const lane = this._lane(entry.item.conversationId);
    if (lane.blockedUntil <= now) lane.blockedUntil = now + lane.backoff.next(retryAfterMs);
    return "again";
  }

  /** After `failed`: once more. @param {string} clientMsgId */
  retry(clientMsgId) {
    const entry = this._entries.get(clientMsgId);
    if (!entry?.item.error) return false;
    entry.item = { ...entry.item, error: null };
    return true;
  }

  /** Nothing that was on the wire will be answered. */
  disconnected() {
    for (const lane of this._lanes.values()) {
      lane.blockedUntil = 0;
      lane.backoff.reset();
    }
    for (const entry of this._onWire) entry.sentAt = 0;
    this._onWire.clear();
  }

  /**
   * What to put on the wire now, in order. Marks it as sent, and finds `deadline`.
   * @param {number} now
   * @returns {OutboxItem[]}
   */
  take(now) {
    let free = this._options.maxInFlight;
    for (const entry of this._onWire) if (!entry.isAccepted) free -= 1;
    /** @type {OutboxItem[]} */
    const out = [];
    this.deadline = Infinity;
    for (const lane of this._lanes.values()) {
      if (lane.blockedUntil > now) {
        this._wakeAt(lane.blockedUntil);
        continue;
      }
      lane.blockedUntil = 0;
      free -= this._takeFrom(lane, free, now, out);
    }
    return out;
  }

  /**
   * @param {Lane} lane
   * @param {number} free how many more may be on the wire
   * @param {number} now
   * @param {OutboxItem[]} out
   * @returns {number} how many more are
   */
  _takeFrom(lane, free, now, out) {
    let taken = 0;
    let waiting = 0;
    for (const entry of lane.entries) {
      if (entry.item.error) continue;
      if (!entry.isStored || waiting >= LANE_IN_FLIGHT) break;
      const isDue = entry.sentAt === 0 || entry.sentAt + this._patience(entry) <= now;
      if (isDue) {
        if (entry.sentAt === 0 && taken >= free) break;
        if (!this._pace.mayGo(now)) {
          this._wakeAt(this._pace.nextAt);
          break;
        }
        this._pace.went(now);
        if (entry.sentAt === 0) taken += 1;
        this._sent(entry, now);
        entry.item = { ...entry.item, wasSent: true };
        out.push(entry.item);
      }
      this._wakeAt(entry.sentAt + this._patience(entry));
      if (!entry.isAccepted) waiting += 1;
      if (lane.backoff.attempts > 0) break; // after a refusal one goes ahead of the others
    }
    return taken;
  }

  /** @param {number} at */
  _wakeAt(at) {
    if (at < this.deadline) this.deadline = at;
  }

  /** @param {Entry} entry @param {number} at 0: it is not on the wire any more */
  _sent(entry, at) {
    entry.sentAt = at;
    if (at > 0) this._onWire.add(entry);
    else this._onWire.delete(entry);
  }

  /** @param {Entry} entry */
  _patience(entry) {
    return this._options.ackTimeoutMs * (entry.isAccepted ? ACCEPTED_PATIENCE : 1);
  }

  /** The one that everybody waits for was answered. @param {Entry} entry */
  _laneWorks(entry) {
    const lane = this._lane(entry.item.conversationId);
    if (lane.entries.find((other) => !other.item.error) !== entry) return;
    lane.backoff.reset();
    lane.blockedUntil = 0;
  }

  /** @param {string} conversationId */
  _lane(conversationId) {
    let lane = this._lanes.get(conversationId);
    if (!lane) {
      const { backoffMinMs, backoffMaxMs, random } = this._options;
      lane = new Lane(new Backoff(backoffMinMs, backoffMaxMs, random));
      this._lanes.set(conversationId, lane);
    }
    return lane;
  }
}
