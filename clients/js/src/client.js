// The client: accounts, the connection, conversations, events. What it does with frames is in core/engine.js.

import { Calls } from "./calls.js";
import { Account } from "./account.js";
import { camel, snake } from "./camel-case.js";
import { Contacts } from "./contacts.js";
import { ConversationList } from "./conversation-list.js";
import { ConversationViews } from "./conversation-views.js";
import { MessageIds, groupConversationId, singleConversationId } from "./core/ids.js";
import { filePath } from "./core/messages.js";
import { withDefaults } from "./core/options.js";
import { newItem } from "./core/outbox.js";
import { Devices, Push } from "./devices.js";
import { Driver } from "./driver.js";
import { Emitter } from "./emitter.js";
import { NexoError } from "./errors.js";
import { EVENT_NAMES, namedEvent } from "./events.js";
import { Groups } from "./groups.js";
import { Http } from "./http.js";
import { InboxStream } from "./inbox-stream.js";
import { Locks } from "./locks.js";
import { MessageCalls } from "./message-calls.js";
import { watchNetwork } from "./network.js";
import { OutgoingMessages } from "./outgoing-message.js";
import { Presence } from "./presence.js";
import { random } from "./random.js";
import { RepeatedCalls } from "./repeated-calls.js";
import { Sessions } from "./sessions.js";
import { defaultStorage } from "./storage/fallback.js";
import { TokenRefresh } from "./token-refresh.js";
import { Users } from "./users.js";

/** @import { Conversation } from "./conversation.js" */
/** @import { ConversationState } from "./core/conversation-state.js" */
/** @import { ClientOptions } from "./core/options.js" */
/** @import { ClientEvents } from "./events.js" */
/** @import { OutgoingMessage } from "./outgoing-message.js" */
/** @import { ConversationOrId, MessageOrId } from "./message-calls.js" */
/** @import { Forwarded, SearchPage, SendOptions, Session, State, StateChange, Storage, User } from "./types.js" */

/** @extends {Emitter<ClientEvents>} */
export class NexoClient extends Emitter {
  /** @param {ClientOptions} options */
  constructor(options) {
    super(EVENT_NAMES);
    const { url, storage, deviceId, platformId = 5, getToken } = options;
    const { WebSocket = globalThis.WebSocket, fetch = globalThis.fetch } = options;
    this._options = withDefaults(options);
    // monotonic: a change of the system clock does not affect it
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
      getToken,
      clock: this._clock,
      makeId: () => this._ids.next(this._clock()),
      changed: (session) => this._sessionChanged(session),
    });
    /** @type {Driver | null} */
    this._driver = null;
    this._views = new ConversationViews(this, () => this._driver?.engine.conversations.values() ?? []);
    this._outgoing = new OutgoingMessages(() => this._driver, (outgoing) => this._outgoingChanged(outgoing));
    /** @type {ConversationList | null} */
    this._conversationList = null;
    this._tokenRefresh = new TokenRefresh(this._sessions, this._clock, random, (reason) => {
      this._driver?.drive((engine) => engine.connection.end(reason));
    });
    this._instanceId = this._ids.next(this._clock());
    this._isStarted = false;
    this._unwatch = () => {};
    /** @type {InboxStream | null} */
    this._inbox = null;
    const call = this.call.bind(this);
    this.users = new Users(call);
    this.contacts = new Contacts(call);
    this.groups = new Groups(call);
    this.calls = new Calls({
      send: (frame) => this._sendFrame(frame),
      call,
      makeId: () => this._ids.next(this._clock()),
    });
    this.devices = new Devices(call);
    this.push = new Push(call);
    this.account = new Account({ call, download: (path) => this._download(path), forget: () => this._forgetAll() });
    this._repeated = new RepeatedCalls(this._options);
    this._messageCalls = new MessageCalls(call, this._repeated, () => this._ids.next(this._clock()), () => this._needDriver().userId);
    /** Conversations whose deletions are being loaded. @type {Set<ConversationState>} */
    this._loadingDeleted = new Set();
    this.presence = new Presence((userIds) => this._driver?.drive((engine) => engine.watchPresence(userIds)));
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
   * @param {{userId?: string, password: string, nickname?: string, avatar?: string, extra?: any, code?: string}} account
   * @returns {Promise<User>}
   */
  async register(account) {
    return camel(await this._http.call("POST", "/user/register", snake(account)));
  }

  /** @param {{userId: string, password: string}} credentials */
  async login({ userId, password }) {
    if (this._driver && this._driver.userId !== userId) await this._leave();
    return this._begin(await this._sessions.login(userId, password));
  }

  /**
   * Continues a saved session, or the one in the storage. With `expectUser`, a session of another user is not continued but
   * deleted from the storage.
   * @param {{session?: Session, expectUser?: string} | Session} [options]
   * @returns {Promise<boolean>} whether there was one
   */
  async restore(options) {
    const { session, expectUser } = options && "accessToken" in options ? { session: options } : (options ?? {});
    const userId = expectUser ?? session?.userId;
    if (userId !== undefined && this._driver && this._driver.userId !== userId) {
      await this._leave();
      await this._sessions.forget();
    }
    const found = await this._sessions.restore(session, expectUser);
    if (found) await this._begin(found);
    return found !== null;
  }

  /** All other sessions of the user end. @param {{oldPassword: string, newPassword: string}} change */
  async changePassword({ oldPassword, newPassword }) {
    const params = { old_password: oldPassword, new_password: newPassword };
    await this._sessions.replace(await this.call("POST", "/auth/password", params));
  }

  /** Ends the session on the server, and deletes everything stored of the user. */
  async logout() {
    await this.call("POST", "/auth/logout", {}).catch(() => {}); // not reached: the session expires
    await this._forgetAll();
  }

  async _forgetAll() {
    const driver = this._driver;
    await this.close();
    await driver?.wipe();
    this._forgetUser();
    await this._sessions.forget();
  }

  // -- connection -------------------------------------------------------------------------------------------

  /** @returns {State} */
  get state() {
    return this._driver?.engine.state ?? "offline";
  }

  /** `{state, reason, retryAt}`, as the event has it. @returns {StateChange} */
  get stateChange() {
    return this._driver?.engine.stateChange ?? { state: "offline", reason: null, retryAt: null };
  }

  /**
   * Connects, and stays connected. Resolves when everything that was missed is here for the first time. Without a session it
   * signs in by `getToken`, if there is one, or else continues the stored session.
   * @returns {Promise<void>}
   */
  async connect() {
    if (!this._WebSocket) throw new NexoError("no_websocket", "There is none here: pass a class as the option WebSocket");
    if (!this.session && this._sessions.canAsk) await this._begin(await this._sessions.ask());
    else if (!this.session && !(await this.restore())) throw new NexoError("unauthorized", "Sign in first");
    const driver = this._needDriver();
    driver.engine.inbox.holdsUnhandled = this._hasInbox;
    if (!this._isStarted) {
      this._unwatch = watchNetwork((react) => this._driver?.drive((engine) => react(engine.connection)), this._clock);
    }
    this._isStarted = true;
    const online = this._whenOnline();
    await driver.start();
    return online;
  }

  /**
   * Resolves when everything that was sent is saved. Rejects with the error of a message that failed, with the reason when the
   * client is closed, or with `timeout`.
   * @param {number} [timeoutMs]
   */
  flush(timeoutMs = 30_000) {
    return this._outgoing.flush(timeoutMs, () => {
      if (this.state === "closed") throw new NexoError(this.stateChange.reason ?? "closed");
      if (!this._isStarted) throw new NexoError("offline", "connect() first");
    });
  }

  /**
   * Disconnects. What the server has not saved stays in the outbox; `connect` continues with it.
   * @returns {Promise<OutgoingMessage[]>} what the server has not saved
   */
  async close() {
    this._isStarted = false;
    this._unwatch();
    this._tokenRefresh.stop();
    this._repeated.stop();
    this._conversationList?.stop();
    await this._driver?.stop();
    this._endStreams();
    await this.storage.close?.();
    this._outgoing.wake();
    return this._outgoing.unsent;
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
    return this._views.list;
  }

  get totalUnread() {
    return this.conversations.reduce((sum, conversation) => sum + conversation.unread, 0);
  }

  /** The messages that were sent and are not saved yet, in order. @returns {OutgoingMessage[]} */
  get pending() {
    return this._outgoing.all;
  }

  /** @param {string} conversationId */
  conversation(conversationId) {
    return this._views.of(this._needDriver().engine.conversation(conversationId));
  }

  /** @param {string} userId */
  chatWith(userId) {
    return this.conversation(singleConversationId(this._needDriver().userId, userId));
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
    this._needDriver();
    return this._conversationList?.more(limit) ?? false;
  }

  // -- messages ---------------------------------------------------------------------------------------------

  /**
   * Sends copies of messages to other conversations, or with `merge` one message that holds them. Tried until the server has
   * answered. At most 100 messages and 20 targets, and 200 copies.
   * @param {readonly MessageOrId[]} messages
   * @param {readonly ConversationOrId[]} targets
   * @param {{merge?: boolean, title?: string, clientMsgId?: string}} [options]
   * @returns {Promise<Forwarded[]>} one for each target
   */
  forward(messages, targets, options = {}) {
    return this._messageCalls.forward(messages, targets, options);
  }

  /**
   * Searches all conversations or one, newest first.
   * @param {string} q
   * @param {{conversationId?: string, senderId?: string, msgType?: number, after?: number, before?: number, limit?: number, cursor?: string}} [options]
   * @returns {Promise<SearchPage>}
   */
  search(q, options = {}) {
    return this._messageCalls.search(q, options);
  }

  /** Puts a message before the moderators. @param {MessageOrId} message @param {string} reason @returns {Promise<string>} the id of the report */
  report(message, reason) {
    return this._messageCalls.report(message, reason);
  }

  // -- events ------------------------------------------------------------------------------------------------

  /**
   * The events of these names from now on, for `for await`: until `close`, or until the server ends the session, which throws
   * the error with its reason.
   * @param {(keyof ClientEvents)[]} names
   */
  events(...names) {
    if (names.length === 0) throw new NexoError("unknown_event", "Name at least one event");
    return this._stream(names, namedEvent);
  }

  /**
   * The messages of other users for `for await`, to be called before `connect`. What is not handled when the process ends is
   * received again by the next one with the same storage. It ends as `events` do.
   */
  inbox() {
    if (this._hasInbox) throw new NexoError("inbox_in_use", "The client has an inbox already");
    if (this._driver) this._driver.engine.inbox.holdsUnhandled = true;
    const stream = this._stream(["message"], (_, event) => event);
    for (const event of this._inbox?.takeUnhandled() ?? []) stream.put(event);
    this._inbox = new InboxStream(
      stream,
      (id, seq) => this._driver?.drive(({ inbox }) => inbox.handled(this._clock(), inbox.conversation(id), seq)),
      async (id) => this._driver?.keepBaseline(id),
      async () => this._driver?.storeBaselines(),
    );
    return this._inbox;
  }

  get _hasInbox() {
    return this._inbox !== null && !this._inbox.isOver;
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
      const isRefused = error instanceof NexoError && error.reason === "token_expired";
      if (!isRefused && !(this._sessions.canAsk && Sessions.isOver(error))) throw error;
      const { accessToken } = await this._sessions.refresh(session);
      return this._http.call(method, path, params, accessToken);
    }
  }

  /**
   * The address of a message's file, or of a smaller picture of it, which needs no token for an hour or two; null when there
   * is none.
   * @param {import("./types.js").Message} message
   * @param {"" | "small" | "medium"} [preview]
   */
  fileUrl(message, preview = "") {
    const path = filePath(message, preview);
    return path?.startsWith("/") ? this._http.url + path : path;
  }

  /** @type {import("./uploads.js").RawCall} */
  _callRaw(method, path, headers, body) {
    const all = { "Tus-Resumable": "1.0.0", ...headers };
    return this._signed((authorization) => this._http.callRaw(method, path, { ...all, ...authorization }, body));
  }

  /** @param {string} path */
  _download(path) {
    return this._signed((authorization) => this._http.download(path, authorization));
  }

  /**
   * @template R
   * @param {(authorization: {Authorization: string}) => Promise<R>} request
   * @returns {Promise<R>}
   */
  async _signed(request) {
    const session = this.session;
    if (!session) throw new NexoError("unauthorized", "Sign in first");
    try {
      return await request({ Authorization: `Bearer ${session.accessToken}` });
    } catch (error) {
      if (!(error instanceof NexoError) || error.status !== 401) throw error; // an answer to HEAD has no reason
      const { accessToken } = await this._sessions.refresh(session);
      return request({ Authorization: `Bearer ${accessToken}` });
    }
  }

  // -- inside: the session ----------------------------------------------------------------------------------

  /** @param {Session} session */
  async _begin(session) {
    if (this._driver?.userId === session.userId) return session;
    await this._leave();
    const around = {
      storage: this.storage,
      locks: this._locks,
      socketUrl: this._http.socketUrl,
      WebSocket: this._WebSocket,
      clock: this._clock,
      instanceId: this._instanceId,
    };
    this._driver = new Driver(session.userId, this._driverHost(), around, this._options);
    this._conversationList = new ConversationList(this.call.bind(this), this._driver, this._clock, (error) => this._failed(error));
    this._driver.engine.connection.canAskForToken = this._sessions.canAsk;
    this._driver.engine.inbox.holdsUnhandled = this._hasInbox;
    if (this.presence.watched.length > 0) this._driver.engine.watchPresence(this.presence.watched);
    await this._driver.loaded.catch(() => {});
    return session;
  }

  async _leave() {
    if (!this._driver) return;
    await this.close();
    this._forgetUser();
  }

  _forgetUser() {
    this._driver?.abandon();
    this._driver = null;
    this._conversationList?.stop();
    this._conversationList = null;
    this._views.clear();
    this._outgoing.clear();
    this.calls._clear("closed");
    if (!this._hasInbox) this._inbox = null;
    this._emit("conversations", []);
  }

  /** @returns {import("./driver.js").DriverHost} */
  _driverHost() {
    return {
      emit: (name, payload) => this._pass(name, payload),
      changed: (state) => this._views.changed(state),
      itemChanged: (item, isAccepted) => this._outgoing.changed(item, isAccepted),
      itemSaved: (item, message) => this._outgoing.saved(item, message),
      itemGiven: (clientMsgId) => this._outgoing.given(clientMsgId),
      session: () => this.session,
      prepareToken: (isExpired) => this._prepareToken(isExpired),
      ended: (reason, forgetSession) => void this._ended(reason, forgetSession),
      loadList: () => this._conversationList?.reload(),
      loadDeleted: (state) => void this._loadDeleted(state),
      callRaw: (method, path, headers, body) => this._callRaw(method, path, headers, body),
      failed: (error) => this._failed(error),
    };
  }

  /** @param {Session | null} session */
  _sessionChanged(session) {
    if (session) this._sendFrame({ type: "REAUTH", token: session.accessToken });
    if (session && this._isStarted) this._tokenRefresh.start();
    else this._tokenRefresh.stop();
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
        // the old token may still be valid
        if (isExpired || !(error instanceof NexoError) || !error.isTransient) throw error;
      }
    }
    if (this._isStarted) this._tokenRefresh.start();
  }

  /** @param {string} reason @param {boolean} forgetSession */
  async _ended(reason, forgetSession) {
    if (reason === "kicked" || reason === "replaced") this._emit("kicked", { reason });
    this._tokenRefresh.stop();
    this._conversationList?.stop();
    if (forgetSession) await this._sessions.forgetIfStored();
    if (this.state === "closed") this._endStreams(new NexoError(reason));
  }

  // -- inside: events ---------------------------------------------------------------------------------------

  /** @param {string} name @param {any} payload */
  _pass(name, payload) {
    if (name === "error") return this._failed(new NexoError(payload.reason, payload.detail, payload));
    if (name === "call") return this.calls._receive(payload);
    if (name === "state") this._outgoing.wake();
    if (name === "state" && payload.state === "online") this.calls._online();
    if (name === "state" && payload.state === "online") this._repeated.wake();
    if (name === "presence") this.presence._learn(payload.users);
    if (payload?.conversation) {
      const conversation = this._views.of(payload.conversation);
      conversation._invalidate();
      payload = { ...payload, conversation };
      if (payload.message) this.calls._learn(payload.message);
    }
    this._emit(/** @type {keyof ClientEvents} */ (name), payload);
  }

  /** @param {unknown} error */
  _failed(error) {
    this._emit("error", error instanceof NexoError ? error : new NexoError("internal", String(error)));
  }

  /** @override @param {unknown} error */
  _handlerFailed(error) {
    if ((this._handlers.get("error")?.size ?? 0) === 0) super._handlerFailed(error);
    else this._emit("error", error instanceof NexoError ? error : new NexoError("handler_failed", String(error)));
  }

  /** What the user has deleted on other devices, as far as this one does not know it. @param {ConversationState} state */
  async _loadDeleted(state) {
    if (this._loadingDeleted.has(state)) return;
    this._loadingDeleted.add(state);
    try {
      for (let hasMore = true; hasMore; ) {
        const page = await this._messageCalls.deleted(state.id, state.deletedRev ?? 0);
        const { serverMsgIds, upToSeq, deletedRev } = page;
        state.deletedRev = Math.max(state.deletedRev ?? 0, deletedRev);
        this._driver?.drive(({ inbox }) => inbox.applyDeleted(this._clock(), state, serverMsgIds, upToSeq, deletedRev));
        hasMore = page.hasMore;
      }
    } catch (error) {
      this._failed(error); // the next SYNC names the revision again
    } finally {
      this._loadingDeleted.delete(state);
    }
  }

  // -- inside: sending --------------------------------------------------------------------------------------

  /**
   * @param {ConversationState} state
   * @param {any} content
   * @param {SendOptions} options
   * @param {{upload: import("./types.js").Upload, blob: Blob | null} | null} [file]
   */
  _enqueue(state, content, options, file = null) {
    const driver = this._needDriver();
    const known = options.clientMsgId === undefined ? undefined : this._outgoing.get(options.clientMsgId);
    if (known) return known;
    if (driver.engine.outbox.size >= this._options.maxPending) {
      throw new NexoError("outbox_full", "The outbox holds as many messages as it may");
    }
    const now = this._clock();
    const item = driver.enqueue(newItem(state, content, options, this._ids.next(now), now, file?.upload), file?.blob);
    this._views.changed(state);
    return this._outgoing.of(item);
  }

  /** @param {OutgoingMessage} outgoing */
  _outgoingChanged(outgoing) {
    if (this._driver) this._views.changed(this._driver.engine.conversation(outgoing.conversationId));
    this._emit("outgoing", outgoing);
  }

  /** @param {string} conversationId */
  _pendingOf(conversationId) {
    return this._outgoing.in(conversationId);
  }

  // -- inside: what conversations need ----------------------------------------------------------------------

  /** @param {string} conversationId */
  _typistsIn(conversationId) {
    return this._driver?.engine.inbox.typists.in(conversationId) ?? [];
  }

  /** @param {ConversationState} state @param {number} seq */
  _markRead(state, seq) {
    this._driver?.drive((engine) => engine.markRead(state, seq));
  }

  /** @param {ConversationState} state */
  _touch(state) {
    this._driver?.engine.inbox.touch(state);
  }

  /** Only while signed in: it is not kept. @param {object} frame @returns {boolean} whether it was sent */
  _sendFrame(frame) {
    const driver = this._driver;
    if (!driver?.engine.connection.isReady) return false;
    driver.sendNow(frame);
    return true;
  }

  _now() {
    return this._clock();
  }

  /** @param {any[]} rows of the API */
  _applyRows(rows) {
    this._conversationList?.apply(rows);
  }

  _needDriver() {
    if (!this._driver) throw new NexoError("unauthorized", "Sign in first");
    return this._driver;
  }
}
