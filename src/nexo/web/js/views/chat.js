/** One conversation: its header, its log, its composer. */

import { announce } from "../components/announce.js";
import { avatar } from "../components/avatar.js";
import { toast } from "../components/toast.js";
import { button, fill, h, holdWhilePressed, icon } from "../dom.js";
import { Endings, soon } from "../emitter.js";
import { counted, dayName, shortName } from "../format.js";
import { t } from "../i18n.js";
import { contentLine, errorText, isChange } from "../wording.js";
import { listenToMessages } from "./acting.js";
import { ChatHeader } from "./chatheader.js";
import { Composer } from "./composer.js";
import { DropZone } from "./drop.js";
import { focusHome, keepFocus } from "./focus.js";
import { Jumping } from "./jumping.js";
import { FOLLOW_PX, Log } from "./log.js";
import { Marks } from "./marks.js";
import { PinBar } from "./pinbar.js";
import { buildRows, keyOf } from "./rows.js";
import { Selection } from "./selection.js";

const PAGE = 100;
const SKELETON_AFTER_MS = 150;
const READ_AFTER_MS = 250;
const LIST_MS = 4000;
const CHIP_MS = 1200;
const CHIP_CLEAR_PX = 72;
const MINUTE_MS = 60_000;
/** Where the reader was in each conversation, for as long as the page lives. */
const places = new Map();

export class ChatView {
  #ends = new Endings();
  #loading = "";
  #failed = false;
  #wantsFollow = false;
  #readTimer = 0;
  #marks = new Marks();
  /** Long texts that are shown whole, by the key of their row. @type {Set<string>} */
  #open = new Set();
  /** What had expired before this was opened is not spoken of. @type {Set<string>} */
  #gone = new Set();
  /** It was opened before the server could be asked what is unread. */
  #isBlind = false;
  /** The newest message was in view when catching up began. */
  #wasFollowing = false;
  #update = soon(() => this.#draw());
  #hasEnded = false;
  #isHeld = () => false;

  /** @param {any} model @param {any} conversation */
  constructor(model, conversation) {
    this.model = model;
    this.conversation = conversation;
    this.log = new Log(model);
    this.element = h("main", { class: "chat", "aria-label": model.face(conversation).name });
    this.selection = new Selection(this, () => this.#selectionChanged());
    this.composer = new Composer(model, conversation, {
      onsent: () => this.#sent(),
      onup: () => this.log.moveFocus(-1),
      log: this.log,
    });
    this.head = new ChatHeader(this);
    this.pins = new PinBar(this);
    this.jumping = new Jumping(this, (which, work) => this.#load(which, work));
    this.typing = h("div", { class: "typing-row", "aria-hidden": "true" });
    this.state = h("div", { class: "chatstate" });
    this.chip = h("div", { class: "datechip", "aria-hidden": "true" });
    this.toasts = h("div", { class: "loghead" });
    const logbox = h("div", { class: "logbox" }, this.toasts, this.log.element, this.chip, this.state, this.typing);
    this.element.append(this.head.element, this.pins.element, logbox, this.selection.bar, this.composer.element);
    this.drop = new DropZone(
      this.element,
      () => (this.composer.obstacle ? t(`composer_${this.composer.obstacle}`) : ""),
      () => model.face(conversation).name,
      (files, asFiles) => this.composer.attach(files, asFiles),
      (text) => toast(text, { bad: true }),
    );
    this.#listen();
    this.head.update();
    this.#start();
  }

  get header() {
    return this.head.element;
  }

  get isSelecting() {
    return this.selection.isOn;
  }

  #listen() {
    const { model, conversation, log } = this;
    this.#ends.add(
      conversation.on("change", this.#update),
      model.on("connection", () => this.#connectionChanged()),
      model.on("receipt", (id) => id === conversation.id && this.#update()),
      model.on("withdrawn", (id) => id === conversation.id && this.#update()),
      model.on("presence", this.#update),
      model.on("blocked", this.#update),
      model.people.on("change", () => this.#renamed()),
      model.groups.on("change", () => this.#update()),
      model.client.on("outgoing", (outgoing) => this.#outgoing(outgoing)),
      model.client.on("message", (event) => event.conversation === conversation && this.#arrived(event.message)),
      log.on("scroll", () => this.#scrolled()),
      log.on("unfocused", focusHome),
      () => log.end(),
      () => this.composer.end(),
      () => this.drop.end(),
      keepFocus(this),
      listenToMessages(this),
    );
    const onfocus = () => this.#looked();
    for (const name of ["focus", "visibilitychange"]) window.addEventListener(name, onfocus);
    document.addEventListener("visibilitychange", onfocus);
    const minute = setInterval(this.#update, MINUTE_MS); // what expires shows how long it stays
    this.#ends.add(() => {
      clearInterval(minute);
      for (const name of ["focus", "visibilitychange"]) window.removeEventListener(name, onfocus);
      document.removeEventListener("visibilitychange", onfocus);
    });
    this.#isHeld = holdWhilePressed(this.element, this.#update);
  }

  end() {
    this.#hasEnded = true;
    places.set(this.conversation.id, this.log.place());
    this.conversation.keepsPlace = false;
    clearTimeout(this.#readTimer);
    clearTimeout(this.chipTimer);
    this.#ends.run();
  }

  /** The details were opened or closed. */
  headerChanged() {
    this.head.update();
  }

  /** When it is in the page and shown: before, nothing in it can have the focus. */
  focus() {
    queueMicrotask(() => {
      if (!this.#hasEnded) focusHome();
    });
  }

  /** The key of the row that a message is in. */
  keyFor = (message) => this.log.rows.find((row) => row.messages?.includes(message))?.key ?? keyOf(message);

  // -- opening -------------------------------------------------------------------------------------------

  async #start() {
    const { conversation } = this;
    if (conversation.type === "group") this.model.groups.look(conversation.groupId);
    else this.model.people.refresh(conversation.peerId).catch(() => {});
    const skeleton = setTimeout(() => this.#drawState("loading"), SKELETON_AFTER_MS);
    this.#loading = "first";
    this.#failed = false;
    conversation.keepsPlace = true;
    try {
      // After a reload what is unread is not known before; and its beginning must have come to stand on.
      await this.model.whenCaughtUp(LIST_MS, () => this.#hasBeginning);
      this.#isBlind = !this.model.listLoaded && (!this.#hasBeginning || this.model.keptAt > 0);
      this.#marks.set(conversation.readSeq, conversation.unread, conversation.headSeq);
      await this.#loadFirst();
    } catch {
      this.#failed = conversation.messages.length === 0 && conversation.pending.length === 0;
    } finally {
      clearTimeout(skeleton);
      this.#loading = "";
    }
    if (this.#hasEnded) return;
    if (this.#canSeeNow) {
      this.#start();
      return;
    }
    const now = this.model.now();
    for (const one of conversation.messages) if (one.status === 2 || (one.expiresAt > 0 && one.expiresAt <= now)) this.#gone.add(keyOf(one));
    this.#draw();
    this.#goToStart();
    this.#wasFollowing = this.#isCatchingUp && this.log.follows;
    this.#seedReceipts();
    this.#scrolled();
  }

  get #hasBeginning() {
    const { headSeq, syncedSeq, readSeq } = this.conversation;
    return headSeq > 0 && syncedSeq >= Math.min(headSeq, readSeq + PAGE);
  }

  /** What was missed is still to come: it would rush past. So nothing is read, and the reader stays where they are. */
  get #isCatchingUp() {
    return this.model.connection.state === "syncing" || this.conversation.headSeq - this.conversation.syncedSeq > PAGE;
  }

  #connectionChanged() {
    if (this.#loading === "first") return;
    if (this.model.connection.state === "syncing") this.#wasFollowing = this.log.follows;
    if (this.#canSeeNow || (this.#failed && this.model.isConnected)) this.#start();
    else this.#update();
  }

  get #canSeeNow() {
    return this.#isBlind && this.model.listLoaded;
  }

  /** What is in memory may be nothing, or only the newest: the first unread message must be in it. */
  async #loadFirst() {
    const { conversation } = this;
    const { messages } = conversation;
    const first = messages[0]?.seq ?? Infinity;
    const { newAfter } = this.#marks;
    if (newAfter !== null && first > newAfter + 1 && conversation.hasEarlier) {
      await conversation.loadAround(newAfter + 1, PAGE);
    } else if (messages.length === 0) {
      await conversation.loadLatest(PAGE);
    } else if (conversation.hasEarlier && messages.length < PAGE) {
      await conversation.loadEarlier(PAGE); // what is new needs something to stand below
    }
  }

  #goToStart() {
    const isNewHere = this.#marks.newAfter !== null && this.log.reveal("new");
    if (isNewHere) return;
    const place = places.get(this.conversation.id);
    if (place && this.log.goTo(place)) return;
    this.log.toNewest();
  }

  /** Receipts that arrived before this page was opened are asked for once, for the newest own message of a group. */
  #seedReceipts() {
    const { conversation, model } = this;
    if (conversation.type !== "group") return;
    const own = conversation.messages.findLast((message) => message.senderId === model.userId && message.msgType < 100 && message.status === 0);
    if (!own?.serverMsgId || model.receipts.readers(conversation.id, own.seq) > 0) return;
    conversation
      .receipts(own.serverMsgId)
      .then((found) => {
        model.receipts.learn(conversation.id, own.seq, found);
        model.emit("list"); // the list shows the same signs
        this.#update();
      })
      .catch(() => {});
  }

  // -- drawing -------------------------------------------------------------------------------------------

  #draw() {
    if (this.#hasEnded || this.#loading === "first" || this.#isHeld()) return;
    const { conversation, log } = this;
    const { newAfter, newCount } = this.#marks;
    const rows = buildRows(this.model, conversation, { newAfter, newCount, open: this.#open, selected: this.selection.keys, gone: this.#gone });
    const follow = this.#wantsFollow || (!this.#isCatchingUp && log.follows && !conversation.hasLater);
    this.#wantsFollow = false;
    log.show(rows, { follow, arriving: follow && log.rows.length > 0 && this.#loading === "" });
    this.#followAgain();
    this.#keepPlace();
    if (rows.length > 0) this.#drawState("");
    else if (!this.#loading) this.#drawState(this.#failed ? "failed" : "empty");
    this.head.update();
    this.pins.update();
    this.#drawTyping();
    this.composer.update();
    this.#drawJump();
    this.#readSoon();
    this.#loadMore();
  }

  /** All that was missed is here. If it fits into the view, the reader is at the newest again. */
  #followAgain() {
    if (!this.#wasFollowing || this.#isCatchingUp) return;
    this.#wasFollowing = false;
    const { log, conversation } = this;
    if (!conversation.hasLater && log.distance < log.element.clientHeight - FOLLOW_PX) log.toNewest();
  }

  #keepPlace() {
    this.conversation.keepsPlace = this.#isCatchingUp || !this.log.follows;
  }

  #renamed() {
    this.log.spoil();
    this.#update();
  }

  /** @param {"" | "loading" | "empty" | "failed"} kind */
  #drawState(kind) {
    this.state.hidden = kind === "";
    if (kind === "loading" && this.log.rows.length === 0)
      fill(this.state, h("div", { class: "skeletons", "aria-label": t("loading") }, ["a", "b", "c", "d"].map((key) => h("span", { class: `sk ${key}` }))));
    if (kind === "empty") fill(this.state, h("div", { class: "side-empty" }, icon("chat"), h("b", null, t("chat_empty")), h("span", null, t("chat_empty_hint"))));
    if (kind === "failed")
      fill(
        this.state,
        h("div", { class: "side-empty" }, icon("alert"), h("b", null, t("load_failed")), h("span", null, t("load_failed_hint")), button(t("try_again"), { class: "small", onclick: () => this.#start() })),
      );
  }

  #drawTyping() {
    const { conversation, model } = this;
    const typists = model.isConnected ? conversation.typists.map((one) => one.userId ?? one) : [];
    const key = typists.join(" ");
    if (key === this.typingKey) return;
    this.typingKey = key;
    this.typing.classList.toggle("on", typists.length > 0);
    if (typists.length === 0) return;
    const names = typists.map((userId) => shortName(model.people.name(userId)));
    const text =
      names.length === 1
        ? t("x_typing", { name: names[0] })
        : names.length === 2
          ? t("xy_typing", { name: names[0], other: names[1] })
          : t("n_typing", { n: names.length });
    const face = names.length === 1 && avatar({ ...model.personFace(typists[0]), online: false }, "s24");
    fill(this.typing, face, h("span", { class: "dots" }, h("i"), h("i"), h("i")), h("span", null, text));
  }

  #drawJump() {
    const { conversation, log } = this;
    const isAway = conversation.hasLater || log.distance > 200;
    const mention = conversation.unreadMentions > 0 && conversation.messages.find((one) => one.important && one.seq > conversation.readSeq);
    const unread = conversation.unread;
    const key = JSON.stringify([isAway, isAway && unread, mention?.seq ?? 0, conversation.unreadMentions]);
    if (key === this.jumpKey) return;
    this.jumpKey = key;
    const buttons = [];
    if (mention && isAway)
      buttons.push(h("button", { type: "button", class: "at", "aria-label": t("next_mention"), onclick: () => this.jumpTo(mention.seq) }, icon("at", "s"), counted(conversation.unreadMentions)));
    if (isAway && unread > 0)
      buttons.push(h("button", { type: "button", dataset: { jump: "new" }, onclick: () => this.jumpToNewest() }, icon("down", "s"), t("n_new_messages", { n: unread })));
    else if (isAway) buttons.push(h("button", { type: "button", class: "round", dataset: { jump: "down" }, "aria-label": t("jump_newest"), onclick: () => this.jumpToNewest() }, icon("down", "s")));
    fill(this.composer.jump, buttons);
  }

  // -- more of the past, and back ------------------------------------------------------------------------

  /** While the past is scrolled through, its day is shown above it. */
  #drawChip() {
    clearTimeout(this.chipTimer);
    // A real one at the top says the same, and a toast needs the place.
    const isNeeded = this.log.distance > 200 && !this.log.hasDayWithin(CHIP_CLEAR_PX) && !document.querySelector(".toast");
    const row = isNeeded ? this.log.firstSeen() : null;
    if (row) this.chip.textContent = this.#loading === "earlier" && this.log.isAtTop ? t("loading_earlier") : dayName(row.message.sendAt);
    this.chip.classList.toggle("on", row !== null);
    this.chipTimer = setTimeout(() => this.chip.classList.remove("on"), CHIP_MS);
  }

  #scrolled() {
    if (this.#loading !== "first") this.#keepPlace();
    this.#drawChip();
    this.#drawJump();
    this.#readSoon();
    this.#loadMore();
  }

  async #loadMore() {
    const { conversation, log } = this;
    if (this.#loading || this.#failed || this.#hasEnded || conversation.headSeq === 0) return;
    const screens = log.element.clientHeight * 2;
    const above = log.element.scrollHeight - log.element.clientHeight - log.distance;
    if (conversation.hasEarlier && above < screens) await this.#load("earlier", () => conversation.loadEarlier(PAGE));
    else if (conversation.hasLater && log.distance < screens) await this.#load("later", () => conversation.loadLater(PAGE));
  }

  async #load(which, work) {
    this.#loading = which;
    try {
      await work();
      this.#loading = "";
      this.#draw();
    } catch (error) {
      // The next scroll tries again; while the connection is away a bar shows it.
      if (this.model.isConnected) toast(t("load_failed"), { bad: true, detail: error?.reason, action: t("try_again"), act: () => this.#loadMore() });
      setTimeout(() => (this.#loading = ""), 1000);
    }
  }

  async jumpToNewest() {
    await this.jumping.toNewest();
    this.#drawJump();
    this.#readSoon();
  }

  /** @param {number} seq @param {string} [serverMsgId] */
  jumpTo(seq, serverMsgId) {
    return this.jumping.to(seq, serverMsgId);
  }

  /** A long text is shown whole, or no longer. @param {string} key */
  unfold(key) {
    if (this.#open.has(key)) this.#open.delete(key);
    else this.#open.add(key);
    this.#draw();
  }

  #selectionChanged() {
    if (this.#hasEnded) return;
    this.composer.element.hidden = this.selection.isOn;
    this.#draw();
    this.head.update();
    if (!this.selection.isOn) this.focus();
  }

  // -- reading -------------------------------------------------------------------------------------------

  #arrived(message) {
    const isCatchingUp = this.#isCatchingUp;
    const isLooked = document.hasFocus() && !document.hidden;
    if (message.senderId !== this.model.userId && message.msgType < 100) this.#marks.arrived(message.seq, !isLooked || isCatchingUp);
    this.#update();
    if (isCatchingUp || isChange(message)) return;
    const name = this.model.people.name(message.senderId);
    announce(t("announce_message", { name, text: contentLine(message) }));
  }

  #looked() {
    if (document.hasFocus() && !document.hidden) this.#marks.back();
    this.#readSoon();
  }

  #outgoing(outgoing) {
    if (outgoing.conversationId !== this.conversation.id || outgoing.state !== "failed") return;
    announce(t("not_sent", { why: errorText(outgoing.error) }), "assertive");
  }

  #readSoon() {
    if (this.#readTimer || this.#hasEnded) return;
    this.#readTimer = window.setTimeout(() => {
      this.#readTimer = 0;
      this.#read();
    }, READ_AFTER_MS);
  }

  /** Only what was seen, in a tab that is looked at, is read. */
  #read() {
    const { conversation, log } = this;
    if (this.#hasEnded || this.#loading === "first" || this.#isBlind || this.#isCatchingUp || document.hidden || !document.hasFocus() || this.element.checkVisibility?.() === false) return;
    const seen = log.lastSeen();
    if (!seen) return;
    const isLast = seen === log.rows.at(-1) && !conversation.hasLater;
    let seq = seen.message?.seq ?? 0;
    if (isLast || seq === null) seq = Math.max(0, ...conversation.messages.slice(-20).map((one) => one.seq ?? 0));
    if (seq > conversation.readSeq) conversation.markRead(seq);
  }

  // -- acting on messages --------------------------------------------------------------------------------

  #sent() {
    this.#marks.clear();
    this.#wantsFollow = true;
    if (this.conversation.hasLater) this.jumpToNewest();
    this.#draw();
  }

  /** Whose presence is shown here. @returns {string[]} */
  get shownPeople() {
    const { conversation, model } = this;
    if (conversation.type === "single") return [conversation.peerId];
    return (model.groups.members(conversation.groupId)?.list ?? []).slice(0, 100).map(({ userId }) => userId);
  }
}
