// The thin shell around the engine of one user: the socket, the one timer, the storage.

import { Engine } from "./core/engine.js";
import { Socket } from "./socket.js";

/** @import { Chat } from "./core/chat.js" */
/** @import { EngineOptions } from "./core/options.js" */
/** @import { Locks } from "./locks.js" */
/** @import { OutboxItem, PlacedMessage, Session, Storage } from "./types.js" */

const TIMEOUT_MAX_MS = 2 ** 31 - 1;
const LATE_MS = 50;
const ADOPT_EVERY_MS = 60_000;

/**
 * @typedef {object} ShellHost
 * @property {(name: string, payload: any) => void} emit
 * @property {(chat: Chat) => void} changed
 * @property {(item: OutboxItem, isAccepted: boolean) => void} itemChanged
 * @property {(item: OutboxItem, message: PlacedMessage) => void} itemSaved
 * @property {(clientMsgId: string) => void} itemGiven
 * @property {() => Session | null} session
 * @property {(isExpired: boolean) => Promise<void>} prepareToken throws a NexoError
 * @property {(reason: string, forgetSession: boolean) => void} ended
 * @property {() => void} loadList
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

export class Shell {
  /**
   * @param {string} userId
   * @param {ShellHost} host
   * @param {Surroundings} around
   * @param {EngineOptions} options
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
        changed: (chat) => host.changed(chat),
        itemChanged: (item) => this._itemChanged(item),
        itemSaved: (item, message) => this._itemSaved(item, message),
        itemGiven: (clientMsgId) => host.itemGiven(clientMsgId),
        storeBaselines: (baselines) => this._storeBaselines(baselines),
        ended: (reason, forgetSession) => host.ended(reason, forgetSession),
        loadList: () => this._signedIn(),
      },
      options,
      around.clock,
    );
    /** What an earlier life left in the storage is known. */
    this.loaded = this._load();
    this.loaded.catch((error) => host.failed(error));
  }

  // -- driving the engine -----------------------------------------------------------------------------------

  /**
   * Every input comes through here, so that the timer is right afterwards.
   * @param {(engine: Engine) => void} input
   */
  drive(input) {
    if (this._isShut) return;
    input(this.engine);
    this._schedule();
  }

  async start() {
    await this.loaded.catch(() => {}); // what could not be read has been told
    if (!this._release) await this._hold();
    this.drive((engine) => engine.start());
  }

  /** Disconnect. It can be started again. */
  async stop() {
    this.drive((engine) => engine.stop());
    if (this._timer !== null) clearTimeout(this._timer);
    this._timer = null;
    this._timerAt = Infinity;
    this._release?.();
    this._release = null;
    await this._writes;
  }

  /** Without a word, and for good: nothing more is done or stored. */
  abandon() {
    this._isShut = true;
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
      // the process was held up or the machine asleep: hear first what has come meanwhile
      this._timer = setTimeout(() => this._wake(Infinity), 0);
      return;
    }
    this._timer = null;
    this._timerAt = Infinity;
    this.drive((engine) => engine.tick());
  }

  /** Outside of the engine's own frames. @param {object} frame */
  sendNow(frame) {
    this._socket?.send(frame);
  }

  _open() {
    let socket;
    try {
      socket = new Socket(this._around.socketUrl, this._around.WebSocket, {
        opened: () => this.drive((engine) => engine.link.opened(this._around.clock())),
        frame: (frame) => this._frame(frame),
        lost: (code) => this.drive((engine) => engine.link.lost(this._around.clock(), code)),
      });
    } catch (error) {
      this._host.failed(error); // a bad address, or no WebSocket here
      queueMicrotask(() => this.drive((engine) => engine.link.lost(this._around.clock(), 1006)));
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
      this.drive((engine) => engine.link.tokenReady(this._around.clock()));
    } catch (error) {
      const { reason = "network", isTransient = true, retryAfterMs = 0 } = /** @type {any} */ (error);
      const now = this._around.clock();
      this.drive((engine) => engine.link.tokenFailed(now, reason, !isTransient, retryAfterMs));
    }
  }

  _credentials() {
    const session = this._host.session();
    return { token: session?.accessToken ?? "", deviceId: session?.deviceId ?? "" };
  }

  /** @param {any} frame */
  _frame(frame) {
    this.drive((engine) => engine.receive(frame));
    // other tabs come and go; without locks nobody can tell, and only a start takes over
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

  /** Tell other tabs that this one lives. */
  async _hold() {
    const release = await this._around.locks.hold(this._lockName(this._around.instanceId));
    if (this._isShut || this._release) release();
    else this._release = release;
  }

  async _load() {
    await this._hold();
    const prefix = `baselines/${this.userId}/`;
    for (const [key, seq] of await this._around.storage.entries(prefix)) {
      this.engine.baselines.load(key.slice(prefix.length), seq);
    }
    await this._adopt();
  }

  /** Take over what clients that are gone have left. */
  async _adopt() {
    this._adoptAt = this._around.clock() + ADOPT_EVERY_MS;
    const { storage, locks, instanceId } = this._around;
    await locks.run(this._lockName("adopt"), async () => {
      // Who lives is asked once, and before reading: of somebody who dies meanwhile all is left for the next time, not a
      // part that would overtake the rest.
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
          engine.chat(mine.conversationId);
          this._host.itemChanged(mine, false);
          engine.pump();
        });
      }
    });
  }

  /** Store it, then let it go out. @param {OutboxItem} item */
  enqueue(item) {
    const mine = { ...item, owner: this._around.instanceId };
    this.drive((engine) => {
      engine.beginIfNew(engine.chat(item.conversationId));
      engine.outbox.add(mine, false);
    });
    this._write(() => this._around.storage.set(this._key(item.clientMsgId), mine), () => {
      this.drive((engine) => {
        engine.outbox.stored(item.clientMsgId);
        engine.pump();
      });
    });
    return mine;
  }

  /** @param {string} clientMsgId */
  retry(clientMsgId) {
    const isRetried = this.engine.outbox.retry(clientMsgId);
    const entry = this.engine.outbox.get(clientMsgId);
    if (!isRetried || !entry) return false;
    this._itemChanged(entry.item);
    this.drive((engine) => engine.pump());
    return true;
  }

  /** @param {string} clientMsgId */
  cancel(clientMsgId) {
    const entry = this.engine.outbox.get(clientMsgId);
    if (!entry || (entry.item.wasSent && !entry.item.error)) return false;
    this.engine.outbox.remove(clientMsgId);
    this._write(() => this._around.storage.delete(this._key(clientMsgId)));
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

  /** @param {Map<string, number>} baselines */
  _storeBaselines(baselines) {
    for (const [id, seq] of baselines) {
      this._write(() => this._around.storage.set(`baselines/${this.userId}/${id}`, seq));
    }
  }

  /** The user signs out: nothing of theirs stays. */
  async wipe() {
    await this._writes;
    for (const prefix of [`baselines/${this.userId}/`, `outbox/${this.userId}/`]) {
      for (const [key] of await this._around.storage.entries(prefix)) await this._around.storage.delete(key);
    }
  }

  /**
   * A storage that fails costs what it is for, not the sending.
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
