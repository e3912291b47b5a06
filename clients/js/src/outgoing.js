// A message on its way, as the caller sees it.

import { NexoError } from "./errors.js";

/** @import { Failure, OutboxItem, PlacedMessage, SendState } from "./types.js" */

/**
 * @typedef {object} OutgoingHost
 * @property {(clientMsgId: string) => boolean} retry
 * @property {(clientMsgId: string) => boolean} cancel
 * @property {(conversationId: string, seq: number) => SendState} stateOf
 */

export class OutgoingMessage {
  /** @param {OutboxItem} item @param {OutgoingHost} host */
  constructor(item, host) {
    this._item = item;
    this._host = host;
    this._isAccepted = false;
    this._isCancelled = false;
    /** The message, once it is saved. @type {PlacedMessage | null} */
    this.message = null;
    /** @type {{resolve: (message: PlacedMessage) => void, reject: (error: NexoError) => void}[]} */
    this._waiting = [];
  }

  get clientMsgId() {
    return this._item.clientMsgId;
  }

  /** Sorts by when it was made. */
  get order() {
    return this._item.order;
  }

  get conversationId() {
    return this._item.conversationId;
  }

  get content() {
    return this.message?.content ?? this._item.content;
  }

  get msgType() {
    return this._item.msgType;
  }

  get mentions() {
    return this._item.mentions;
  }

  get replyTo() {
    return this._item.replyTo;
  }

  get extra() {
    return this._item.extra;
  }

  get createdAt() {
    return this._item.createdAt;
  }

  get serverMsgId() {
    return this.message?.serverMsgId ?? null;
  }

  get seq() {
    return this.message?.seq ?? null;
  }

  get sendAt() {
    return this.message?.sendAt ?? null;
  }

  /** @returns {SendState} */
  get state() {
    if (this.message) return this._host.stateOf(this.conversationId, this.message.seq);
    if (this._item.error || this._isCancelled) return "failed";
    return this._isAccepted ? "accepted" : "sending";
  }

  /** Why it failed. @returns {Failure | null} */
  get error() {
    if (this._isCancelled) return { reason: "cancelled", detail: "" };
    return this.message ? null : this._item.error;
  }

  /**
   * The message once it is saved; rejects when it failed.
   * @returns {Promise<PlacedMessage>}
   */
  whenSaved() {
    if (this.message) return Promise.resolve(this.message);
    if (this.error) return Promise.reject(failure(this.error));
    return new Promise((resolve, reject) => this._waiting.push({ resolve, reject }));
  }

  /** After `failed`: once more, with the same id. */
  retry() {
    return !this._isCancelled && this._host.retry(this.clientMsgId);
  }

  /** Give it up, if it is surely not stored. Whether that was so. */
  cancel() {
    return !this._isCancelled && this._host.cancel(this.clientMsgId);
  }

  /** @param {OutboxItem} item @param {boolean} isAccepted */
  _update(item, isAccepted) {
    this._item = item;
    this._isAccepted = isAccepted;
    if (item.error) this._settle((waiter) => waiter.reject(failure(/** @type {Failure} */ (item.error))));
  }

  /** @param {PlacedMessage} message */
  _saved(message) {
    this.message = message;
    this._settle((waiter) => waiter.resolve(message));
  }

  _cancelled() {
    this._isCancelled = true;
    this._settle((waiter) => waiter.reject(new NexoError("cancelled")));
  }

  /** @param {(waiter: {resolve: (message: PlacedMessage) => void, reject: (error: NexoError) => void}) => void} end */
  _settle(end) {
    const waiting = this._waiting;
    this._waiting = [];
    waiting.forEach(end);
  }
}

/** @param {Failure} error */
function failure(error) {
  return new NexoError(error.reason, error.detail);
}
