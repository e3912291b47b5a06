/**
 * The unsent text of each conversation, and what it answers. It survives reloads, all tabs of this browser show the same,
 * and the server brings it to the user's other devices. What was written here and has not reached the server yet wins.
 */

import { Emitter } from "./emitter.js";
import { forgetAll, remember, remembered } from "./prefs.js";

const TELL_AFTER_MS = 1500;
const CLEAR_AFTER_MS = 200;
const TEXT_MAX = 4096;

export class Drafts extends Emitter {
  #user;
  #client;
  /** Conversations whose draft is to be sent to the server. @type {Map<string, number>} */
  #timers = new Map();
  /** What could not be sent. @type {Set<string>} */
  #unsent = new Set();
  /** What the server had when it was last looked at. @type {Map<string, string>} */
  #seen = new Map();
  #stored = (event) => this.#otherTab(event);
  #hidden = () => document.hidden && this.tellAll();

  /** @param {string} userId @param {any} client */
  constructor(userId, client) {
    super();
    this.#user = userId;
    this.#client = client;
    window.addEventListener("storage", this.#stored);
    document.addEventListener("visibilitychange", this.#hidden);
  }

  stop() {
    window.removeEventListener("storage", this.#stored);
    document.removeEventListener("visibilitychange", this.#hidden);
    this.tellAll();
  }

  /** @param {string} conversationId @returns {string} */
  text(conversationId) {
    return remembered(this.#key("draft", conversationId)) ?? "";
  }

  /** @param {string} conversationId @param {string} text */
  setText(conversationId, text) {
    const kept = text.trim() ? text : "";
    if (kept === this.text(conversationId)) return;
    remember(this.#key("draft", conversationId), kept || null);
    this.#tellSoon(conversationId, kept ? TELL_AFTER_MS : CLEAR_AFTER_MS);
  }

  /** What the draft answers: as much of that message as a quote needs. @param {string} conversationId */
  reply(conversationId) {
    return remembered(this.#key("reply", conversationId));
  }

  /** @param {string} conversationId @param {any} message */
  setReply(conversationId, message) {
    this.#keepReply(conversationId, message);
    this.#tellSoon(conversationId);
  }

  #keepReply(conversationId, message) {
    const kept = message && {
      serverMsgId: message.serverMsgId,
      senderId: message.senderId,
      msgType: message.msgType,
      content: typeof message.content === "string" ? message.content.slice(0, 200) : { name: message.content?.name, text: message.content?.text?.slice(0, 200) },
    };
    remember(this.#key("reply", conversationId), kept ?? null);
  }

  forget() {
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
    for (const kind of ["draft", "reply", "synced"]) forgetAll(`${kind}.${this.#user}.`);
  }

  #key(kind, conversationId) {
    return `${kind}.${this.#user}.${conversationId}`;
  }

  // -- other tabs ------------------------------------------------------------------------------------------

  #otherTab({ key }) {
    const found = /^nexo\.(draft|reply)\.(.*)$/.exec(key ?? "");
    if (!found?.[2].startsWith(`${this.#user}.`)) return;
    this.emit("change", found[2].slice(this.#user.length + 1));
  }

  // -- other devices ---------------------------------------------------------------------------------------

  /** What the server has, or what this browser sent last. @param {string} conversationId */
  #sent(conversationId) {
    return remembered(this.#key("synced", conversationId)) ?? "";
  }

  #own(conversationId) {
    const text = this.text(conversationId);
    const replyTo = this.reply(conversationId)?.serverMsgId ?? null;
    return text || replyTo ? JSON.stringify([text, replyTo]) : "";
  }

  /** Takes over what another device has written. @param {any[]} conversations */
  adopt(conversations) {
    for (const conversation of conversations) {
      const { id, draft } = conversation;
      const given = draft && (draft.text || draft.replyTo) ? JSON.stringify([draft.text ?? "", draft.replyTo ?? null]) : "";
      if ((this.#seen.get(id) ?? null) === given) continue;
      this.#seen.set(id, given);
      const synced = this.#sent(id);
      if (given === synced) continue;
      if (this.#own(id) !== synced || this.#timers.has(id)) {
        this.#tellSoon(id); // it was changed here as well
        continue;
      }
      remember(this.#key("synced", id), given || null);
      remember(this.#key("draft", id), draft?.text || null);
      this.#keepReply(id, draft?.replyTo ? { serverMsgId: draft.replyTo } : null);
      this.known(conversation);
      this.emit("change", id);
    }
  }

  /** Another device named what is answered only by its id: its words, once they are here. @param {any} conversation */
  known(conversation) {
    const reply = this.reply(conversation.id);
    if (!reply || reply.senderId) return reply;
    const message = conversation.messages.find(({ serverMsgId }) => serverMsgId === reply.serverMsgId);
    if (message) this.#keepReply(conversation.id, message);
    return message ? this.reply(conversation.id) : reply;
  }

  #tellSoon(conversationId, ms = TELL_AFTER_MS) {
    clearTimeout(this.#timers.get(conversationId));
    this.#timers.set(conversationId, window.setTimeout(() => this.#tell(conversationId), ms));
  }

  /** There is a connection again. */
  retell() {
    const ids = [...this.#unsent];
    this.#unsent.clear();
    for (const id of ids) this.#tellSoon(id);
  }

  /** The page may be gone in a moment. */
  tellAll() {
    for (const id of [...this.#timers.keys()]) this.#tell(id);
  }

  async #tell(conversationId) {
    clearTimeout(this.#timers.get(conversationId));
    this.#timers.delete(conversationId);
    const own = this.#own(conversationId);
    const text = this.text(conversationId);
    if (own === this.#sent(conversationId) || text.length > TEXT_MAX) return;
    const before = this.#sent(conversationId);
    remember(this.#key("synced", conversationId), own || null);
    try {
      const draft = own ? { text, replyTo: this.reply(conversationId)?.serverMsgId ?? null } : null;
      await this.#client.conversation(conversationId).update({ draft });
    } catch {
      remember(this.#key("synced", conversationId), before || null);
      this.#unsent.add(conversationId);
    }
  }
}
