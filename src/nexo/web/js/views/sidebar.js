/** The list of conversations, the search above it, and the way to everything else. */

import { avatar } from "../components/avatar.js";
import { openMenu } from "../components/menu.js";
import { accountMenu } from "../dialogs/account.js";
import { conversationMenu } from "../dialogs/conversation.js";
import { openCreateGroup, openJoinGroup, openNewChat } from "../dialogs/starting.js";
import { arrange, fill, h, icon, iconButton } from "../dom.js";
import { Endings } from "../emitter.js";
import { findPeople } from "../finding.js";
import { t } from "../i18n.js";
import { addressOf, go } from "../router.js";
import { drawConversation, rowModel } from "./convrow.js";

const BESIDE = 12; // rows drawn above and below the view
const REORDER_WAITS_MS = 5000;
const POINTED_MS = 3000;
const SEARCH_AFTER_MS = 250;

export class Sidebar {
  #ends = new Endings();
  #rows = new Map();
  #order = [];
  #reorderBy = 0;
  #found = { q: "", users: [] };
  #searching = 0;
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
    this.compose = iconButton("compose", t("new_conversation"), { "aria-haspopup": "menu", "aria-expanded": "false" });
    this.compose.addEventListener("click", () => this.#openNew());
    this.above = h("li", { class: "spacer", "aria-hidden": "true" });
    this.below = h("li", { class: "spacer", "aria-hidden": "true" });
    this.line = h("li", { class: "sep", "aria-hidden": "true" });
    this.list = h("ul", { class: "convs" });
    this.people = h("ul", { class: "convs found" });
    this.nothing = h("div", { class: "side-empty" });
    this.scroller = h("nav", { class: "scroll", "aria-label": t("conversations") }, this.list, this.people, this.nothing);
    this.element = h("aside", { class: "side", "aria-label": "Nexo" }, h("div", { class: "bar" }, this.account, search, this.compose), this.scroller);
    this.#listen();
    this.update();
  }

  #listen() {
    const { model } = this;
    this.#ends.add(model.on("list", () => this.update()));
    this.scroller.addEventListener("scroll", () => this.#draw(), { passive: true });
    const resized = new ResizeObserver(() => this.#draw());
    resized.observe(this.scroller);
    const midnight = setInterval(() => this.update(), 60_000);
    this.#ends.add(() => resized.disconnect(), () => clearInterval(midnight));
    this.field.addEventListener("input", () => this.#searched());
    this.field.addEventListener("keydown", (event) => this.#searchKey(event));
    this.list.addEventListener("keydown", (event) => this.#key(event));
    this.people.addEventListener("keydown", (event) => this.#foundKey(event));
    this.list.addEventListener("pointermove", (event) => {
      // Browsers also tell of a pointer that rests while the page moves under it.
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
    const key = JSON.stringify([me.nickname, me.avatar]);
    if (key !== this.meKey) fill(this.account, avatar({ id: me.userId, name: me.nickname || me.userId, avatar: me.avatar }, "s32"));
    this.meKey = key;
    this.#reorder();
    this.#draw();
    this.#watch();
  }

  get #query() {
    return this.field.value.trim().toLocaleLowerCase();
  }

  /** While the list is pointed at or focused, rows stay where they are for a while. */
  #reorder() {
    const q = this.#query;
    const all = this.model.client.conversations.filter((one) => !q || this.#fits(one, q));
    const isSame = all.length === this.#order.length && all.every((one, at) => one === this.#order[at]);
    if (isSame) {
      this.#reorderBy = 0;
      return;
    }
    const now = Date.now();
    const isMoveOnly = all.length === this.#order.length && all.every((one) => this.#order.includes(one));
    const isBusy = now - this.#pointedAt < POINTED_MS || this.list.contains(document.activeElement);
    if (isMoveOnly && isBusy) {
      this.#reorderBy ||= now + REORDER_WAITS_MS;
      if (now < this.#reorderBy) {
        clearTimeout(this.reorderTimer);
        this.reorderTimer = setTimeout(() => this.update(), this.#reorderBy - now);
        return;
      }
    }
    this.#reorderBy = 0;
    this.#order = all;
  }

  #fits(conversation, q) {
    const face = this.model.face(conversation);
    return face.name.toLocaleLowerCase().includes(q) || face.id.toLocaleLowerCase().includes(q);
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
      if (conversation.pinned && order[at + 1] && !order[at + 1].pinned && !this.#query) elements.push(this.line);
    }
    elements.push(this.below);
    this.#rows = kept;
    this.above.style.setProperty("height", `${from * height}px`);
    this.below.style.setProperty("height", `${(order.length - to) * height}px`);
    arrange(this.list, elements);
    if (active && !this.list.contains(document.activeElement)) kept.get(active)?.link.focus({ preventScroll: true });
    this.#tabStop();
    this.#drawFound();
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

  #drawNothing() {
    const isEmpty = this.#order.length === 0 && this.people.childElementCount === 0;
    const kind = !isEmpty ? "" : this.#query ? "nobody" : this.model.listLoaded ? "empty" : "loading";
    const key = kind + (kind === "nobody" ? this.#query : "");
    if (key === this.nothingKey) return;
    this.nothingKey = key;
    this.nothing.hidden = kind === "";
    this.nothing.className = kind === "loading" ? "convs" : "side-empty";
    if (kind === "nobody") fill(this.nothing, icon("search"), h("b", null, t("nobody", { q: this.field.value.trim() })), h("span", null, t("nobody_hint")));
    else if (kind === "empty") fill(this.nothing, icon("chat"), h("b", null, t("list_empty")), h("span", null, t("list_empty_hint")));
    else if (kind === "loading") fill(this.nothing, [0, 1, 2, 3, 4, 5].map((at) => h("div", { class: "conv", "aria-hidden": "true" }, h("span", { class: "sk c av" }), h("span", null, h("span", { class: `sk ln a${at % 3}` }), h("span", { class: `sk ln b${at % 2}` })))));
  }

  async #moreSoon(to) {
    if (this.#loadingMore || !this.#hasMore || !this.model.isConnected || to < this.#order.length - BESIDE || this.#query) return;
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
    clearTimeout(this.#searching);
    this.#order = [];
    this.scroller.scrollTop = 0;
    const q = this.field.value.trim();
    if (q) this.#searching = window.setTimeout(() => this.#ask(q), SEARCH_AFTER_MS);
    else this.#found = { q: "", users: [] };
    this.update();
  }

  async #ask(q) {
    try {
      const users = await findPeople(this.model, q);
      if (this.field.value.trim() !== q) return;
      this.#found = { q, users };
    } catch {
      this.#found = { q, users: [] };
    }
    this.#draw();
  }

  /** People without a conversation yet. */
  #drawFound() {
    const known = new Set(this.model.client.conversations.map((one) => one.peerId));
    const users = this.#query ? this.#found.users.filter((user) => !known.has(user.userId) && user.userId !== this.model.userId) : [];
    const key = JSON.stringify(users.map((user) => [user.userId, user.nickname]));
    if (key === this.foundKey) return;
    this.foundKey = key;
    const rows = users.map((user) => {
      const open = () => this.#openPerson(user.userId);
      const face = this.model.personFace(user.userId);
      return h("li", null, h("button", { type: "button", class: "conv", onclick: open }, avatar(face), h("span", { class: "lines" }, h("span", { class: "l1" }, h("span", { class: "name ell" }, face.name)), h("span", { class: "l2" }, h("span", { class: "prev ell" }, user.userId)))));
    });
    fill(this.people, rows.length > 0 && h("li", { class: "lbl" }, t("people")), rows);
  }

  #openPerson(userId) {
    this.#clearSearch();
    go(this.model.client.chatWith(userId).id);
  }

  #clearSearch() {
    this.field.value = "";
    this.#searched();
  }

  #searchKey(event) {
    if (event.key === "Escape" && this.field.value) {
      event.stopPropagation();
      this.#clearSearch();
    } else if (event.key === "Enter" && !event.isComposing) {
      const first = this.#order[0];
      if (first) {
        this.#clearSearch();
        go(first.id);
      } else this.people.querySelector("button")?.click();
    } else if (event.key === "ArrowDown") {
      event.preventDefault();
      if (this.#order[0]) this.#focusRow(0);
      else this.people.querySelector("button")?.focus();
    }
  }

  #foundKey(event) {
    const all = [...this.people.querySelectorAll("button")];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = all.indexOf(document.activeElement) + step;
    if (next < 0) this.field.focus();
    else all[next]?.focus();
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
