/** One conversation: its header, its log, its composer. */

import { announce } from "../components/announce.js";
import { avatar } from "../components/avatar.js";
import { openMenu } from "../components/menu.js";
import { toast } from "../components/toast.js";
import { conversationMenu } from "../dialogs/conversation.js";
import { openReceipts } from "../dialogs/receipts.js";
import { button, fill, h, holdWhilePressed, icon, iconButton, pointerIsFine } from "../dom.js";
import { Endings, soon } from "../emitter.js";
import { counted, dayName, shortName } from "../format.js";
import { t } from "../i18n.js";
import { addressOf, currentRoute, go } from "../router.js";
import { contentLine, errorText } from "../wording.js";
import { askRecall, copyText, openMessageMenu } from "./actions.js";
import { Composer } from "./composer.js";
import { FOLLOW_PX, Log } from "./log.js";
import { buildRows, keyOf } from "./rows.js";

const PAGE = 100;
const SKELETON_AFTER_MS = 150;
const LONG_PRESS_MS = 450;
const READ_AFTER_MS = 250;
const LIST_MS = 4000;
const CHIP_MS = 1200;
/** Where the reader was in each conversation, for as long as the page lives. */
const places = new Map();

/** Where the line above new messages is, how many they are, and up to where they were counted. */
const NO_MARKS = { newAfter: /** @type {number | null} */ (null), newCount: 0, upTo: 0 };

export class ChatView {
  #ends = new Endings();
  #loading = "";
  #failed = false;
  #wantsFollow = false;
  #readTimer = 0;
  #marks = NO_MARKS;
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
    this.composer = new Composer(model, conversation, {
      onsent: () => this.#sent(),
      onup: () => this.log.moveFocus(-1),
    });
    this.header = h("header", { class: "bar" });
    this.typing = h("div", { class: "typing-row", "aria-hidden": "true" });
    this.state = h("div", { class: "chatstate" });
    this.chip = h("div", { class: "datechip", "aria-hidden": "true" });
    const logbox = h("div", { class: "logbox" }, this.log.element, this.chip, this.state, this.typing);
    this.element = h("main", { class: "chat", "aria-label": model.face(conversation).name }, this.header, logbox, this.composer.element);
    this.#listen();
    this.#drawHeader();
    this.#open();
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
      () => log.end(),
      () => this.composer.end(),
    );
    const onfocus = () => this.#readSoon();
    for (const name of ["focus", "visibilitychange"]) window.addEventListener(name, onfocus);
    document.addEventListener("visibilitychange", onfocus);
    this.#ends.add(() => {
      for (const name of ["focus", "visibilitychange"]) window.removeEventListener(name, onfocus);
      document.removeEventListener("visibilitychange", onfocus);
    });
    log.list.addEventListener("click", (event) => this.#clicked(event));
    log.element.addEventListener("keydown", (event) => this.#key(event));
    this.#isHeld = holdWhilePressed(this.element, this.#update);
    this.#listenToLongPress();
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
    this.#drawHeader();
  }

  focus() {
    if (pointerIsFine() && this.composer.field.isConnected) this.composer.focus();
    else this.header.querySelector(".who-head")?.focus();
  }

  // -- opening -------------------------------------------------------------------------------------------

  async #open() {
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
      this.#isBlind = !this.model.listLoaded && !this.#hasBeginning;
      if (conversation.unread > 0) this.#marks = { newAfter: conversation.readSeq, newCount: conversation.unread, upTo: conversation.headSeq };
      await this.#loadFirst();
    } catch {
      this.#failed = conversation.messages.length === 0 && conversation.pending.length === 0;
    } finally {
      clearTimeout(skeleton);
      this.#loading = "";
    }
    if (this.#hasEnded) return;
    if (this.#canSeeNow) {
      this.#open();
      return;
    }
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
    if (this.#canSeeNow || (this.#failed && this.model.isConnected)) this.#open();
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

  /** Receipts that came before this page was opened are asked for once, for the newest own message of a group. */
  #seedReceipts() {
    const { conversation, model } = this;
    if (conversation.type !== "group") return;
    const own = conversation.messages.findLast((message) => message.senderId === model.userId && message.msgType < 100 && message.status === 0);
    if (!own?.serverMsgId || model.receipts.readers(conversation.id, own.seq) > 0) return;
    conversation
      .receipts(own.serverMsgId)
      .then((found) => {
        model.receipts.learn(conversation.id, own.seq, found);
        this.#update();
      })
      .catch(() => {});
  }

  // -- drawing -------------------------------------------------------------------------------------------

  #draw() {
    if (this.#hasEnded || this.#loading === "first" || this.#isHeld()) return;
    const { conversation, log } = this;
    const rows = buildRows(this.model, conversation, this.#marks);
    const follow = this.#wantsFollow || (!this.#isCatchingUp && log.follows && !conversation.hasLater);
    this.#wantsFollow = false;
    log.show(rows, { follow, arriving: follow && log.rows.length > 0 && this.#loading === "" });
    this.#followAgain();
    this.#keepPlace();
    if (rows.length > 0) this.#drawState("");
    else if (!this.#loading) this.#drawState(this.#failed ? "failed" : "empty");
    this.#drawHeader();
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
        h("div", { class: "side-empty" }, icon("alert"), h("b", null, t("load_failed")), h("span", null, t("load_failed_hint")), button(t("try_again"), { class: "small", onclick: () => this.#open() })),
      );
  }

  #drawHeader() {
    const { model, conversation } = this;
    const face = model.face(conversation);
    const details = currentRoute().details;
    const status = this.#status(face);
    const key = JSON.stringify([face, details, status]);
    if (key === this.headerKey) return;
    this.headerKey = key;
    this.element.setAttribute("aria-label", face.name);
    const hadFocus = this.header.contains(document.activeElement) ? document.activeElement?.dataset?.part : null;
    const toggle = () => go(conversation.id, !currentRoute().details);
    const more = iconButton("more", t("more"), {
      "aria-haspopup": "menu",
      "aria-expanded": "false",
      dataset: { part: "more" },
      onclick: () => openMenu(more, face.name, conversationMenu(model, conversation)),
    });
    fill(
      this.header,
      h("span", { class: "narrow-only" }, h("a", { class: "iconbtn", href: addressOf(null), "aria-label": t("back_to_list") }, icon("back"))),
      h(
        "button",
        { type: "button", class: "who-head", dataset: { part: "who" }, onclick: () => go(conversation.id, true) },
        avatar(face, "s40"),
        h("span", { class: "ell" }, h("span", { class: "t ell" }, face.name), h("br"), h("span", { class: `st ${status.kind}` }, status.text)),
      ),
      iconButton("info", t("details"), { "aria-pressed": String(details), dataset: { part: "details" }, onclick: toggle }),
      more,
    );
    if (hadFocus) this.header.querySelector(`[data-part=${hadFocus}]`)?.focus();
  }

  #status(face) {
    const { model, conversation } = this;
    if (!model.isConnected) return { kind: "", text: t("waiting_for_connection") };
    if (conversation.type === "single") {
      if (conversation.typists.length > 0) return { kind: "typing", text: t("typing") };
      return face.online ? { kind: "on", text: t("online") } : { kind: "", text: t("offline") };
    }
    const info = model.groups.info(conversation.groupId);
    if (!info) return { kind: "", text: "" };
    if (info.status === 1) return { kind: "", text: t("dismissed") };
    const members = t("n_members", { n: info.memberCount });
    const known = model.groups.members(conversation.groupId);
    if (!known || known.nextCursor || known.list.length > 100) return { kind: "", text: members };
    const online = known.list.filter(({ userId }) => model.isOnline(userId)).length;
    return { kind: "", text: t("members_online", { members, n: online }) };
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
    const row = this.log.distance > 200 ? this.log.firstSeen() : null;
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
      // The next scroll tries again; while the connection is away there is a bar that says so.
      if (this.model.isConnected) toast(t("load_failed"), { bad: true, detail: error?.reason, action: t("try_again"), act: () => this.#loadMore() });
      setTimeout(() => (this.#loading = ""), 1000);
    }
  }

  async jumpToNewest() {
    if (this.conversation.hasLater) await this.#load("latest", () => this.conversation.loadLatest());
    this.log.toNewest();
    this.#drawJump();
    this.#readSoon();
    this.composer.focus();
  }

  /** @param {number} seq @param {string} [serverMsgId] */
  async jumpTo(seq, serverMsgId) {
    const { conversation } = this;
    const find = () => conversation.messages.find((one) => (serverMsgId ? one.serverMsgId === serverMsgId : one.seq === seq));
    let target = find();
    if (!target && seq) {
      await this.#load("around", () => conversation.loadAround(seq, PAGE));
      target = find();
    }
    const element = target && this.log.reveal(keyOf(target));
    if (!element) {
      toast(t("quote_gone"), { bad: true });
      return;
    }
    element.classList.add("flash");
    element.addEventListener("animationend", () => element.classList.remove("flash"), { once: true });
  }

  async #jumpToQuote(serverMsgId) {
    const { conversation } = this;
    const known = conversation.messages.find((one) => one.serverMsgId === serverMsgId);
    if (known) return this.jumpTo(known.seq, serverMsgId);
    // The place of an older message is not in a quote: pages are walked back until it is there.
    await this.#load("around", async () => {
      while (conversation.hasEarlier && !conversation.messages.some((one) => one.serverMsgId === serverMsgId)) {
        if ((await conversation.loadEarlier(200)) === 0) break;
        const oldest = conversation.messages[0]?.serverMsgId;
        if (oldest && BigInt(oldest) < BigInt(serverMsgId)) break; // ids are ordered by time
      }
    });
    return this.jumpTo(0, serverMsgId);
  }

  // -- reading -------------------------------------------------------------------------------------------

  #arrived(message) {
    const isCatchingUp = this.#isCatchingUp;
    const seen = document.hasFocus() && !document.hidden && this.log.follows && !isCatchingUp;
    const { newAfter, newCount, upTo } = this.#marks;
    if (!seen && newAfter === null) this.#marks = { newAfter: message.seq - 1, newCount: 1, upTo: message.seq };
    else if (newAfter !== null && message.seq > upTo) this.#marks = { newAfter, newCount: newCount + 1, upTo: message.seq };
    this.#update();
    if (isCatchingUp) return;
    const name = this.model.people.name(message.senderId);
    announce(t("announce_message", { name, text: contentLine(message) }));
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
    this.#marks = NO_MARKS;
    this.#wantsFollow = true;
    if (this.conversation.hasLater) this.jumpToNewest();
    this.#draw();
  }

  #clicked(event) {
    const target = event.target;
    const row = this.log.rowOf(target);
    if (!row) return;
    const quoted = target.closest("[data-quoted]");
    if (quoted) {
      this.#jumpToQuote(quoted.dataset.quoted);
      return;
    }
    const pressed = target.closest("[data-act]");
    if (pressed) this.#act(pressed.dataset.act, row, pressed);
  }

  #act(name, row, anchor) {
    const { message } = row;
    if (name === "reply" && message.serverMsgId && !message.provisional) this.composer.replyTo(message);
    else if (name === "copy") copyText(message);
    else if (name === "more") openMessageMenu(this, row, anchor);
    else if (name === "receipts") openReceipts(this, row, anchor);
    else if (name === "retry") message.outgoing.retry();
    else if (name === "delete") this.#delete(message.outgoing);
  }

  async #delete(outgoing) {
    if ((await outgoing.cancel()) === false) toast(t("delete_refused"), { bad: true });
    this.#update();
  }

  #key(event) {
    const element = event.target.closest?.(".msg");
    if (event.target !== element && event.target !== this.log.element) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const row = element ? this.log.rowOf(element) : null;
    const steps = { ArrowUp: -1, ArrowDown: 1 };
    if (event.key in steps) {
      const moved = this.log.moveFocus(steps[event.key], element);
      if (!moved && steps[event.key] === 1) this.composer.focus();
    } else if (event.key === "End") this.jumpToNewest();
    else if (event.key === "Home" && this.log.rows.length) this.log.moveFocus(1, this.log.list.firstElementChild);
    else if (event.key === "Escape") this.composer.focus();
    else if (!row) return;
    else if (event.key === "r" || event.key === "R") this.#act("reply", row, element);
    else if (event.key === "c" || event.key === "C") copyText(row.message);
    else if (event.key === "Delete") askRecall(this.model, this.conversation, row.message);
    else if (event.key === "Enter" && row.message.status !== 1) openMessageMenu(this, row, element.querySelector(".bubble") ?? element);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** A finger held on a message opens what a mouse finds beside it. */
  #listenToLongPress() {
    let timer = 0;
    const stop = () => clearTimeout(timer);
    this.log.list.addEventListener("pointerdown", (event) => {
      stop();
      const element = event.target.closest?.(".msg");
      if (event.pointerType !== "touch" || !element) return;
      timer = window.setTimeout(() => {
        const row = this.log.rowOf(element);
        if (row?.kind === "message" && row.message.status !== 1) openMessageMenu(this, row, element);
      }, LONG_PRESS_MS);
    });
    for (const name of ["pointerup", "pointercancel", "pointermove"]) this.log.list.addEventListener(name, stop);
    this.log.list.addEventListener("contextmenu", (event) => {
      if (event.pointerType === "touch") event.preventDefault();
    });
  }

  /** Whose presence is shown here. @returns {string[]} */
  get shownPeople() {
    const { conversation, model } = this;
    if (conversation.type === "single") return [conversation.peerId];
    return (model.groups.members(conversation.groupId)?.list ?? []).slice(0, 100).map(({ userId }) => userId);
  }
}
