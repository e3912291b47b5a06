// A message on its way, as `send` returns it.

import { NexoError } from "./errors.js";

/** @import { Driver } from "./driver.js" */
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
    this._size = item.upload?.size ?? null;
    this._reported = 0;
    /** Called while its file is uploaded. @type {((uploaded: number, size: number) => void) | null} */
    this.onProgress = null;
    /** The message, once it is saved. @type {PlacedMessage | null} */
    this.message = null;
    /** @type {{resolve: (message: PlacedMessage) => void, reject: (error: NexoError) => void}[]} */
    this._waiting = [];
  }

  get clientMsgId() {
    return this._item.clientMsgId;
  }

  /** A text that sorts by creation time. */
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

  /** How many seconds its content is shown; null: without end. */
  get expiresS() {
    return this._item.expiresS ?? null;
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
    if (this._item.upload) return "uploading";
    return this._isAccepted ? "accepted" : "sending";
  }

  /** How many bytes of its file the server has, of how many; null without a file. */
  get progress() {
    return this._size === null ? null : { uploaded: this._reported, size: this._size };
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

  /** Sends a failed message once more, with the same id; returns whether it had failed. */
  retry() {
    return !this._isCancelled && this._host.retry(this.clientMsgId);
  }

  /** Removes it from the outbox, unless the server may have stored it; returns whether it was removed. */
  cancel() {
    return !this._isCancelled && this._host.cancel(this.clientMsgId);
  }

  /** @param {OutboxItem} item @param {boolean} isAccepted */
  _update(item, isAccepted) {
    this._item = item;
    this._isAccepted = isAccepted;
    this._size = item.upload?.size ?? this._size;
    const uploaded = item.uploadedBytes ?? 0;
    if (uploaded !== this._reported && this._size !== null) {
      this._reported = uploaded;
      const size = this._size;
      if (this.onProgress) queueMicrotask(() => this.onProgress?.(uploaded, size)); // later: an error in it is the application's
    }
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

/** All messages on their way: each is the same object until it is among the messages. */
export class OutgoingMessages {
  /**
   * @param {() => Driver | null} driver
   * @param {(outgoing: OutgoingMessage) => void} changed
   */
  constructor(driver, changed) {
    this._driver = driver;
    this._changed = changed;
    /** @type {Map<string, OutgoingMessage>} */
    this._byId = new Map();
    /** @type {Set<() => void>} */
    this._flushing = new Set();
  }

  /** By creation time. */
  get all() {
    return sorted([...this._byId.values()]);
  }

  /** What the server has not saved. */
  get unsent() {
    return this.all.filter((outgoing) => outgoing.message === null);
  }

  /** Lets `flush` look again, because the connection has changed. */
  wake() {
    for (const look of [...this._flushing]) look();
  }

  /**
   * Resolves when everything is saved. Rejects with the error of a message that failed, with `timeout`, or with what `check`
   * throws, which is called while there are messages to wait for.
   * @param {number} timeoutMs
   * @param {() => void} check
   */
  async flush(timeoutMs, check) {
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      this.wake();
    }, timeoutMs);
    try {
      while (this.unsent.some((outgoing) => outgoing.error === null)) {
        check();
        if (isLate) throw new NexoError("timeout", `${this.unsent.length} messages are not saved yet`);
        await this._next();
      }
    } finally {
      clearTimeout(timer);
    }
    const error = this.unsent.find((outgoing) => outgoing.error)?.error;
    if (error) throw failure(error);
  }

  /** Until anything changes. @returns {Promise<void>} */
  _next() {
    return new Promise((resolve) => {
      const look = () => {
        this._flushing.delete(look);
        resolve();
      };
      this._flushing.add(look);
    });
  }

  /** @param {OutgoingMessage} outgoing */
  _report(outgoing) {
    this.wake();
    this._changed(outgoing);
  }

  /** @param {string} clientMsgId */
  get(clientMsgId) {
    return this._byId.get(clientMsgId);
  }

  /** @param {OutboxItem} item */
  of(item) {
    let outgoing = this._byId.get(item.clientMsgId);
    if (!outgoing) {
      outgoing = new OutgoingMessage(item, {
        retry: (id) => this._driver()?.retry(id) ?? false,
        cancel: (id) => this._cancel(id),
        stateOf: (conversationId, seq) => this._driver()?.engine.conversations.get(conversationId)?.stateOf(seq) ?? "saved",
      });
      this._byId.set(item.clientMsgId, outgoing);
    }
    return outgoing;
  }

  /** What is not among the messages of a conversation yet. @param {string} conversationId */
  in(conversationId) {
    const engine = this._driver()?.engine;
    const ahead = [...(engine?.inbox.savedAhead.values() ?? [])].filter((item) => item.conversationId === conversationId);
    return sorted([...ahead, ...(engine?.outbox.itemsOf(conversationId) ?? [])].map((item) => this.of(item)));
  }

  /** @param {string} clientMsgId */
  _cancel(clientMsgId) {
    const outgoing = this._byId.get(clientMsgId);
    if (!outgoing || !this._driver()?.cancel(clientMsgId)) return false;
    this._byId.delete(clientMsgId);
    outgoing._cancelled();
    this._report(outgoing);
    return true;
  }

  /** @param {OutboxItem} item @param {boolean} isAccepted */
  changed(item, isAccepted) {
    const outgoing = this.of(item);
    outgoing._update(item, isAccepted);
    this._report(outgoing);
  }

  /** @param {OutboxItem} item @param {PlacedMessage} message */
  saved(item, message) {
    const outgoing = this.of(item);
    outgoing._saved(message);
    this._report(outgoing);
  }

  /** It is among the messages. @param {string} clientMsgId */
  given(clientMsgId) {
    this._byId.delete(clientMsgId);
  }

  clear() {
    this._byId.clear();
  }
}

/** @param {OutgoingMessage[]} messages */
function sorted(messages) {
  return messages.sort((one, other) => (one.order < other.order ? -1 : 1));
}

/** @param {Failure} error */
function failure(error) {
  return new NexoError(error.reason, error.detail);
}
