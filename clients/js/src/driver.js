// Runs the engine of one user: one socket, one timer, the storage.

import { Engine } from "./core/engine.js";
import { storedForm } from "./upload-source.js";
import { Uploads } from "./uploads.js";
import { Socket } from "./websocket.js";

/** @import { ConversationState } from "./core/conversation-state.js" */
/** @import { Options } from "./core/options.js" */
/** @import { Locks } from "./locks.js" */
/** @import { OutboxItem, PlacedMessage, Session, Storage } from "./types.js" */

const TIMEOUT_MAX_MS = 2 ** 31 - 1;
const LATE_MS = 50;
const ADOPT_EVERY_MS = 60_000;

/**
 * @typedef {object} DriverHost
 * @property {(name: string, payload: any) => void} emit
 * @property {(conversation: ConversationState) => void} changed
 * @property {(item: OutboxItem, isAccepted: boolean) => void} itemChanged
 * @property {(item: OutboxItem, message: PlacedMessage) => void} itemSaved
 * @property {(clientMsgId: string) => void} itemGiven
 * @property {() => Session | null} session
 * @property {(isExpired: boolean) => Promise<void>} prepareToken throws a NexoError
 * @property {(reason: string, forgetSession: boolean) => void} ended
 * @property {() => void} loadList
 * @property {(conversation: ConversationState) => void} loadDeleted
 * @property {import("./uploads.js").RawCall} callRaw signed in
 * @property {(error: unknown) => void} failed something in the background
 */

/**
 * @typedef {object} Surroundings
 * @property {Storage} storage
 * @property {Locks} locks
 * @property {string} socketUrl
 * @property {typeof WebSocket} WebSocket
 * @property {() => number} clock
 * @property {string} instanceId
 */

export class Driver {
  /**
   * @param {string} userId
   * @param {DriverHost} host
   * @param {Surroundings} around
   * @param {Options} options
   */
  constructor(userId, host, around, options) {
    this.userId = userId;
    this._host = host;
    this._around = around;
    /** @type {Socket | null} */
    this._socket = null;
    /** @type {ReturnType<typeof setTimeout> | null} */
    this._timer = null;
    this._timerAt = Infinity;
    this._isShut = false;
    /** @type {Promise<any>} */
    this._writes = Promise.resolve();
    /** @type {(() => void) | null} */
    this._release = null;
    this._adoptAt = 0;
    this.engine = new Engine(
      userId,
      {
        open: () => this._open(),
        drop: (code) => this._drop(code),
        needToken: (isExpired) => void this._needToken(isExpired),
        credentials: () => this._credentials(),
        send: (frame) => this._socket?.send(frame),
        emit: (name, payload) => host.emit(name, payload),
        changed: (conversation) => host.changed(conversation),
        itemChanged: (item) => this._itemChanged(item),
        itemSaved: (item, message) => this._itemSaved(item, message),
        itemGiven: (clientMsgId) => host.itemGiven(clientMsgId),
        storeBaselines: (baselines) => this._storeBaselines(baselines),
        ended: (reason, forgetSession) => host.ended(reason, forgetSession),
        loadList: () => this._signedIn(),
        loadDeleted: (conversation) => host.loadDeleted(conversation),
      },
      options,
      around.clock,
    );
    this.uploads = new Uploads(
      {
        engine: () => this.engine,
        call: (method, path, headers, body) => host.callRaw(method, path, headers, body),
        changed: (item) => this._itemChanged(item),
        moved: (item) => host.itemChanged(item, false),
        complete: (item) => this._uploaded(item),
        failed: (error) => host.failed(error),
      },
      around.storage,
      userId,
      options,
    );
    /** Resolves when the storage was read. */
    this.loaded = this._load();
    this.loaded.catch((error) => host.failed(error));
  }

  // -- driving the engine -----------------------------------------------------------------------------------

  /**
   * Every call of the engine goes through here, so that the timer is set for its next deadline.
   * @param {(engine: Engine) => void} input
   */
  drive(input) {
    if (this._isShut) return;
    input(this.engine);
    this._schedule();
  }

  async start() {
    await this.loaded.catch(() => {}); // the error was emitted
    if (!this._release) await this._hold();
    this.drive((engine) => engine.start());
    this.uploads.start();
  }

  /** Disconnects. It can be started again. */
  async stop() {
    this.uploads.stop();
    this.drive((engine) => engine.stop());
    if (this._timer !== null) clearTimeout(this._timer);
    this._timer = null;
    this._timerAt = Infinity;
    this._release?.();
    this._release = null;
    await this._writes;
  }

  /** Drops the socket; nothing more is done or stored. */
  abandon() {
    this._isShut = true;
    this.uploads.stop();
    if (this._timer !== null) clearTimeout(this._timer);
    this._socket?.drop(4999);
    this._release?.();
  }

  _schedule() {
    const at = this.engine.deadline;
    if (at === Infinity || (this._timer !== null && this._timerAt <= at)) return;
    if (this._timer !== null) clearTimeout(this._timer);
    this._timerAt = at;
    const delay = Math.min(TIMEOUT_MAX_MS, Math.max(0, at - this._around.clock()));
    this._timer = setTimeout(() => this._wake(at), Math.ceil(delay));
  }

  /** @param {number} at when it should have been */
  _wake(at) {
    if (this._around.clock() - at > LATE_MS) {
      // the process was blocked or the machine asleep: read the frames that have arrived first
      this._timer = setTimeout(() => this._wake(Infinity), 0);
      return;
    }
    this._timer = null;
    this._timerAt = Infinity;
    this.drive((engine) => engine.tick());
  }

  /** Sends a frame that is not one of the engine's. @param {object} frame */
  sendNow(frame) {
    this._socket?.send(frame);
  }

  _open() {
    let socket;
    try {
      socket = new Socket(this._around.socketUrl, this._around.WebSocket, {
        opened: () => this.drive((engine) => engine.connection.opened(this._around.clock())),
        frame: (frame) => this._frame(frame),
        lost: (code) => this.drive((engine) => engine.connection.lost(this._around.clock(), code)),
      });
    } catch (error) {
      this._host.failed(error); // a bad address, or no WebSocket here
      queueMicrotask(() => this.drive((engine) => engine.connection.lost(this._around.clock(), 1006)));
      return;
    }
    this._socket = socket;
  }

  /** @param {number} code */
  _drop(code) {
    this._socket?.drop(code);
    this._socket = null;
  }

  /** @param {boolean} isExpired */
  async _needToken(isExpired) {
    try {
      await this._host.prepareToken(isExpired);
      this.drive((engine) => engine.connection.tokenReady(this._around.clock()));
    } catch (error) {
      const { reason = "network", isTransient = true, retryAfterMs = 0 } = /** @type {any} */ (error);
      const now = this._around.clock();
      this.drive((engine) => engine.connection.tokenFailed(now, reason, !isTransient, retryAfterMs));
    }
  }

  _credentials() {
    const session = this._host.session();
    return { token: session?.accessToken ?? "", deviceId: session?.deviceId ?? "" };
  }

  /** @param {any} frame */
  _frame(frame) {
    this.drive((engine) => engine.receive(frame));
    // a tab may have been closed; without locks that cannot be known, and only a start takes over
    if (this._around.locks.isShared && this._around.clock() >= this._adoptAt) this._adoptSoon();
  }

  _signedIn() {
    this._host.loadList();
    if (this._around.locks.isShared) this._adoptSoon();
  }

  _adoptSoon() {
    this._adopt().catch((error) => this._host.failed(error));
  }

  // -- the outbox in the storage ----------------------------------------------------------------------------

  /** @param {string} clientMsgId */
  _key(clientMsgId) {
    return `outbox/${this.userId}/${clientMsgId}`;
  }

  /** @param {string} instanceId */
  _lockName(instanceId) {
    return `nexo ${this._around.socketUrl} ${this.userId} ${instanceId}`;
  }

  /** Shows other tabs that this one is open. */
  async _hold() {
    const release = await this._around.locks.hold(this._lockName(this._around.instanceId));
    if (this._isShut || this._release) release();
    else this._release = release;
  }

  async _load() {
    await this._hold();
    const prefix = `baselines/${this.userId}/`;
    for (const [key, seq] of await this._around.storage.entries(prefix)) {
      this.engine.inbox.baselines.load(key.slice(prefix.length), seq);
    }
    await this._adopt();
  }

  /** Takes over the outbox of tabs that were closed. */
  async _adopt() {
    this._adoptAt = this._around.clock() + ADOPT_EVERY_MS;
    const { storage, locks, instanceId } = this._around;
    await locks.run(this._lockName("adopt"), async () => {
      // The locks are read once, and before the storage: the items of a tab that is closed in between are all left for the
      // next time, so that none of them overtakes another.
      const held = await locks.held();
      const left = (await storage.entries(`outbox/${this.userId}/`)).filter(([, { clientMsgId, owner }]) => {
        const isAlive = owner === instanceId || (owner && held.has(this._lockName(owner)));
        return !isAlive && !this.engine.outbox.get(clientMsgId);
      });
      left.sort(([, one], [, other]) => (one.order < other.order ? -1 : 1));
      for (const [key, item] of left) {
        const mine = { ...item, owner: instanceId };
        await storage.set(key, mine);
        this.drive((engine) => {
          engine.outbox.add(mine, true);
          engine.conversation(mine.conversationId);
          this._host.itemChanged(mine, false);
          engine.pump();
        });
      }
    });
    this.uploads.look();
  }

  /**
   * Stores it, and then sends it, or uploads its file first.
   * @param {OutboxItem} item
   * @param {Blob | null} [blob] of its file, unless that has a path
   */
  enqueue(item, blob = null) {
    const mine = { ...item, owner: this._around.instanceId };
    this.drive((engine) => {
      engine.inbox.beginIfNew(engine.conversation(item.conversationId));
      engine.outbox.add(mine, false);
    });
    const { storage } = this._around;
    const write = async () => {
      if (blob) await storage.set(this.uploads.key(item.clientMsgId), await storedForm(storage, blob));
      await storage.set(this._key(item.clientMsgId), mine);
    };
    this._write(write, () => this._stored(item.clientMsgId));
    return mine;
  }

  /** @param {string} clientMsgId */
  _stored(clientMsgId) {
    this.drive((engine) => {
      engine.outbox.stored(clientMsgId);
      engine.pump();
    });
    this.uploads.look();
  }

  /** @param {OutboxItem} item */
  _uploaded(item) {
    this._host.itemChanged(item, false);
    this._write(() => this._around.storage.set(this._key(item.clientMsgId), item), () => this._stored(item.clientMsgId));
  }

  /** @param {string} clientMsgId */
  retry(clientMsgId) {
    const isRetried = this.engine.outbox.retry(clientMsgId);
    const entry = this.engine.outbox.get(clientMsgId);
    if (!isRetried || !entry) return false;
    this._itemChanged(entry.item);
    this.drive((engine) => engine.pump());
    this.uploads.look();
    return true;
  }

  /** @param {string} clientMsgId */
  cancel(clientMsgId) {
    const entry = this.engine.outbox.get(clientMsgId);
    if (!entry || (entry.item.wasSent && !entry.item.error)) return false;
    this.engine.outbox.remove(clientMsgId);
    this._write(() => this._around.storage.delete(this._key(clientMsgId)));
    if (entry.item.upload) void this.uploads.abandon(entry.item).catch((error) => this._host.failed(error));
    return true;
  }

  /** @param {OutboxItem} item */
  _itemChanged(item) {
    const entry = this.engine.outbox.get(item.clientMsgId);
    this._write(() => this._around.storage.set(this._key(item.clientMsgId), item));
    this._host.itemChanged(item, entry?.isAccepted ?? false);
  }

  /** @param {OutboxItem} item @param {PlacedMessage} message */
  _itemSaved(item, message) {
    this._write(() => this._around.storage.delete(this._key(item.clientMsgId)));
    this._host.itemSaved(item, message);
  }

  /** Stores how far the application has a conversation. @param {string} conversationId */
  async keepBaseline(conversationId) {
    const { inbox } = this.engine;
    inbox.baselines.keep(conversationId, inbox.conversation(conversationId).handledSeq);
    await this._writes;
  }

  async storeBaselines() {
    this.engine.inbox.baselines.flush();
    await this._writes;
  }

  /** @param {Map<string, number>} baselines */
  _storeBaselines(baselines) {
    for (const [id, seq] of baselines) {
      this._write(() => this._around.storage.set(`baselines/${this.userId}/${id}`, seq));
    }
  }

  /** Deletes everything stored of the user. */
  async wipe() {
    await this._writes;
    for (const prefix of [`baselines/${this.userId}/`, `outbox/${this.userId}/`, `uploads/${this.userId}/`]) {
      for (const [key] of await this._around.storage.entries(prefix)) await this._around.storage.delete(key);
    }
  }

  /**
   * Messages are sent also when the storage fails.
   * @param {() => Promise<void>} write
   * @param {() => void} [then]
   */
  _write(write, then = () => {}) {
    if (this._isShut) return;
    const done = write()
      .catch((error) => this._host.failed(error))
      .then(() => {
        if (!this._isShut) then();
      });
    this._writes = Promise.all([this._writes, done]);
  }
}
