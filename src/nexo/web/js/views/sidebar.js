/** The list of conversations, the search above it, and the way to everything else. */

import { avatar } from "../components/avatar.js";
import { openMenu } from "../components/menu.js";
import { accountMenu } from "../dialogs/account.js";
import { conversationMenu } from "../dialogs/conversation.js";
import { openCreateGroup, openJoinGroup, openNewChat } from "../dialogs/starting.js";
import { arrange, fill, h, icon, iconButton, isNarrow } from "../dom.js";
import { Endings } from "../emitter.js";
import { t } from "../i18n.js";
import { backTo, goTo } from "../layers.js";
import { addressOf, currentRoute, go, goPage } from "../router.js";
import { drawConversation, rowModel } from "./convrow.js";
import { Prompts } from "./prompts.js";
import { Results } from "./results.js";

const BESIDE = 12; // rows drawn above and below the view
const REORDER_WAITS_MS = 5000;
const POINTED_MS = 3000;

export class Sidebar {
  #ends = new Endings();
  #rows = new Map();
  #order = [];
  #reorderBy = 0;
  #pins = "";
  #archived = [];
  #focusId = "";
  #loadingMore = false;
  #pointedAt = 0;
  #hasMore = true;

  /** @param {any} model */
  constructor(model) {
    this.model = model;
    this.account = iconButton("user", t("account"), { "aria-haspopup": "menu", "aria-expanded": "false" });
    this.account.addEventListener("click", () => openMenu(this.account, t("account"), accountMenu(model)));
    this.field = /** @type {HTMLInputElement} */ (h("input", { type: "search", placeholder: t("search"), autocomplete: "off" }));
    const search = h("label", { class: "search" }, icon("search", "s"), h("span", { class: "sr" }, t("search")), this.field, h("span", { class: "wide-only" }, h("kbd", null, "Ctrl K")));
    this.back = iconButton("back", t("back_to_list"), { onclick: () => this.#leave() });
    this.compose = iconButton("compose", t("new_conversation"), { "aria-haspopup": "menu", "aria-expanded": "false" });
    this.compose.addEventListener("click", () => this.#openNew());
    this.above = h("li", { class: "spacer", "aria-hidden": "true" });
    this.below = h("li", { class: "spacer", "aria-hidden": "true" });
    this.line = h("li", { class: "sep", "aria-hidden": "true" });
    this.list = h("ul", { class: "convs" });
    this.folder = h("div", { class: "folder" });
    this.nothing = h("div", { class: "side-empty" });
    this.scroller = h("nav", { class: "scroll", "aria-label": t("conversations") }, this.list, this.folder, this.nothing);
    this.results = new Results(model, { field: this.field, leave: () => this.#chosen() });
    this.prompts = new Prompts(model);
    this.element = h("aside", { class: "side", "aria-label": "Nexo" }, h("div", { class: "bar" }, this.account, this.back, search, this.compose), this.prompts.element, this.results.element, this.scroller);
    this.#listen();
    this.update();
  }

  #listen() {
    const { model } = this;
    this.#ends.add(
      model.on("list", () => this.update()),
      model.on("contacts", () => this.update()),
      model.on("connection", () => this.results.draw()),
      () => this.prompts.end(),
    );
    this.scroller.addEventListener("scroll", () => this.#draw(), { passive: true });
    const resized = new ResizeObserver(() => this.#draw());
    resized.observe(this.scroller);
    const midnight = setInterval(() => this.update(), 60_000);
    this.#ends.add(() => resized.disconnect(), () => clearInterval(midnight));
    this.field.addEventListener("input", () => this.#searched());
    this.field.addEventListener("keydown", (event) => this.#searchKey(event));
    this.list.addEventListener("keydown", (event) => this.#key(event));
    this.list.addEventListener("pointermove", (event) => {
      // Browsers also report a pointer that rests while the page moves under it.
      if (event.movementX || event.movementY) this.#pointedAt = Date.now();
    });
    this.list.addEventListener("contextmenu", (event) => this.#context(event));
  }

  end() {
    this.#ends.run();
  }

  // -- drawing -------------------------------------------------------------------------------------------

  update() {
    const me = this.model.me;
    const asked = this.model.contacts.received.length;
    const key = JSON.stringify([me.nickname, me.avatar, asked]);
    if (key !== this.meKey) {
      const badge = asked > 0 && h("span", { class: "badge corner", "aria-hidden": "true" }, String(asked));
      const label = asked > 0 ? `${t("account")}, ${t("contact_requests", { n: asked })}` : t("account");
      this.account.setAttribute("aria-label", label);
      fill(this.account, avatar({ id: me.userId, name: me.nickname || me.userId, avatar: me.avatar }, "s32"), badge);
    }
    this.meKey = key;
    const isArchive = this.#isArchive;
    this.account.hidden = isArchive || this.#query !== "";
    this.back.hidden = !this.account.hidden;
    this.compose.hidden = this.#query !== "";
    this.scroller.hidden = this.#query !== "";
    this.#reorder();
    this.#draw();
    this.#watch();
  }

  get #query() {
    return this.field.value.trim().toLocaleLowerCase();
  }

  get #isArchive() {
    return currentRoute().page === "archive";
  }

  /** From the results to the list, from the archive to the conversations. */
  #leave() {
    if (this.#query) this.#clearSearch();
    else backTo("#/");
  }

  /** A result was opened: on wide screens the results stay for the next one. */
  #chosen() {
    if (isNarrow()) return;
    this.field.blur();
  }

  /** While the list is pointed at or focused, rows keep their place for some seconds. */
  #reorder() {
    const { conversations } = this.model.client;
    this.#archived = conversations.filter((one) => one.archived);
    const all = this.#isArchive ? this.#archived : conversations.filter((one) => !one.archived);
    const pins = all.filter((one) => one.pinned).map((one) => one.id).join(" ");
    const isSame = all.length === this.#order.length && all.every((one, at) => one === this.#order[at]);
    if (isSame) {
      this.#reorderBy = 0;
      return;
    }
    const now = Date.now();
    const isMoveOnly = all.length === this.#order.length && all.every((one) => this.#order.includes(one));
    const isBusy = now - this.#pointedAt < POINTED_MS || this.list.contains(document.activeElement);
    if (isMoveOnly && isBusy && pins === this.#pins) {
      this.#reorderBy ||= now + REORDER_WAITS_MS;
      if (now < this.#reorderBy) {
        clearTimeout(this.reorderTimer);
        this.reorderTimer = setTimeout(() => this.update(), this.#reorderBy - now);
        return;
      }
    }
    this.#reorderBy = 0;
    this.#pins = pins; // who pins a conversation wants to see it move
    this.#order = all;
  }

  #draw() {
    const order = this.#order;
    const height = this.#rowHeight;
    const top = this.scroller.scrollTop;
    const from = Math.max(0, Math.floor(top / height) - BESIDE);
    const to = Math.min(order.length, Math.ceil((top + this.scroller.clientHeight) / height) + BESIDE);
    const kept = new Map();
    const elements = [this.above];
    const active = this.list.contains(document.activeElement) ? document.activeElement.closest("a")?.dataset.id : null;
    for (let at = from; at < to; at += 1) {
      const conversation = order[at];
      kept.set(conversation.id, this.#rowOf(conversation));
      elements.push(kept.get(conversation.id).element);
      if (conversation.pinned && order[at + 1] && !order[at + 1].pinned) elements.push(this.line);
    }
    elements.push(this.below);
    this.#rows = kept;
    this.above.style.setProperty("height", `${from * height}px`);
    this.below.style.setProperty("height", `${(order.length - to) * height}px`);
    arrange(this.list, elements);
    if (active && !this.list.contains(document.activeElement)) kept.get(active)?.link.focus({ preventScroll: true });
    this.#tabStop();
    this.#drawFolder();
    this.#drawNothing();
    this.#moreSoon(to);
  }

  get #rowHeight() {
    const known = this.list.querySelector(".conv")?.getBoundingClientRect().height;
    return known || 64;
  }

  #rowOf(conversation) {
    const known = this.#rows.get(conversation.id) ?? this.#newRow(conversation);
    const row = rowModel(this.model, conversation);
    const key = JSON.stringify(row);
    if (known.key !== key) drawConversation(known.link, row);
    known.key = key;
    if (this.model.openId === conversation.id) known.link.setAttribute("aria-current", "page");
    else known.link.removeAttribute("aria-current");
    return known;
  }

  #newRow(conversation) {
    const link = /** @type {HTMLAnchorElement} */ (h("a", { href: addressOf(conversation.id), dataset: { id: conversation.id }, tabindex: "-1" }));
    return { link, element: h("li", null, link), key: "" };
  }

  /** One stop for the Tab key: the row last focused, else the open one, else the first. */
  #tabStop() {
    const wanted = this.#rows.get(this.#focusId) ?? this.#rows.get(this.model.openId ?? "") ?? this.#rows.values().next().value;
    for (const row of this.#rows.values()) row.link.tabIndex = row === wanted ? 0 : -1;
  }

  #drawFolder() {
    const n = this.#isArchive ? 0 : this.#archived.length;
    const unread = this.#archived.filter((one) => one.unread > 0).length;
    const key = `${n} ${unread}`;
    if (key === this.folderKey) return;
    this.folderKey = key;
    const badge = unread > 0 && h("span", { class: "badge muted" }, String(unread), h("span", { class: "sr" }, t("unread")));
    fill(this.folder, n > 0 && h("button", { type: "button", class: "prow", onclick: () => goPage("archive") }, icon("archive"), h("span", null, t("archived_n", { n })), h("span", { class: "end" }, badge, icon("next", "s"))));
  }

  #drawNothing() {
    const isEmpty = this.#order.length === 0 && (this.#isArchive || this.#archived.length === 0);
    const kind = !isEmpty ? "" : this.#isArchive ? "archive" : this.model.listLoaded ? "empty" : "loading";
    if (kind === this.nothingKey) return;
    this.nothingKey = kind;
    this.nothing.hidden = kind === "";
    this.nothing.className = kind === "loading" ? "convs" : "side-empty";
    if (kind === "archive") fill(this.nothing, icon("archive"), h("b", null, t("archive_empty")));
    else if (kind === "empty") fill(this.nothing, icon("chat"), h("b", null, t("list_empty")), h("span", null, t("list_empty_hint")));
    else if (kind === "loading") fill(this.nothing, [0, 1, 2, 3, 4, 5].map((at) => h("div", { class: "conv", "aria-hidden": "true" }, h("span", { class: "sk c av" }), h("span", null, h("span", { class: `sk ln a${at % 3}` }), h("span", { class: `sk ln b${at % 2}` })))));
  }

  async #moreSoon(to) {
    if (this.#loadingMore || !this.#hasMore || !this.model.isConnected || to < this.#order.length - BESIDE) return;
    if (!this.model.listLoaded) return;
    this.#loadingMore = true;
    try {
      this.#hasMore = await this.model.client.loadConversations();
    } catch {
      // the next scroll tries again
    } finally {
      this.#loadingMore = false;
    }
  }

  #watch() {
    const shown = this.model.shownPeople?.() ?? [];
    const peers = [...this.#rows.keys()].map((id) => this.model.client.conversation(id)).filter((one) => one.type === "single");
    this.model.watch([...shown, ...peers.map((one) => one.peerId)]);
  }

  // -- searching -----------------------------------------------------------------------------------------

  focusSearch() {
    this.field.focus();
    this.field.select();
  }

  #searched() {
    this.update();
    this.results.ask();
  }

  #clearSearch() {
    this.field.value = "";
    this.#searched();
    this.field.focus();
  }

  #searchKey(event) {
    if (event.isComposing) return;
    if (event.key === "Escape" && this.field.value) {
      event.stopPropagation();
      this.#clearSearch();
    } else if (event.key === "Enter" && this.#query) {
      const [first] = this.results.rows;
      if (!first) return;
      this.field.value = "";
      this.#searched();
      goTo(first.getAttribute("href") ?? "#/");
      /** @type {HTMLElement | null} */ (document.querySelector(".composer textarea"))?.focus();
    } else if (event.key === "ArrowDown") {
      event.preventDefault();
      if (this.#query) this.results.rows[0]?.focus();
      else if (this.#order[0]) this.#focusRow(0);
    }
  }

  // -- by keyboard ---------------------------------------------------------------------------------------

  #key(event) {
    const at = this.#order.findIndex((one) => one.id === event.target.closest("a")?.dataset.id);
    const last = this.#order.length - 1;
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: last }[event.key];
    if (next === undefined || event.altKey) return;
    event.preventDefault();
    if (next < 0) this.field.focus();
    else this.#focusRow(Math.min(next, last));
  }

  #focusRow(at) {
    const conversation = this.#order[at];
    if (!conversation) return;
    this.#focusId = conversation.id;
    const height = this.#rowHeight;
    const { scrollTop, clientHeight } = this.scroller;
    if (at * height < scrollTop) this.scroller.scrollTop = at * height;
    else if ((at + 1) * height > scrollTop + clientHeight) this.scroller.scrollTop = (at + 1) * height - clientHeight;
    this.#draw();
    this.#rows.get(conversation.id)?.link.focus({ preventScroll: true });
  }

  /** The conversation before or after the open one. @param {number} step @param {boolean} onlyUnread */
  next(step, onlyUnread) {
    const order = this.#order;
    let at = order.findIndex((one) => one.id === this.model.openId);
    for (let tried = 0; tried < order.length; tried += 1) {
      at = at < 0 && step < 0 ? order.length - 1 : at + step;
      if (!order[at]) return;
      if (!onlyUnread || order[at].unread > 0) {
        go(order[at].id);
        return;
      }
    }
  }

  #context(event) {
    const link = event.target.closest("a");
    if (!link) return;
    event.preventDefault();
    const conversation = this.model.client.conversation(link.dataset.id);
    openMenu(link, this.model.face(conversation).name, conversationMenu(this.model, conversation), { point: { x: event.clientX, y: event.clientY } });
  }

  #openNew() {
    openMenu(this.compose, t("new_conversation"), [
      { icon: "chat", text: t("new_chat"), act: () => openNewChat(this.model) },
      { icon: "users", text: t("create_group"), act: () => openCreateGroup(this.model) },
      { icon: "useradd", text: t("join_group"), act: () => openJoinGroup(this.model) },
    ]);
  }
}
