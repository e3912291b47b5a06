/**
 * What this browser keeps of the newest conversations for its next start: the list and the last messages are drawn before
 * the server has answered, or without it. The only module that reaches inside the SDK: what was kept becomes its state as
 * if the connection had been lost a moment ago, and signing in brings the rest.
 */

import { soon } from "./emitter.js";

const ROWS_MAX = 100;
const CHATS_MAX = 30;
const MESSAGES_MAX = 60;
const SAVE_AFTER_MS = 2000;
const SETTINGS = ["archived", "silentUntil", "markedUnread", "draft", "messageTtlS", "extra"];

export class Recent {
  #timer = 0;
  #ends = [];
  /** What was stored of each conversation, to write only what has changed. */
  #marks = new Map();
  /** Conversations that still show what was kept. */
  #old = new Set();

  /** @param {any} model */
  constructor(model) {
    this.model = model;
    this.storage = model.client.storage;
    this.prefix = `recent/${model.userId}/`;
  }

  /** Puts back what was kept. @returns {Promise<number>} when it was kept; 0: nothing was */
  async load() {
    let found;
    try {
      found = new Map(await this.storage.entries(this.prefix));
    } catch {
      return 0; // storage is closed to this page
    }
    const list = found.get(`${this.prefix}list`);
    if (!list) return 0;
    this.model.groups.putBack(list.groups ?? []);
    this.model.client._driver.drive(({ inbox }) => {
      inbox.applyRows(list.rows);
      for (const row of list.rows) {
        const kept = found.get(this.prefix + row.conversationId);
        const state = inbox.conversation(row.conversationId);
        if (!kept || state.timeline.isPlaced) continue;
        state.deletedRev = kept.deletedRev ?? null;
        state.timeline.learnHead(kept.syncedSeq);
        state.timeline.place(kept.syncedSeq);
        const now = Date.now();
        state.window.reset(kept.messages.filter((one) => !(one.expiresAt && one.expiresAt <= now)), kept.syncedSeq, kept.hasEarlier, true);
        this.#old.add(row.conversationId);
        this.model.client._views.changed(state);
      }
    });
    return list.at;
  }

  /** Keeps it from now on. */
  start() {
    const { model } = this;
    const later = soon(() => {
      if (!this.#timer) this.#timer = window.setTimeout(() => this.save(), SAVE_AFTER_MS);
    });
    const hidden = () => document.hidden && this.save();
    document.addEventListener("visibilitychange", hidden);
    this.#ends.push(
      model.on("list", later),
      model.on("opened", () => this.renew()),
      model.on("listed", () => this.renew()),
      () => document.removeEventListener("visibilitychange", hidden),
    );
  }

  stop() {
    clearTimeout(this.#timer);
    for (const end of this.#ends.splice(0)) end();
  }

  async forget() {
    this.stop();
    await this.clear();
  }

  async clear() {
    this.#marks.clear();
    try {
      for (const [key] of await this.storage.entries(this.prefix)) await this.storage.delete(key);
    } catch {
      // there was nothing to keep it in
    }
  }

  /** Addresses of files are good for an hour or two: an open conversation that was kept is asked for once more. */
  async renew() {
    const { model } = this;
    if (!model.openId || !model.listLoaded || !this.#old.delete(model.openId)) return;
    const conversation = model.client.conversation(model.openId);
    const { window: shown } = conversation._state;
    if (!shown.messages.some((message) => message.msgType >= 2 && message.msgType <= 5)) return;
    try {
      const page = await conversation._history(undefined, Math.min(200, shown.messages.length));
      const fresh = new Map(page.messages.map((message) => [message.seq, message]));
      shown.map((message) => fresh.get(message.seq) ?? message);
      model.client._views.changed(conversation._state);
    } catch {
      // pictures that cannot be loaded say so
    }
  }

  /** Only what the server has confirmed: before, it is what was kept already. */
  async save() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    const { model, storage } = this;
    if (!model.listLoaded) return;
    const conversations = model.client.conversations.slice(0, ROWS_MAX);
    const groups = conversations.filter((one) => one.type === "group").map((one) => model.groups.info(one.groupId)).filter(Boolean);
    try {
      await storage.set(`${this.prefix}list`, { at: Date.now(), rows: conversations.map(rowOf), groups });
      const kept = new Set();
      for (const conversation of conversations) {
        if (kept.size >= CHATS_MAX) break;
        if (conversation.messages.length === 0 || conversation.hasLater || !conversation._state.timeline.isPlaced) continue;
        kept.add(conversation.id);
        const { syncedSeq, messages, readSeq } = conversation;
        const mark = [syncedSeq, messages.length, readSeq].join();
        if (this.#marks.get(conversation.id) === mark) continue;
        const shown = messages.filter((message) => message.seq !== null && !message.provisional);
        const last = shown.slice(-MESSAGES_MAX);
        const hasEarlier = conversation.hasEarlier || last.length < shown.length;
        await storage.set(this.prefix + conversation.id, { syncedSeq, hasEarlier, messages: last, deletedRev: conversation._state.deletedRev });
        this.#marks.set(conversation.id, mark);
      }
      for (const id of [...this.#marks.keys()].filter((one) => !kept.has(one))) {
        this.#marks.delete(id);
        await storage.delete(this.prefix + id);
      }
    } catch {
      // full or closed: the next start begins empty
    }
  }
}

/** As the list of the server has it. */
function rowOf(conversation) {
  const { id, pinned, recvMsgOpt, minSeq, readSeq, headSeq, unread, unreadMentions, peerReadSeq, peerDeliveredSeq, updatedAt, lastMessage } = conversation;
  const row = { conversationId: id, pinned, recvMsgOpt, minSeq, readSeq, headSeq, unread, unreadMentions, peerReadSeq, peerDeliveredSeq, updatedAt, lastMessage };
  for (const name of SETTINGS) if (conversation[name] !== undefined) row[name] = conversation[name];
  row.deletedRev = conversation._state.deletedRev ?? 0;
  return row;
}
