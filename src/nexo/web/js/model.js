/** What the page knows, between the SDK and the views: who is signed in, names, groups, connection, what is open. */

import { Attachments } from "./attachments.js";
import { ContactBook } from "./contacts.js";
import { Drafts } from "./drafts.js";
import { Emitter, soon } from "./emitter.js";
import { lastSeenText } from "./format.js";
import { GroupBook } from "./groupbook.js";
import { t } from "./i18n.js";
import { LastSeen } from "./lastseen.js";
import { People } from "./people.js";
import { GroupReceipts } from "./receipts.js";

const PRESENCE_MAX = 100;
const PRESENCE_AFTER_MS = 300;
const SENT_TEXTS_MAX = 200;

export class Model extends Emitter {
  /** The conversation that is open, by its id. @type {string | null} */
  openId = null;
  connection = { state: "offline", reason: null, retryAt: null };
  /** Since when it has not been connected. */
  downSince = Date.now();
  /** When the server announced its stop; 0 once it is back. */
  restartingAt = 0;
  blocked = new Set();
  receipts = new GroupReceipts();
  listLoaded = false;
  /** When what is shown was kept by this browser; 0 once the server has confirmed it, or when nothing was. */
  keptAt = 0;
  #skewMs = 0;
  #sentTexts = new Map();
  #filtered = new Set();
  #withdrawn = new Map();
  #wanted = [];
  #presenceTimer = 0;
  #listChanged = soon(() => this.emit("list"));
  /** @type {(() => void)[]} */
  #ends = [];

  /** @param {any} client @param {any} settings the settings of the server */
  constructor(client, settings) {
    super();
    this.client = client;
    this.settings = settings;
    this.userId = client.userId;
    this.people = new People(client, this.userId);
    this.groups = new GroupBook(client, this.people, (groupId) => this.openId === `sg_${groupId}`);
    this.drafts = new Drafts(this.userId, client);
    this.contacts = new ContactBook(this);
    this.attachments = new Attachments(this);
    this.seen = new LastSeen(client, () => this.emit("presence"));
    this.#listen();
  }

  #listen() {
    const { client } = this;
    const on = (name, fn) => this.#ends.push(client.on(name, fn));
    on("state", (state) => this.#stateChanged(state));
    on("conversations", this.#listChanged);
    on("receipt", ({ type, userId, seq, conversation }) => {
      if (conversation.type === "group") this.receipts.advance(conversation.id, userId, type, seq);
      this.emit("receipt", conversation.id);
    });
    on("sent", ({ message }) => this.#sent(message));
    on("presence", (news) => {
      for (const { userId } of news.users) this.seen.forget(userId);
      this.emit("presence");
      this.#listChanged();
    });
    on("typing", () => this.#listChanged());
    on("withdrawn", ({ serverMsgId, conversation }) => {
      this.#withdrawn.set(conversation.id, [...(this.#withdrawn.get(conversation.id) ?? []), serverMsgId]);
      this.emit("withdrawn", conversation.id);
    });
    on("conversations", soon(() => this.drafts.adopt(client.conversations)));
    on("settings", ({ conversation }) => {
      this.drafts.adopt([conversation]);
      this.#listChanged();
    });
    this.#ends.push(this.people.on("change", this.#listChanged), this.groups.on("change", this.#listChanged), this.drafts.on("change", this.#listChanged));
  }

  /** Signs in on the socket and loads what the list needs. Failures show in the connection's state. */
  start() {
    this.client.connect().catch(() => {});
  }

  async #loadBeside() {
    await Promise.allSettled([
      this.groups.loadMine(),
      this.contacts.loadReceived(),
      this.client.users.blocks().then((ids) => {
        this.blocked = new Set(ids);
        this.emit("blocked");
      }),
    ]);
  }

  stop() {
    for (const end of this.#ends.splice(0)) end();
    this.contacts.stop();
    this.attachments.stop();
    this.drafts.stop();
    this.people.stop();
    clearTimeout(this.#presenceTimer);
  }

  // -- the connection ------------------------------------------------------------------------------------

  /** Whether this browser and the SDK can call. */
  get mayCall() {
    return this.client.calls !== undefined && "RTCPeerConnection" in window && navigator.mediaDevices !== undefined;
  }

  get isConnected() {
    return this.connection.state === "online" || this.connection.state === "syncing";
  }

  #stateChanged(state) {
    const was = this.isConnected;
    this.connection = state;
    if (this.isConnected && !was) {
      this.#loadBeside();
      this.drafts.retell();
    }
    if (was && !this.isConnected) this.downSince = Date.now();
    if (state.reason === "server_shutdown") this.restartingAt = Date.now();
    if (state.state === "online") this.restartingAt = 0;
    if (state.state === "online") this.#setListed();
    this.emit("connection", state);
    this.#listChanged();
  }

  /**
   * Resolves when all that was missed is here, or `isEnough` of it. Without a connection there is nothing to wait for;
   * only the first one may take `ms`.
   * @param {number} ms @param {() => boolean} isEnough @returns {Promise<void>}
   */
  whenCaughtUp(ms, isEnough) {
    return new Promise((resolve) => {
      let isPatient = !this.listLoaded;
      const check = () => {
        const { state } = this.connection;
        if (state !== "online" && !isEnough() && (isPatient || state === "syncing")) return;
        clearTimeout(timer);
        for (const end of ends) end();
        resolve();
      };
      const timer = setTimeout(() => {
        isPatient = false;
        check();
      }, ms);
      const ends = [this.on("connection", check), this.on("list", check)];
      check();
    });
  }

  #setListed() {
    if (this.listLoaded) return;
    this.listLoaded = true;
    this.keptAt = 0;
    this.emit("listed");
  }

  /** The server's clock, estimated from its last answers. */
  now() {
    return Date.now() + this.#skewMs;
  }

  /** Messages that wait in this browser. */
  get waiting() {
    if (this.client.pending) return this.client.pending.length;
    return this.client.conversations.reduce((sum, conversation) => sum + conversation.pending.length, 0);
  }

  // -- people and conversations --------------------------------------------------------------------------

  get me() {
    return this.people.get(this.userId);
  }

  /** What a conversation is called and looks like. @param {any} conversation */
  face(conversation) {
    if (conversation.type === "group") {
      const info = this.groups.info(conversation.groupId);
      return { id: conversation.groupId, name: info?.name || conversation.groupId, avatar: info?.avatar, isGroup: true, online: false };
    }
    return this.personFace(conversation.peerId);
  }

  /** @param {string} userId */
  personFace(userId) {
    const person = this.people.get(userId);
    return { id: userId, name: person.nickname || userId, avatar: person.avatar, isGroup: false, online: this.isOnline(userId) };
  }

  /** Only a live connection can know. @param {string} userId */
  isOnline(userId) {
    if (!this.isConnected) return false;
    return userId === this.userId || this.client.presence.of(userId)?.online === true;
  }

  /** Online, or when they were; nothing where the server does not tell it. @param {string} userId @returns {string} */
  presenceText(userId) {
    if (!this.isConnected) return "";
    if (this.isOnline(userId)) return t("online");
    const at = this.seen.of(userId);
    return at > 0 ? lastSeenText(at, this.now()) : t("offline");
  }

  /** What someone is called in a group. @param {string} groupId @param {string} userId */
  nameIn(groupId, userId) {
    return this.groups.members(groupId)?.byId.get(userId)?.groupNickname || this.people.name(userId);
  }

  /** Whose presence the page shows now; the first ones count when there are too many. @param {string[]} userIds */
  watch(userIds) {
    this.#wanted = userIds;
    if (this.#presenceTimer) return;
    this.#presenceTimer = window.setTimeout(() => {
      this.#presenceTimer = 0;
      const unique = [...new Set(this.#wanted)].filter((id) => id !== this.userId).slice(0, PRESENCE_MAX);
      const key = [...unique].sort().join(" ");
      if (key === this.watched) return;
      const gone = (this.watched ?? "").split(" ").filter((id) => id && !unique.includes(id));
      this.watched = key;
      if (gone.length) this.client.presence.unsubscribe(gone);
      if (unique.length) this.client.presence.subscribe(unique);
    }, PRESENCE_AFTER_MS);
  }

  // -- sending -------------------------------------------------------------------------------------------

  /** @param {any} conversation @param {any} content @param {any} options */
  send(conversation, content, options = {}) {
    const sent = conversation.send(content, options);
    if (typeof content === "string") {
      this.#sentTexts.set(sent.clientMsgId, content);
      if (this.#sentTexts.size > SENT_TEXTS_MAX) this.#sentTexts.delete(this.#sentTexts.keys().next().value);
    }
    return sent;
  }

  #sent(message) {
    this.#skewMs = message.sendAt - Date.now();
    const text = this.#sentTexts.get(message.clientMsgId);
    this.#sentTexts.delete(message.clientMsgId);
    if (text !== undefined && text !== message.content && message.status === 0) this.#filtered.add(message.clientMsgId);
  }

  /** How far an own message has come: as the SDK knows, or as this page asked. @param {any} conversation @param {any} message */
  stateOf(conversation, message) {
    const known = conversation.stateOf(message) ?? "saved";
    if (conversation.type === "single" || known === "read" || message.seq === null) return known;
    const asked = this.receipts.state(conversation.id, message.seq);
    return asked === "saved" ? known : asked;
  }

  /** The server stored other words than were written. @param {string | null} clientMsgId */
  wasFiltered(clientMsgId) {
    return this.#filtered.has(clientMsgId);
  }

  /** Provisional copies that were taken back. @param {string} conversationId @returns {string[]} */
  withdrawn(conversationId) {
    return this.#withdrawn.get(conversationId) ?? [];
  }

  /** @param {string} userId @param {boolean} on */
  async block(userId, on) {
    const ids = on ? await this.client.users.block(userId) : await this.client.users.unblock(userId);
    this.blocked = new Set(Array.isArray(ids) ? ids : await this.client.users.blocks());
    this.emit("blocked");
  }

  // -- counting ------------------------------------------------------------------------------------------

  /** Unread messages of conversations that are not muted: the number in the title. */
  get unread() {
    return this.client.conversations.reduce((sum, one) => sum + (one.recvMsgOpt === 0 && !((one.silentUntil ?? 0) > Date.now()) ? one.unread : 0), 0);
  }

  /** How many messages that were missed are still to come. */
  get missing() {
    return this.client.conversations.reduce((sum, one) => sum + Math.max(0, one.headSeq - one.syncedSeq), 0);
  }
}
