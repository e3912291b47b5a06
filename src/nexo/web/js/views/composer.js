/** Where messages are written: text, reply, edit, mentions, files, voice; or why one cannot write here. */

import { announce } from "../components/announce.js";
import { EmojiCompletion } from "../components/completion.js";
import { MentionList } from "../components/mentions.js";
import { openMenu } from "../components/menu.js";
import { toast } from "../components/toast.js";
import { button, fill, h, icon, iconButton, pointerIsFine } from "../dom.js";
import { keepChosen } from "../files.js";
import { shortName } from "../format.js";
import { t } from "../i18n.js";
import { remember, remembered } from "../prefs.js";
import { AUDIO, contentLine, errorText, FILE, IMAGE, TEXT, VIDEO, whoIs } from "../wording.js";
import { editLeft } from "./actions.js";
import { pastedFiles } from "./drop.js";
import { openEmoji } from "./emoji.js";
import { formatBar, formatKey, insert, link } from "./formatting.js";
import { mentionable, mentionsIn } from "./mentioning.js";
import { canRecord, Recorder } from "./recorder.js";
import { smile } from "./smileys.js";
import { albumsOf, Tray } from "./tray.js";
import { Typing } from "./typing.js";
import { writeWaveform } from "./voice.js";

const GROWS = CSS.supports("field-sizing", "content"); // else it grows by the lines that are typed
const ROWS_MAX = 7;
const TEXT_MAX = 4096;
const COUNTER_FROM = 3900;
const MIC_REST_MS = 400;

export class Composer {
  #sentAt = 0;
  /** Whom the draft mentions, by the name that was put in. @type {Map<string, string>} */
  #mentioned = new Map();
  /** The message that is being edited. @type {any} */
  #editing = null;
  #isFormatting = remembered("formatting") === true;

  /**
   * @param {any} model @param {any} conversation
   * @param {{onsent: () => void, onup: () => boolean, log: any}} hooks
   */
  constructor(model, conversation, hooks) {
    this.model = model;
    this.conversation = conversation;
    this.hooks = hooks;
    this.typing = new Typing(conversation);
    const isFine = pointerIsFine();
    this.field = /** @type {HTMLTextAreaElement} */ (h("textarea", { rows: 1, "aria-label": t("message"), maxlength: 20000, dir: "auto", enterkeyhint: isFine ? "send" : "enter" }));
    this.field.value = model.drafts.text(conversation.id);
    this.jump = h("div", { class: "jump" });
    this.replying = h("div", { class: "replying" });
    this.sendButton = iconButton("send", t("send"), { class: "send", type: "submit" });
    this.micButton = iconButton("mic", t("record_voice"), { class: "mic" });
    this.counter = h("span", { class: "num" });
    this.long = h("div", { class: "traynote long", role: "status" });
    this.long.hidden = true;
    this.mentions = new MentionList(this.field, () => mentionable(model, conversation), (chosen) => this.#mentioned.set(chosen.userId, chosen.name));
    this.completion = new EmojiCompletion(this.field);
    this.tray = new Tray(model, conversation.id, () => this.#drawState(), () => this.focus());
    this.recorder = new Recorder({
      onchange: () => this.#recording(),
      onsend: (blob, ms, levels) => this.#sendVoice(blob, ms, levels),
      onshort: () => toast(t("hold_to_record")),
    });
    this.format = formatBar(this.field, conversation.type === "group" ? () => this.#startMention() : null);
    this.box = h("div", { class: "combox" });
    this.hintText = h("span", null, isFine ? t("composer_hint") : "");
    this.hint = h("div", { class: "hint" }, this.hintText, this.counter);
    this.element = h("form", { class: "composer" }, this.jump, this.mentions.element, this.completion.element, this.recorder.lock, this.box, this.hint);
    this.#listen();
    this.endDrafts = model.drafts.on("change", (id) => id === conversation.id && this.#drafted());
    this.update();
  }

  /** The text was continued in another tab or on another device. */
  #drafted() {
    const { model, conversation, field } = this;
    const text = model.drafts.text(conversation.id);
    if (!this.#editing && field.value.trim() !== text.trim()) {
      field.value = text;
      this.#grow();
    }
    this.#drawStrip();
    this.#drawState();
  }

  #grow() {
    if (!GROWS) this.field.rows = Math.min(ROWS_MAX, this.field.value.split("\n").length);
  }

  #listen() {
    this.element.addEventListener("submit", (event) => {
      event.preventDefault();
      this.send();
    });
    this.field.addEventListener("input", () => this.#changed());
    this.field.addEventListener("keydown", (event) => this.#key(event));
    this.field.addEventListener("blur", () =>
      setTimeout(() => {
        this.mentions.close();
        this.completion.close();
      }, 100),
    );
    this.field.addEventListener("input", (event) => smile(this.field, /** @type {InputEvent} */ (event)));
    this.field.addEventListener("click", () => this.mentions.update());
    this.field.addEventListener("paste", (event) => this.#pasted(event));
    this.element.addEventListener("keydown", (event) => {
      if (!this.recorder.isOn || !this.recorder.key(event)) return;
      event.preventDefault();
      event.stopPropagation();
    });
    // The field keeps the focus, and so a phone its keyboard.
    this.sendButton.addEventListener("pointerdown", (event) => {
      if (document.activeElement === this.field) event.preventDefault();
    });
    this.recorder.listen(this.micButton, () => Date.now() - this.#sentAt > MIC_REST_MS);
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

  // -- drawing -------------------------------------------------------------------------------------------

  /** Draws it for the present state of things. */
  update() {
    const { obstacle } = this;
    if (obstacle !== this.shownObstacle || !this.box.firstChild) {
      this.shownObstacle = obstacle;
      this.#drawBox(obstacle);
    }
    this.#drawStrip();
    this.#drawState();
  }

  #drawBox(obstacle) {
    const isClosed = obstacle !== null;
    const hadFocus = this.box.contains(document.activeElement);
    this.hint.hidden = isClosed;
    if (isClosed) {
      const undo = obstacle === "blocked" && button(t("unblock"), { class: "small", onclick: () => this.model.block(this.conversation.peerId, false).catch(() => {}) });
      fill(this.box, h("div", { class: "why" }, icon(obstacle === "blocked" ? "ban" : "speakoff"), h("span", null, t(`composer_${obstacle}`)), undo));
      if (hadFocus) /** @type {HTMLElement | null} */ (document.querySelector(".chat h1"))?.focus();
      return;
    }
    const attach = iconButton("attach", t("attach"), { "aria-haspopup": "menu", "aria-expanded": "false", onclick: () => this.#openAttach(attach) });
    this.formatButton = iconButton("format", t("formatting"), { class: "mouse-only", "aria-pressed": String(this.#isFormatting), onclick: () => this.#toggleFormat() });
    const emoji = iconButton("smile", t("emoji"), { "aria-haspopup": "dialog", "aria-expanded": "false", onclick: () => this.#openEmoji(emoji) });
    this.row = h("div", { class: "rowc" }, attach, this.field, this.formatButton, emoji, this.micButton, this.sendButton);
    this.format.hidden = !this.#isFormatting;
    fill(this.box, this.replying, this.tray.element, this.format, this.row, this.recorder.element, this.long);
    this.#recording();
    if (hadFocus) this.focus();
  }

  /** What is answered or edited, above the text. */
  #drawStrip() {
    const { model, conversation, replying } = this;
    const strip = (sign, title, text, close, label) => {
      replying.hidden = false;
      const cancel = iconButton("close", label, { onclick: close }, "s");
      fill(replying, icon(sign, "s"), h("span", { class: "quote" }, h("b", null, title), h("span", { dir: "auto" }, text)), cancel);
    };
    if (this.#editing) {
      const now = conversation.messages.find((one) => one.serverMsgId === this.#editing.serverMsgId);
      if (now && now.status !== 0) this.#editing.isGone = true;
      if (this.#editing.isGone) return strip("alert", t("edit_recalled"), t("edit_recalled_text"), () => this.#stopEditing(), t("close"));
      return strip("edit", t("edit_message"), contentLine(this.#editing), () => this.#stopEditing(), t("stop_editing"));
    }
    const answered = model.drafts.known(conversation);
    replying.hidden = !answered;
    if (!answered) return fill(replying);
    if (!answered.senderId) return strip("reply", t("reply"), "", () => this.replyTo(null), t("cancel_reply"));
    const who = answered.senderId === model.userId ? t("reply_to_self") : t("reply_to", { name: whoIs(model, answered.senderId) });
    return strip("reply", who, contentLine(answered), () => this.replyTo(null), t("cancel_reply"));
  }

  get #length() {
    return [...this.field.value].length;
  }

  #drawState() {
    const length = this.#length;
    const isTooLong = length > TEXT_MAX;
    const isEditing = this.#editing !== null && !this.#editing.isGone;
    const hasText = this.field.value.trim() !== "";
    const canSend = isEditing || hasText || this.tray.ready.length > 0;
    const hadFocus = document.activeElement === this.sendButton || document.activeElement === this.micButton;
    this.sendButton.hidden = !canSend && canRecord();
    this.micButton.hidden = !this.sendButton.hidden;
    this.sendButton.disabled = !canSend || (isEditing && !hasText);
    if (hadFocus && document.activeElement === document.body) this.focus();
    const label = isEditing ? t("save_change") : t("send");
    if (this.sendButton.getAttribute("aria-label") !== label) {
      this.sendButton.setAttribute("aria-label", label);
      this.sendButton.title = label;
      this.sendButton.replaceChildren(icon(isEditing ? "check" : "send"));
    }
    this.counter.textContent = length > COUNTER_FROM && !isTooLong ? t("n_of_m", { n: length, m: TEXT_MAX }) : "";
    this.#drawLong(isTooLong, length, isEditing);
    this.#drawHint();
    this.field.setAttribute("aria-invalid", String(isTooLong));
    const name = this.model.face(this.conversation).name;
    this.field.placeholder = this.tray.isEmpty ? t("message_to", { name: this.conversation.type === "group" ? name : shortName(name) }) : t("add_caption");
  }

  #drawHint() {
    const { tray, recorder } = this;
    const [all, going] = [tray.items.length, tray.ready.length];
    const usual = pointerIsFine() ? t("composer_hint") : "";
    const text = ["locked", "paused", "kept"].includes(recorder.state) ? t("voice_hint") : all > going ? t("tray_hint", { n: going, m: all }) : usual;
    if (this.hintText.textContent !== text) this.hintText.textContent = text;
  }

  #drawLong(isTooLong, length, isEditing) {
    this.long.hidden = !isTooLong;
    if (!isTooLong) return fill(this.long);
    const asFile = !isEditing && h("button", { type: "button", class: "link", onclick: () => this.#sendAsFile() }, t("send_as_text_file"));
    return fill(this.long, h("span", { class: "bad" }, t("n_of_max", { n: length, max: TEXT_MAX })), asFile);
  }

  #changed() {
    this.#grow();
    if (!this.#editing) this.model.drafts.setText(this.conversation.id, this.field.value);
    if (this.conversation.type === "group") this.mentions.update();
    this.completion.update();
    this.#drawState();
    this.typing.tell(this.field.value.trim() !== "" && !this.#editing);
  }

  end() {
    this.typing.tell(false);
    this.recorder.end();
    this.tray.end();
    this.endDrafts();
    this.model.drafts.tellAll();
  }

  // -- keys ----------------------------------------------------------------------------------------------

  #key(event) {
    if (this.mentions.key(event) || this.completion.key(event) || formatKey(event, this.field)) {
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.shiftKey;
    const isComposing = event.isComposing || event.keyCode === 229;
    const entersSend = pointerIsFine() && remembered("enterSends") !== false;
    if (event.key === "Enter" && !isComposing && (event.ctrlKey || event.metaKey || (isPlain && entersSend))) {
      event.preventDefault();
      this.send();
    } else if (event.key === "ArrowUp" && isPlain && this.field.value === "" && !this.#editing) {
      const last = this.#lastEditable();
      if (last) this.edit(last);
      else if (!this.hooks.onup()) return;
      event.preventDefault();
    } else if (event.key === "Escape" && this.#editing) {
      event.stopPropagation();
      this.#stopEditing();
    } else if (event.key === "Escape" && this.model.drafts.reply(this.conversation.id)) {
      event.stopPropagation();
      this.replyTo(null);
    }
  }

  /** The newest own message, if it is the newest of all that can be edited. */
  #lastEditable() {
    const { conversation, model } = this;
    if (conversation.pending.length > 0) return null;
    const last = conversation.messages.findLast((one) => one.senderId === model.userId && one.msgType < 100 && one.status === 0);
    return last && editLeft(model, conversation, last) > 0 ? last : null;
  }

  focus() {
    if (this.field.isConnected) this.field.focus({ preventScroll: true });
  }

  // -- what is sent --------------------------------------------------------------------------------------

  /** @param {any | null} message */
  replyTo(message) {
    this.#stopEditing();
    this.model.drafts.setReply(this.conversation.id, message);
    this.#drawStrip();
    this.focus();
  }

  send() {
    if (this.obstacle) return;
    if (this.#editing && !this.#editing.isGone) {
      this.#saveEdit();
      return;
    }
    const text = this.field.value.trim();
    if (this.#length > TEXT_MAX) {
      announce(t("n_of_max", { n: this.#length, max: TEXT_MAX }), "assertive");
      this.long.querySelector("button")?.focus();
      return;
    }
    const items = this.tray.take();
    if (!text && items.length === 0) return;
    this.#editing = null;
    if (items.length > 0) this.#sendItems(items, text);
    else this.#send(text, { msgType: TEXT, mentions: this.#mentionsIn(text) });
    this.field.value = "";
    this.#mentioned.clear();
    this.#changed();
    this.#sentAt = Date.now();
    this.focus();
  }

  #answered() {
    const answered = this.model.drafts.reply(this.conversation.id);
    if (answered) this.model.drafts.setReply(this.conversation.id, null);
    return answered?.serverMsgId;
  }

  #send(content, options) {
    this.model.send(this.conversation, content, { ...options, replyTo: this.#answered() });
    this.#drawStrip();
    this.hooks.onsent();
  }

  /** Each is a message of its own and goes out when it is uploaded; the text goes with the last one. */
  #sendItems(items, text) {
    const albums = albumsOf(items);
    let replyTo = this.#answered();
    items.forEach((item, at) => {
      const isLast = at === items.length - 1;
      const msgType = !item.isPhoto ? FILE : item.file.type.startsWith("video/") ? VIDEO : IMAGE;
      const options = { msgType, caption: isLast ? text : "", mentions: isLast ? this.#mentionsIn(text) : [], replyTo, extra: albums.get(item) };
      this.#sendItem(item, options);
      replyTo = undefined;
    });
    this.#drawStrip();
    this.hooks.onsent();
  }

  /** What is uploaded already is only named; the rest continues from where it is. */
  #sendItem(item, { caption, ...options }) {
    const known = { width: item.width, height: item.height, duration_ms: item.durationMs };
    if (item.state !== "ready") return this.#sendFile(item.file, { ...options, caption, address: item.address }, known);
    const content = caption ? { file_id: item.fileId, text: caption } : { file_id: item.fileId };
    const outgoing = this.model.send(this.conversation, content, options);
    keepChosen(outgoing.clientMsgId, item.file, { ...known, name: item.name });
    return undefined;
  }

  #sendFile(file, options, known) {
    try {
      const outgoing = this.conversation.sendFile(file, options);
      keepChosen(outgoing.clientMsgId, file, { ...known, name: options.name ?? file.name });
    } catch (error) {
      toast(errorText(error), { bad: true, detail: error?.reason });
    }
  }

  #sendVoice(blob, ms, levels) {
    const ending = blob.type.includes("ogg") ? "ogg" : blob.type.includes("mp4") ? "m4a" : "webm";
    const name = `voice.${ending}`;
    this.#sendFile(blob, { msgType: AUDIO, name, replyTo: this.#answered(), extra: { waveform: writeWaveform(levels), duration_ms: Math.round(ms) } }, { duration_ms: Math.round(ms) });
    this.#sentAt = Date.now();
    this.#drawStrip();
    this.hooks.onsent();
    this.focus();
  }

  #sendAsFile() {
    const file = new File([this.field.value], "message.txt", { type: "text/plain" });
    this.field.value = "";
    this.#changed();
    this.tray.add([file], true);
    this.focus();
  }

  // -- editing -------------------------------------------------------------------------------------------

  /** @param {any} message */
  edit(message) {
    this.#editing = { ...message, isGone: false };
    this.field.value = String(message.content ?? "");
    this.#drawStrip();
    this.#drawState();
    this.focus();
    this.field.setSelectionRange(this.field.value.length, this.field.value.length);
  }

  #stopEditing() {
    if (!this.#editing) return;
    const { isGone } = this.#editing;
    this.#editing = null;
    if (!isGone) this.field.value = this.model.drafts.text(this.conversation.id); // what was being written before
    this.#changed();
    this.#drawStrip();
    this.focus();
  }

  async #saveEdit() {
    const message = this.#editing;
    const text = this.field.value.trim();
    if (!text || this.#length > TEXT_MAX) return;
    if (text === message.content) return this.#stopEditing();
    const mentions = this.#mentionsIn(text);
    this.#stopEditing();
    try {
      await this.conversation.edit(message.serverMsgId, text, this.conversation.type === "group" ? { mentions } : {});
    } catch (error) {
      toast(errorText(error), { bad: true, detail: error?.reason, action: t("edit_again"), act: () => this.#editAgain(message, text) });
    }
    return undefined;
  }

  #editAgain(message, text) {
    this.edit(message);
    this.field.value = text;
    this.#changed();
  }

  // -- files, voice, emoji -------------------------------------------------------------------------------

  /** @param {File[]} files @param {boolean} [asFiles] */
  attach(files, asFiles = false) {
    if (this.obstacle || files.length === 0) return;
    this.#stopEditing();
    this.tray.add(files, asFiles);
    if (pointerIsFine()) this.focus();
  }

  #choose(accept, asFiles, capture = false) {
    const input = /** @type {HTMLInputElement} */ (h("input", { type: "file", accept, multiple: !capture, capture: capture ? "environment" : null, hidden: true, class: "chooser" }));
    input.addEventListener("change", () => {
      this.attach([...(input.files ?? [])], asFiles);
      input.remove();
    });
    this.element.querySelector(".chooser")?.remove();
    this.element.append(input);
    input.click();
  }

  #openAttach(anchor) {
    const isTouch = !pointerIsFine();
    openMenu(anchor, t("attach"), [
      isTouch && { icon: "camera", text: t("camera"), act: () => this.#choose("image/*", false, true) },
      { icon: "image", text: t("photo_or_video"), act: () => this.#choose("image/*,video/*", false) },
      { icon: "file", text: t("file"), act: () => this.#choose("", true) },
      isTouch && this.conversation.type === "group" && { icon: "at", text: t("mention_someone"), act: () => this.#startMention() },
      isTouch && { icon: "format", text: t("formatting"), act: () => this.#toggleFormat() },
    ]);
  }

  #openEmoji(anchor) {
    const back = () => this.focus();
    const { selectionStart, selectionEnd } = this.field;
    let [from, to] = [selectionStart, selectionEnd];
    const put = (emoji) => {
      this.focus();
      this.field.setSelectionRange(from, to);
      insert(this.field, emoji);
      from = to = this.field.selectionStart;
    };
    openEmoji(anchor, put, back, { staysWithShift: true });
  }

  #toggleFormat() {
    this.#isFormatting = !this.#isFormatting;
    remember("formatting", this.#isFormatting || null);
    this.format.hidden = !this.#isFormatting;
    this.formatButton?.setAttribute("aria-pressed", String(this.#isFormatting));
    this.focus();
  }

  #recording() {
    if (!this.row) return;
    const { isOn, state } = this.recorder;
    const hadFocus = this.row.contains(document.activeElement) || this.recorder.element.contains(document.activeElement) || document.activeElement === document.body;
    this.recorder.element.hidden = !isOn || state === "asking";
    // While a finger holds it, the button must stay where it is.
    this.row.hidden = isOn && state !== "asking" && state !== "held";
    this.row.classList.toggle("held", state === "held");
    this.micButton.classList.toggle("held", state === "held");
    this.tray.element.hidden = isOn || this.tray.isEmpty;
    this.#drawHint();
    if (!hadFocus || !document.hasFocus()) return;
    if (!isOn) this.focus();
    else if (this.row.hidden) /** @type {HTMLElement | null} */ (this.recorder.element.querySelector(".send, button"))?.focus();
  }

  #pasted(event) {
    const files = pastedFiles(event);
    if (files.length > 0) {
      event.preventDefault();
      this.attach(files);
      return;
    }
    const text = event.clipboardData?.getData("text/plain").trim() ?? "";
    const { selectionStart, selectionEnd, value } = this.field;
    const over = value.slice(selectionStart, selectionEnd);
    if (!over || over.includes("\n") || !/^https?:\/\/\S+$/i.test(text) || /^https?:\/\//i.test(over)) return;
    event.preventDefault();
    link(this.field, text);
  }

  #mentionsIn(text) {
    return mentionsIn(this.model, this.conversation, text, this.#mentioned);
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
