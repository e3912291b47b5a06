// Messages that were sent and are not saved yet: kept and repeated, in order per conversation. No I/O.
// A message with a file enters its lane when the file is uploaded, so that later texts do not wait for it.

import { Backoff } from "./backoff.js";
import { SendRate } from "./send-rate.js";

/** @import { ConversationState } from "./conversation-state.js" */
/** @import { Failure, OutboxItem, SendOptions, Upload } from "../types.js" */

const TRANSIENT = new Set(["server_busy", "too_many_requests", "internal_error"]);
const LANE_IN_FLIGHT = 16; // so that one conversation does not delay other conversations
const ACCEPTED_PATIENCE = 3; // accepted: it is in the server's queue, its save may take longer

/** @param {string} reason */
export function isTransient(reason) {
  return TRANSIENT.has(reason);
}

/**
 * @param {ConversationState} conversation
 * @param {any} content
 * @param {SendOptions} options
 * @param {string} order also the id, unless the application chose one
 * @param {number} now
 * @param {Upload | null} [upload]
 * @returns {OutboxItem}
 */
export function newItem(conversation, content, options, order, now, upload = null) {
  const { msgType = 1, mentions = [], replyTo = null, extra = null, expiresS, clientMsgId } = options;
  return {
    clientMsgId: clientMsgId ?? order,
    order,
    conversationId: conversation.id,
    recvId: conversation.peerId,
    groupId: conversation.groupId,
    msgType,
    content,
    mentions: [...mentions],
    replyTo,
    extra,
    ...(expiresS !== undefined && { expiresS }),
    createdAt: Math.round(now),
    wasSent: false,
    error: null,
    ...(upload && { upload }),
  };
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
    /** Those whose files are not complete: in no lane yet. @type {Map<string, Entry>} */
    this._uploads = new Map();
    this._sendRate = new SendRate();
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
    const lane = (this._lanes.get(conversationId)?.entries ?? []).map((entry) => entry.item);
    const uploading = [...this._uploads.values()].map((entry) => entry.item);
    return [...lane, ...uploading.filter((item) => item.conversationId === conversationId)];
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
    if (item.upload) {
      this._uploads.set(item.clientMsgId, entry);
      return;
    }
    const lane = this._lane(item.conversationId);
    // an item from the storage goes before those made since
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
    if (this._uploads.delete(clientMsgId)) return entry.item;
    const { conversationId } = entry.item;
    const lane = this._lane(conversationId);
    lane.entries.splice(lane.entries.indexOf(entry), 1);
    if (lane.entries.length === 0) this._lanes.delete(conversationId);
    return entry.item;
  }

  /** The ids of those whose files are to be uploaded, in order. */
  uploading() {
    const entries = [...this._uploads.values()].filter((entry) => entry.isStored && !entry.item.error);
    entries.sort((one, other) => (one.item.order < other.item.order ? -1 : 1));
    return entries.map((entry) => entry.item.clientMsgId);
  }

  /** @param {string} clientMsgId @param {Partial<Upload>} changes @returns {OutboxItem | undefined} to be stored */
  uploadChanged(clientMsgId, changes) {
    const entry = this._uploads.get(clientMsgId);
    if (entry?.item.upload) entry.item = { ...entry.item, upload: { ...entry.item.upload, ...changes } };
    return entry?.item;
  }

  /** @param {string} clientMsgId @param {number} uploadedBytes @returns {OutboxItem | undefined} */
  uploadMoved(clientMsgId, uploadedBytes) {
    const entry = this._uploads.get(clientMsgId);
    if (entry) entry.item = { ...entry.item, uploadedBytes };
    return entry?.item;
  }

  /** @param {string} clientMsgId @param {Failure} error @returns {OutboxItem | undefined} to be stored */
  uploadFailed(clientMsgId, error) {
    const entry = this._uploads.get(clientMsgId);
    if (entry) entry.item = { ...entry.item, error };
    return entry?.item;
  }

  /**
   * The file is complete: its message becomes the newest of its conversation, once it is stored again.
   * @param {string} clientMsgId
   * @param {string} fileId
   * @returns {OutboxItem | undefined}
   */
  uploaded(clientMsgId, fileId) {
    const entry = this._uploads.get(clientMsgId);
    if (!entry) return undefined;
    this._uploads.delete(clientMsgId);
    const { upload, ...item } = entry.item;
    entry.item = { ...item, content: { file_id: fileId, ...item.content } };
    entry.isStored = false;
    this._lane(item.conversationId).entries.push(entry);
    return entry.item;
  }

  /** The server took it into its queue. @param {string} clientMsgId @param {number} now */
  accepted(clientMsgId, now) {
    const entry = this._entries.get(clientMsgId);
    if (!entry || entry.item.error) return false;
    this._sent(entry, now);
    this._resume(entry);
    const isNews = !entry.isAccepted;
    entry.isAccepted = true;
    return isNews;
  }

  /** It is stored for good. @param {string} clientMsgId */
  saved(clientMsgId) {
    const entry = this._entries.get(clientMsgId);
    if (entry) {
      this._sendRate.worked();
      this._resume(entry);
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
      this._resume(entry);
      entry.item = { ...entry.item, error };
      return "failed";
    }
    if (error.reason === "too_many_requests") this._sendRate.slowDown(now, retryAfterMs);
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
        if (!this._sendRate.mayGo(now)) {
          this._wakeAt(this._sendRate.nextAt);
          break;
        }
        this._sendRate.sent(now);
        if (entry.sentAt === 0) taken += 1;
        this._sent(entry, now);
        entry.item = { ...entry.item, wasSent: true };
        out.push(entry.item);
      }
      this._wakeAt(entry.sentAt + this._patience(entry));
      if (!entry.isAccepted) waiting += 1;
      if (lane.backoff.attempts > 0) break; // after a refusal one goes ahead of the rest
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

  /** The first item of the lane was answered: the pause ends. @param {Entry} entry */
  _resume(entry) {
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
