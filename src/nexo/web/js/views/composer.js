/** Where messages are written: text, reply, mentions, pictures by address; or why one cannot write here. */

import { MentionList } from "../components/mentions.js";
import { openImageDialog } from "../dialogs/image.js";
import { button, fill, h, icon, iconButton } from "../dom.js";
import { shortName } from "../format.js";
import { t } from "../i18n.js";
import { contentLine, IMAGE, TEXT, whoIs } from "../wording.js";

const GROWS = CSS.supports("field-sizing", "content"); // else it grows by the lines that are typed
const ROWS_MAX = 7;
const TEXT_MAX = 4096;
const COUNTER_FROM = 3900;
const TYPING_EVERY_MS = 3000;
const TYPING_ENDS_MS = 5000;

export class Composer {
  #typingAt = 0;
  #typingEnds = 0;
  /** Whom the draft mentions, by the name that was put in. @type {Map<string, string>} */
  #mentioned = new Map();

  /**
   * @param {any} model @param {any} conversation
   * @param {{onsent: () => void, onup: () => boolean}} hooks
   */
  constructor(model, conversation, hooks) {
    this.model = model;
    this.conversation = conversation;
    this.hooks = hooks;
    this.field = /** @type {HTMLTextAreaElement} */ (h("textarea", { rows: 1, "aria-label": t("message"), maxlength: 20000 }));
    this.field.value = model.drafts.text(conversation.id);
    this.jump = h("div", { class: "jump" });
    this.replying = h("div", { class: "replying" });
    this.sendButton = iconButton("send", t("send"), { class: "send", type: "submit" });
    this.counter = h("span", { class: "num" });
    this.mentions = new MentionList(this.field, () => this.#candidates(), (chosen) => this.#mentioned.set(chosen.userId, chosen.name));
    this.box = h("div", { class: "combox" });
    this.hint = h("div", { class: "hint" }, h("span", null, t("composer_hint")), this.counter);
    this.element = h("form", { class: "composer" }, this.jump, this.mentions.element, this.box, this.hint);
    this.#listen();
    this.update();
  }

  #listen() {
    this.element.addEventListener("submit", (event) => {
      event.preventDefault();
      this.send();
    });
    this.field.addEventListener("input", () => this.#changed());
    this.field.addEventListener("keydown", (event) => this.#key(event));
    this.field.addEventListener("blur", () => setTimeout(() => this.mentions.close(), 100));
    this.field.addEventListener("click", () => this.mentions.update());
  }

  /** Why nothing can be written, or null. */
  get obstacle() {
    const { model, conversation } = this;
    if (conversation.type === "single") return model.blocked.has(conversation.peerId) ? "blocked" : null;
    const { groupId } = conversation;
    const info = model.groups.info(groupId);
    if (info?.status === 1) return "dismissed";
    if (model.groups.hasLeft(groupId)) return "left";
    const me = model.groups.me(groupId);
    const isOn = (until) => until === -1 || until > model.now();
    if (me && isOn(me.mutedUntil)) return "muted";
    if (me?.role === "member" && info && isOn(info.muteUntil)) return "all_muted";
    return null;
  }

  /** Draws it for the present state of things. */
  update() {
    const { obstacle } = this;
    if (obstacle !== this.shownObstacle || !this.box.firstChild) {
      this.shownObstacle = obstacle;
      this.#drawBox(obstacle);
    }
    const name = this.model.face(this.conversation).name;
    this.field.placeholder = t("message_to", { name: this.conversation.type === "group" ? name : shortName(name) });
    this.#drawReply();
    this.#drawState();
  }

  #drawBox(obstacle) {
    const isClosed = obstacle !== null;
    this.hint.hidden = isClosed;
    if (isClosed) {
      const undo = obstacle === "blocked" && button(t("unblock"), { class: "small", onclick: () => this.model.block(this.conversation.peerId, false).catch(() => {}) });
      fill(this.box, h("div", { class: "why" }, icon(obstacle === "blocked" ? "ban" : "speakoff"), h("span", null, t(`composer_${obstacle}`)), undo));
      return;
    }
    const attach = iconButton("attach", t("attach_image"), { onclick: () => this.#attach() });
    const mention = this.conversation.type === "group" && iconButton("at", t("mention_someone"), { onclick: () => this.#startMention() });
    fill(this.box, this.replying, h("div", { class: "rowc" }, attach, this.field, mention, this.sendButton));
  }

  #drawReply() {
    const answered = this.model.drafts.reply(this.conversation.id);
    this.replying.hidden = !answered;
    if (!answered) return fill(this.replying);
    const cancel = iconButton("close", t("cancel_reply"), { onclick: () => this.replyTo(null) }, "s");
    const who = answered.senderId === this.model.userId ? t("reply_to_self") : t("reply_to", { name: whoIs(this.model, answered.senderId) });
    return fill(this.replying, icon("reply", "s"), h("span", { class: "quote" }, h("b", null, who), h("span", null, contentLine(answered))), cancel);
  }

  #drawState() {
    const length = [...this.field.value].length;
    const isTooLong = length > TEXT_MAX;
    this.sendButton.disabled = !this.field.value.trim() || isTooLong;
    this.counter.textContent = length > COUNTER_FROM ? t("n_of_m", { n: length, m: TEXT_MAX }) : "";
    this.counter.classList.toggle("bad", isTooLong);
    this.field.setAttribute("aria-invalid", String(isTooLong));
  }

  #changed() {
    if (!GROWS) this.field.rows = Math.min(ROWS_MAX, this.field.value.split("\n").length);
    this.model.drafts.setText(this.conversation.id, this.field.value);
    if (this.conversation.type === "group") this.mentions.update();
    this.#drawState();
    this.#tellTyping(this.field.value.trim() !== "");
  }

  // -- typing --------------------------------------------------------------------------------------------

  #tellTyping(on) {
    const now = Date.now();
    clearTimeout(this.#typingEnds);
    if (!on) {
      if (this.#typingAt) this.conversation.typing(false);
      this.#typingAt = 0;
      return;
    }
    if (now - this.#typingAt > TYPING_EVERY_MS) {
      this.#typingAt = now;
      this.conversation.typing(true);
    }
    this.#typingEnds = window.setTimeout(() => this.#tellTyping(false), TYPING_ENDS_MS);
  }

  end() {
    this.#tellTyping(false);
  }

  // -- keys ----------------------------------------------------------------------------------------------

  #key(event) {
    if (this.mentions.key(event)) {
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing && event.keyCode !== 229) {
      event.preventDefault();
      this.send();
    } else if (event.key === "ArrowUp" && this.field.value === "") {
      if (this.hooks.onup()) event.preventDefault();
    } else if (event.key === "Escape" && this.model.drafts.reply(this.conversation.id)) {
      event.stopPropagation();
      this.replyTo(null);
    }
  }

  focus() {
    if (this.field.isConnected) this.field.focus({ preventScroll: true });
  }

  // -- what is sent --------------------------------------------------------------------------------------

  /** @param {any | null} message */
  replyTo(message) {
    this.model.drafts.setReply(this.conversation.id, message);
    this.#drawReply();
    this.focus();
  }

  send() {
    const text = this.field.value.trim();
    if (!text || this.sendButton.disabled || this.obstacle) return;
    this.#send(text, { msgType: TEXT, mentions: this.#mentionsIn(text) });
    this.field.value = "";
    this.#mentioned.clear();
    this.#changed();
    this.focus();
  }

  #send(content, options) {
    const answered = this.model.drafts.reply(this.conversation.id);
    this.model.send(this.conversation, content, { ...options, replyTo: answered?.serverMsgId });
    if (answered) this.model.drafts.setReply(this.conversation.id, null);
    this.#drawReply();
    this.hooks.onsent();
  }

  #attach() {
    openImageDialog((content) => this.#send(content, { msgType: IMAGE }));
  }

  // -- mentions ------------------------------------------------------------------------------------------

  #candidates() {
    const { model, conversation } = this;
    const members = model.groups.members(conversation.groupId)?.list ?? [];
    const found = members.filter(({ userId }) => userId !== model.userId).map(({ userId }) => ({ userId, name: model.people.name(userId) }));
    found.sort((a, b) => a.name.localeCompare(b.name));
    if (model.groups.isManager(conversation.groupId)) found.push({ userId: "@all", name: t("everyone") });
    return found;
  }

  /** Those whose name still stands in the text; and those whose user id was typed by hand. */
  #mentionsIn(text) {
    if (this.conversation.type !== "group") return [];
    if (this.model.groups.isManager(this.conversation.groupId) && /(^|\s)@all(\s|$|[.,!?])/.test(text)) return ["@all"];
    const members = this.model.groups.members(this.conversation.groupId)?.byId ?? new Map();
    const ids = new Set();
    for (const [userId, name] of this.#mentioned) if (text.includes(`@${name}`)) ids.add(userId);
    for (const [, userId] of text.matchAll(/@([A-Za-z0-9._@-]{1,64})/g)) if (members.has(userId)) ids.add(userId);
    for (const userId of members.keys()) if (text.includes(`@${this.model.people.name(userId)}`)) ids.add(userId);
    ids.delete(this.model.userId);
    return [...ids].slice(0, 100);
  }

  #startMention() {
    const { field } = this;
    const before = field.value.slice(0, field.selectionStart);
    const gap = before && !/\s$/.test(before) ? " " : "";
    field.focus();
    field.setRangeText(`${gap}@`, field.selectionStart, field.selectionEnd, "end");
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
}
