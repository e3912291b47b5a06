// The client: accounts, the connection, conversations, events. What it does with frames is in core/engine.js.

import { Conversation } from "./conversation.js";
import { MessageIds, groupConversationId, singleConversationId } from "./core/ids.js";
import { sortChats } from "./core/list.js";
import { withDefaults } from "./core/options.js";
import { Emitter } from "./emitter.js";
import { NexoError } from "./errors.js";
import { Groups } from "./groups.js";
import { Http } from "./http.js";
import { Listing } from "./listing.js";
import { Locks } from "./locks.js";
import { camel, snake } from "./naming.js";
import { watchNetwork } from "./network.js";
import { OutgoingMessage } from "./outgoing.js";
import { Presence } from "./presence.js";
import { Renewal } from "./renewal.js";
import { Sessions } from "./sessions.js";
import { Shell } from "./shell.js";
import { FallbackStorage } from "./storage/fallback.js";
import { IndexedDbStorage } from "./storage/indexeddb.js";
import { MemoryStorage } from "./storage/memory.js";
import { Users } from "./users.js";

/** @import { Chat } from "./core/chat.js" */
/** @import { ClientEvents, ClientOptions } from "./interface.js" */
/** @import { OutboxItem, PlacedMessage, SendOptions, Session, State, StateChange, Storage, User } from "./types.js" */

/** @extends {Emitter<ClientEvents>} */
export class NexoClient extends Emitter {
  /** @param {ClientOptions} options */
  constructor(options) {
    super();
    const { url, storage, deviceId, platformId = 5, WebSocket = globalThis.WebSocket, fetch = globalThis.fetch } = options;
    this._options = withDefaults(options);
    // does not go back when somebody sets the clock
    this._clock = () => performance.timeOrigin + performance.now();
    this._ids = new MessageIds(random);
    this._http = new Http(url, fetch);
    this._locks = new Locks();
    /** @type {Storage} */
    this.storage = storage ?? defaultStorage(url, (error) => this._failed(error));
    this._WebSocket = WebSocket;
    this._sessions = new Sessions(this._http, this.storage, this._locks, {
      deviceId,
      platformId,
      clock: this._clock,
      makeId: () => this._ids.next(this._clock()),
      changed: (session) => this._sessionChanged(session),
    });
    /** @type {Shell | null} */
    this._shell = null;
    /** @type {Map<string, Conversation>} */
    this._views = new Map();
    /** Not yet among the messages. @type {Map<string, OutgoingMessage>} */
    this._outgoing = new Map();
    /** @type {Set<Chat>} */
    this._dirty = new Set();
    /** @type {Conversation[] | null} */
    this._list = null;
    /** @type {Listing | null} */
    this._listing = null;
    this._renewal = new Renewal(this._sessions, this._clock, random);
    this._instanceId = this._ids.next(this._clock());
    this._isStarted = false;
    this._unwatch = () => {};
    const call = this.call.bind(this);
    this.users = new Users(call);
    this.groups = new Groups(call);
    this.presence = new Presence((userIds) => this._shell?.drive((engine) => engine.watchPresence(userIds)));
  }

  // -- account ----------------------------------------------------------------------------------------------

  /** @returns {Session | null} */
  get session() {
    return this._sessions.current;
  }

  get userId() {
    return this._sessions.current?.userId ?? null;
  }

  /**
   * Does not sign in.
   * @param {{userId?: string, password: string, nickname?: string, avatar?: string, extra?: any}} account
   * @returns {Promise<User>}
   */
  async register(account) {
    return camel(await this._http.call("POST", "/user/register", snake(account)));
  }

  /** @param {{userId: string, password: string}} credentials */
  async login({ userId, password }) {
    if (this._shell && this._shell.userId !== userId) await this._leave();
    return this._begin(await this._sessions.login(userId, password));
  }

  /**
   * Go on with a session that was saved, or with the one in the storage.
   * @param {Session} [session]
   * @returns {Promise<boolean>} whether there was one
   */
  async restore(session) {
    if (session && this._shell && this._shell.userId !== session.userId) await this._leave();
    const found = await this._sessions.restore(session);
    if (found) await this._begin(found);
    return found !== null;
  }

  /** All other sessions of the user end. @param {{oldPassword: string, newPassword: string}} change */
  async changePassword({ oldPassword, newPassword }) {
    const params = { old_password: oldPassword, new_password: newPassword };
    await this._sessions.replace(await this.call("POST", "/auth/password", params));
  }

  /** End the session on the server, and forget what is stored of the user. */
  async logout() {
    const shell = this._shell;
    await this.call("POST", "/auth/logout", {}).catch(() => {}); // not reached: it ends by itself one day
    await this.close();
    await shell?.wipe();
    this._forgetUser();
    await this._sessions.forget();
  }

  // -- connection -------------------------------------------------------------------------------------------

  /** @returns {State} */
  get state() {
    return this._shell?.engine.state ?? "offline";
  }

  /** `{state, reason, retryAt}`, as the event has it. @returns {StateChange} */
  get stateChange() {
    return this._shell?.engine.stateChange ?? { state: "offline", reason: null, retryAt: null };
  }

  /**
   * Connect, and stay so. Resolves when everything that was missed is here for the first time.
   * @returns {Promise<void>}
   */
  async connect() {
    if (!this._WebSocket) throw new NexoError("no_websocket", "There is none here: pass a class as the option WebSocket");
    if (!this.session && !(await this.restore())) throw new NexoError("unauthorized", "Sign in first");
    const shell = this._needShell();
    if (!this._isStarted) {
      this._unwatch = watchNetwork((react) => this._shell?.drive((engine) => react(engine.link)), this._clock);
    }
    this._isStarted = true;
    const online = this._whenOnline();
    await shell.start();
    return online;
  }

  /** Disconnect. What is in the outbox stays there; `connect` goes on. */
  async close() {
    this._isStarted = false;
    this._unwatch();
    this._renewal.stop();
    this._listing?.stop();
    await this._shell?.stop();
    await this.storage.close?.();
  }

  _whenOnline() {
    return new Promise((resolve, reject) => {
      /** @param {StateChange} change */
      const look = ({ state, reason }) => {
        if (state === "online") resolve(undefined);
        else if (state === "closed") reject(new NexoError(reason ?? "closed"));
        else if (!this._isStarted) reject(new NexoError("closed", "close() was called"));
        else return;
        end();
      };
      const end = this.on("state", look);
      if (this.state === "online") look(this.stateChange);
    });
  }

  // -- conversations ----------------------------------------------------------------------------------------

  /** The live list: pinned first, then the newest activity. @returns {Conversation[]} */
  get conversations() {
    this._list ??= sortChats(this._shell?.engine.chats.values() ?? []).map((chat) => this._view(chat));
    return this._list;
  }

  get totalUnread() {
    return this.conversations.reduce((sum, conversation) => sum + conversation.unread, 0);
  }

  /** Everything that was sent and is not saved yet, in order. @returns {OutgoingMessage[]} */
  get pending() {
    return [...this._outgoing.values()].sort((one, other) => (one.order < other.order ? -1 : 1));
  }

  /** @param {string} conversationId */
  conversation(conversationId) {
    return this._view(this._needShell().engine.chat(conversationId));
  }

  /** @param {string} userId */
  chatWith(userId) {
    return this.conversation(singleConversationId(this._needShell().userId, userId));
  }

  /** @param {string} groupId */
  group(groupId) {
    return this.conversation(groupConversationId(groupId));
  }

  /**
   * The next page of the list, with last messages and settings. The first one is loaded by `connect`.
   * @param {number} [limit]
   * @returns {Promise<boolean>} whether there are more
   */
  async loadConversations(limit) {
    this._needShell();
    return this._listing?.more(limit) ?? false;
  }

  // -- anything else ----------------------------------------------------------------------------------------

  /**
   * Any call of the HTTP API, with its own names.
   * @param {string} method
   * @param {string} path
   * @param {Record<string, any>} [params]
   * @returns {Promise<any>}
   */
  async call(method, path, params = {}) {
    const session = this.session;
    if (!session) throw new NexoError("unauthorized", "Sign in first");
    try {
      return await this._http.call(method, path, params, session.accessToken);
    } catch (error) {
      if (!(error instanceof NexoError) || error.reason !== "token_expired") throw error;
      const { accessToken } = await this._sessions.refresh(session);
      return this._http.call(method, path, params, accessToken);
    }
  }

  // -- inside: the session ----------------------------------------------------------------------------------

  /** @param {Session} session */
  async _begin(session) {
    if (this._shell?.userId === session.userId) return session;
    await this._leave();
    const around = {
      storage: this.storage,
      locks: this._locks,
      socketUrl: this._http.socketUrl,
      WebSocket: this._WebSocket,
      clock: this._clock,
      instanceId: this._instanceId,
    };
    this._shell = new Shell(session.userId, this._shellHost(), around, this._options);
    this._listing = new Listing(this.call.bind(this), this._shell, this._clock, (error) => this._failed(error));
    if (this.presence.watched.length > 0) this._shell.engine.watchPresence(this.presence.watched);
    await this._shell.loaded.catch(() => {});
    return session;
  }

  async _leave() {
    if (!this._shell) return;
    await this.close();
    this._forgetUser();
  }

  _forgetUser() {
    this._shell?.abandon();
    this._shell = null;
    this._listing?.stop();
    this._listing = null;
    this._views.clear();
    this._outgoing.clear();
    this._dirty.clear();
    this._list = null;
    this._emit("conversations", []);
  }

  /** @returns {import("./shell.js").ShellHost} */
  _shellHost() {
    return {
      emit: (name, payload) => this._pass(name, payload),
      changed: (chat) => this._changed(chat),
      itemChanged: (item, isAccepted) => this._itemChanged(item, isAccepted),
      itemSaved: (item, message) => this._itemSaved(item, message),
      itemGiven: (clientMsgId) => this._outgoing.delete(clientMsgId),
      session: () => this.session,
      prepareToken: (isExpired) => this._prepareToken(isExpired),
      ended: (reason, forgetSession) => void this._ended(reason, forgetSession),
      loadList: () => this._listing?.reload(),
      failed: (error) => this._failed(error),
    };
  }

  /** @param {Session | null} session */
  _sessionChanged(session) {
    if (session) this._sendFrame({ type: "REAUTH", token: session.accessToken });
    if (session && this._isStarted) this._renewal.start();
    else this._renewal.stop();
    this._emit("session", session);
  }

  /** @param {boolean} isExpired */
  async _prepareToken(isExpired) {
    const session = this.session;
    if (!session) throw new NexoError("unauthorized", "Sign in first");
    if (isExpired || this._sessions.isDue) {
      try {
        await this._sessions.refresh(session);
      } catch (error) {
        // the old one may do while the server cannot give another
        if (isExpired || !(error instanceof NexoError) || !error.isTransient) throw error;
      }
    }
    if (this._isStarted) this._renewal.start();
  }

  /** @param {string} reason @param {boolean} forgetSession */
  async _ended(reason, forgetSession) {
    if (reason === "kicked" || reason === "replaced") this._emit("kicked", { reason });
    this._renewal.stop();
    this._listing?.stop();
    if (forgetSession) await this._sessions.forgetIfStored();
  }

  // -- inside: events ---------------------------------------------------------------------------------------

  /** @param {string} name @param {any} payload */
  _pass(name, payload) {
    if (name === "error") return this._failed(new NexoError(payload.reason, payload.detail, payload));
    if (name === "presence") this.presence._learn(payload.users);
    if (payload?.chat) {
      const { chat, ...rest } = payload;
      payload = { ...rest, conversation: this._view(chat) };
      payload.conversation._invalidate();
    }
    this._emit(/** @type {keyof ClientEvents} */ (name), payload);
  }

  /** @param {unknown} error */
  _failed(error) {
    const told = error instanceof NexoError ? error : new NexoError("internal", String(error));
    this._emit("error", told);
  }

  /** @override @param {unknown} error */
  _handlerFailed(error) {
    if ((this._handlers.get("error")?.size ?? 0) === 0) super._handlerFailed(error);
    else this._emit("error", error instanceof NexoError ? error : new NexoError("handler_failed", String(error)));
  }

  /** Told once, at the end of this turn. @param {Chat} chat */
  _changed(chat) {
    this._views.get(chat.id)?._invalidate();
    this._list = null;
    if (this._dirty.size === 0) queueMicrotask(() => this._tellChanges());
    this._dirty.add(chat);
  }

  _tellChanges() {
    const dirty = [...this._dirty];
    this._dirty.clear();
    if (dirty.length === 0) return;
    for (const chat of dirty) {
      const view = this._views.get(chat.id);
      view?._emit("change", view);
    }
    this._emit("conversations", this.conversations);
  }

  /** @param {Chat} chat */
  _view(chat) {
    let view = this._views.get(chat.id);
    if (!view) {
      view = new Conversation(this, chat);
      this._views.set(chat.id, view);
    }
    return view;
  }

  // -- inside: sending --------------------------------------------------------------------------------------

  /**
   * @param {Chat} chat
   * @param {any} content
   * @param {SendOptions} options
   */
  _enqueue(chat, content, { msgType = 1, mentions = [], replyTo = null, extra = null, clientMsgId }) {
    const shell = this._needShell();
    const known = clientMsgId === undefined ? undefined : this._outgoing.get(clientMsgId);
    if (known) return known;
    if (shell.engine.outbox.size >= this._options.maxPending) throw new NexoError("outbox_full", "Too much waits already");
    const now = this._clock();
    const order = this._ids.next(now);
    const item = shell.enqueue({
      clientMsgId: clientMsgId ?? order,
      order,
      conversationId: chat.id,
      recvId: chat.peerId,
      groupId: chat.groupId,
      msgType,
      content,
      mentions: [...mentions],
      replyTo,
      extra,
      createdAt: Math.round(now),
      wasSent: false,
      error: null,
    });
    this._changed(chat);
    return this._outgoingOf(item);
  }

  /** @param {OutboxItem} item */
  _outgoingOf(item) {
    let outgoing = this._outgoing.get(item.clientMsgId);
    if (!outgoing) {
      outgoing = new OutgoingMessage(item, {
        retry: (id) => this._shell?.retry(id) ?? false,
        cancel: (id) => this._cancel(id),
        stateOf: (conversationId, seq) => this._shell?.engine.chats.get(conversationId)?.stateOf(seq) ?? "saved",
      });
      this._outgoing.set(item.clientMsgId, outgoing);
    }
    return outgoing;
  }

  /** @param {string} clientMsgId */
  _cancel(clientMsgId) {
    const outgoing = this._outgoing.get(clientMsgId);
    if (!outgoing || !this._shell?.cancel(clientMsgId)) return false;
    this._outgoing.delete(clientMsgId);
    outgoing._cancelled();
    this._changed(this._shell.engine.chat(outgoing.conversationId));
    this._emit("outgoing", outgoing);
    return true;
  }

  /** @param {OutboxItem} item @param {boolean} isAccepted */
  _itemChanged(item, isAccepted) {
    const outgoing = this._outgoingOf(item);
    outgoing._update(item, isAccepted);
    if (this._shell) this._changed(this._shell.engine.chat(item.conversationId));
    this._emit("outgoing", outgoing);
  }

  /** @param {OutboxItem} item @param {PlacedMessage} message */
  _itemSaved(item, message) {
    const outgoing = this._outgoingOf(item);
    outgoing._saved(message);
    this._emit("outgoing", outgoing);
  }

  /** @param {string} conversationId */
  _pendingOf(conversationId) {
    const engine = this._shell?.engine;
    const ahead = [...(engine?.savedAhead.values() ?? [])].filter((item) => item.conversationId === conversationId);
    const items = [...ahead, ...(engine?.outbox.itemsOf(conversationId) ?? [])];
    return items.map((item) => this._outgoingOf(item)).sort((one, other) => (one.order < other.order ? -1 : 1));
  }

  // -- inside: what conversations need ----------------------------------------------------------------------

  /** @param {string} conversationId */
  _typistsIn(conversationId) {
    return this._shell?.engine.typists.in(conversationId) ?? [];
  }

  /** @param {Chat} chat @param {number} seq */
  _markRead(chat, seq) {
    this._shell?.drive((engine) => engine.markRead(chat, seq));
  }

  /** @param {Chat} chat */
  _touch(chat) {
    this._shell?.engine.touch(chat);
  }

  /** Only while signed in: it is not kept. @param {object} frame */
  _sendFrame(frame) {
    const shell = this._shell;
    if (shell?.engine.link.isReady) shell.sendNow(frame);
  }

  _now() {
    return this._clock();
  }

  /** @param {any[]} rows of the API */
  _applyRows(rows) {
    this._listing?.apply(rows);
  }

  _needShell() {
    if (!this._shell) throw new NexoError("unauthorized", "Sign in first");
    return this._shell;
  }
}

function random() {
  const crypto = globalThis.crypto;
  if (!crypto?.getRandomValues) return Math.random();
  return /** @type {number} */ (crypto.getRandomValues(new Uint32Array(1))[0]) / 2 ** 32;
}

/**
 * @param {string} url
 * @param {(error: unknown) => void} failed
 */
function defaultStorage(url, failed) {
  if (!globalThis.indexedDB) return new MemoryStorage();
  const name = `nexo ${new URL(url, globalThis.location?.href).href}`;
  return new FallbackStorage(new IndexedDbStorage(name), failed);
}
