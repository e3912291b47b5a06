/**
 * What a search finds: people and groups, messages, files. One scroller whose sections never shrink. Without a connection it
 * shows what is on this device, and says so.
 */

import { avatar } from "../components/avatar.js";
import { openMenu } from "../components/menu.js";
import { fill, h, icon } from "../dom.js";
import { findPeople } from "../peoplesearch.js";
import { shortTime } from "../format.js";
import { t } from "../i18n.js";
import { addressOf, messageAddress } from "../router.js";
import { contentLine } from "../wording.js";

const AFTER_MS = 250;
const PAGE = 20;
const FEW = 4;
const FROM_MAX = 8;
const DAY_MS = 86_400_000;
const FILE = 5;
const TABS = ["all", "messages", "people", "groups", "files"];
const TIMES = { any: 0, day: DAY_MS, week: 7 * DAY_MS, month: 30 * DAY_MS, year: 365 * DAY_MS };
const KINDS = { any: 0, text: 1, photo: 2, video: 3, voice: 4, file: FILE };
const LOCAL_MAX = 50;

const NOTHING = { q: "", users: [], messages: [], files: [], cursor: "", hasMore: false, isLocal: false, isDone: false };

export class Results {
  #timer = 0;
  #round = 0;
  #tab = "all";
  #filter = { from: "", time: "any", kind: "any" };
  #found = NOTHING;
  #isLoading = false;

  /** @param {any} model @param {{leave: () => void, field: HTMLInputElement}} around leave: back to the list */
  constructor(model, around) {
    this.model = model;
    this.around = around;
    this.tabs = h("div", { class: "tabs", role: "tablist", "aria-label": t("search") });
    this.chips = h("div", { class: "chipsrow" });
    this.note = h("p", { class: "searchnote", role: "status" });
    this.scroller = h("div", { class: "scroll results", role: "tabpanel", "aria-label": t("search_results") });
    this.element = h("div", { class: "searching" }, this.tabs, this.chips, this.note, this.scroller);
    this.element.hidden = true;
    this.scroller.addEventListener("scroll", () => this.#more(), { passive: true });
    this.scroller.addEventListener("keydown", (event) => this.#key(event));
    this.tabs.addEventListener("keydown", (event) => this.#tabKey(event));
  }

  get q() {
    return this.around.field.value.trim();
  }

  /** The words have changed. */
  ask() {
    clearTimeout(this.#timer);
    this.element.hidden = this.q === "";
    this.#round += 1;
    if (!this.q) {
      this.#found = NOTHING;
      this.#tab = "all";
      this.#filter = { from: "", time: "any", kind: "any" };
      return;
    }
    this.scroller.scrollTop = 0;
    this.draw();
    this.#timer = window.setTimeout(() => this.#search(), AFTER_MS);
  }

  async #search() {
    const round = this.#round;
    const { q, model } = this;
    if (!model.isConnected) {
      this.#found = { ...NOTHING, q, isLocal: true, isDone: true, messages: this.#local(q) };
      this.draw();
      return;
    }
    const [users, messages, files] = await Promise.allSettled([
      findPeople(model, q),
      model.client.search(q, { ...this.#options, limit: PAGE }),
      model.client.search(q, { ...this.#options, msgType: FILE, limit: FEW }),
    ]);
    if (round !== this.#round) return;
    const failed = messages.status === "rejected";
    this.#found = {
      q,
      users: users.status === "fulfilled" ? users.value : [],
      messages: failed ? this.#local(q) : messages.value.results,
      files: files.status === "fulfilled" ? files.value.results : [],
      cursor: failed ? "" : messages.value.nextCursor,
      hasMore: !failed && messages.value.hasMore,
      isLocal: failed,
      isDone: true,
    };
    this.draw();
  }

  get #options() {
    const { from, time, kind } = this.#filter;
    return { senderId: from || undefined, after: TIMES[time] ? Date.now() - TIMES[time] : undefined, msgType: this.#tab === "files" ? FILE : KINDS[kind] || undefined };
  }

  /** Messages in memory, newest first. */
  #local(q) {
    const words = q.toLocaleLowerCase();
    const found = [];
    for (const conversation of this.model.client.conversations) {
      for (const message of conversation.messages) {
        const text = contentLine(message);
        const at = message.status === 0 && message.msgType < 100 ? text.toLocaleLowerCase().indexOf(words) : -1;
        if (at < 0) continue;
        const from = [...text.slice(0, at)].length;
        found.push({ message, snippet: text, ranges: [[from, from + [...q].length]] });
      }
    }
    return found.sort((a, b) => b.message.sendAt - a.message.sendAt).slice(0, LOCAL_MAX);
  }

  async #more() {
    const { cursor, hasMore, q } = this.#found;
    const isNear = this.scroller.scrollTop + this.scroller.clientHeight * 2 > this.scroller.scrollHeight;
    if (!hasMore || this.#isLoading || !isNear || !["messages", "files"].includes(this.#tab)) return;
    this.#isLoading = true;
    const round = this.#round;
    try {
      const page = await this.model.client.search(q, { ...this.#options, cursor, limit: PAGE });
      if (round !== this.#round) return;
      this.#found = { ...this.#found, messages: [...this.#found.messages, ...page.results], cursor: page.nextCursor, hasMore: page.hasMore };
      this.draw();
    } catch {
      // the next scroll tries again
    } finally {
      this.#isLoading = false;
    }
  }

  // -- drawing -------------------------------------------------------------------------------------------

  draw() {
    if (this.element.hidden) return;
    const focus = this.element.contains(document.activeElement) ? document.activeElement?.getAttribute("data-part") : null;
    fill(this.tabs, TABS.map((tab) => h("button", { type: "button", role: "tab", "aria-selected": String(tab === this.#tab), tabindex: tab === this.#tab ? "0" : "-1", dataset: { part: `tab ${tab}` }, onclick: () => this.#choose(tab) }, t(`found_${tab}`))));
    this.#drawChips();
    const { isLocal, isDone } = this.#found;
    fill(this.note, isLocal && isDone ? t("search_offline") : null);
    this.note.hidden = !(isLocal && isDone);
    const sections = this.#sections();
    fill(this.scroller, sections.length > 0 ? sections : this.#nothing());
    if (focus) this.element.querySelector(`[data-part="${CSS.escape(focus)}"]`)?.focus();
  }

  #drawChips() {
    const hasFilters = this.#tab === "all" || this.#tab === "messages" || this.#tab === "files";
    this.chips.hidden = !hasFilters;
    if (!hasFilters) return;
    const { from, time, kind } = this.#filter;
    const chip = (part, text, isOn, open) => {
      const button = h("button", { type: "button", class: "chip", "aria-haspopup": "menu", "aria-expanded": "false", "aria-pressed": String(isOn), dataset: { part }, onclick: () => open(button) }, text);
      return button;
    };
    fill(
      this.chips,
      chip("from", from ? t("search_from", { name: this.model.people.name(from) }) : t("search_from_anyone"), from !== "", (button) => this.#chooseFrom(button)),
      chip("time", t(`search_time_${time}`), time !== "any", (button) => this.#chooseOf(button, "time", Object.keys(TIMES))),
      this.#tab !== "files" && chip("kind", t(`search_kind_${kind}`), kind !== "any", (button) => this.#chooseOf(button, "kind", Object.keys(KINDS))),
    );
  }

  #chooseOf(button, name, values) {
    const items = values.map((value) => ({ text: t(`search_${name}_${value}`), checked: this.#filter[name] === value, act: () => this.#set({ [name]: value }) }));
    openMenu(button, button.textContent ?? "", items);
  }

  #chooseFrom(button) {
    const { model } = this;
    const peers = model.client.conversations.filter((one) => one.type === "single").slice(0, FROM_MAX).map((one) => one.peerId);
    const item = (userId, text) => ({ text, checked: this.#filter.from === userId, act: () => this.#set({ from: userId }) });
    openMenu(button, t("search_from_anyone"), [item("", t("search_from_anyone")), item(model.userId, t("you")), ...peers.map((id) => item(id, model.people.name(id)))]);
  }

  #set(change) {
    this.#filter = { ...this.#filter, ...change };
    this.#again();
  }

  #choose(tab) {
    this.#tab = tab;
    this.#again();
  }

  #again() {
    this.#round += 1;
    this.scroller.scrollTop = 0;
    this.draw();
    this.#search();
  }

  #sections() {
    const { model } = this;
    const { users, messages, files } = this.#found;
    const isAll = this.#tab === "all";
    const q = this.q.toLocaleLowerCase();
    const fits = (name, id) => name.toLocaleLowerCase().includes(q) || id.toLocaleLowerCase().includes(q);
    const known = model.client.conversations.filter((one) => {
      const face = model.face(one);
      return fits(face.name, face.id);
    });
    const peers = new Set(known.map((one) => one.peerId));
    const strangers = users.filter((user) => !peers.has(user.userId) && user.userId !== model.userId);
    const of = (type) => known.filter((one) => one.type === type).map((one) => this.#conversationRow(one));
    const people = [...of("single"), ...strangers.map((user) => this.#personRow(user))];
    const groups = of("group");
    const section = (title, rows, tab = "") => {
      if (rows.length === 0) return [];
      const all = isAll && tab && h("button", { type: "button", class: "link", onclick: () => this.#choose(tab) }, t("search_all_of"));
      return [h("h3", null, title, all), h("ul", { class: "convs" }, rows)];
    };
    const some = (list) => (isAll ? list.slice(0, FEW) : list);
    if (this.#tab === "people") return section(t("found_people"), people);
    if (this.#tab === "groups") return section(t("found_groups"), groups);
    if (this.#tab === "messages" || this.#tab === "files") return section(t(`found_${this.#tab}`), messages.map((hit) => this.#messageRow(hit)));
    return [
      ...section(t("found_people_groups"), [...people, ...groups]),
      ...section(t("found_messages"), some(messages).map((hit) => this.#messageRow(hit)), messages.length > FEW ? "messages" : ""),
      ...section(t("found_files"), some(files).map((hit) => this.#messageRow(hit)), files.length >= FEW ? "files" : ""),
    ];
  }

  #row(face, address, first, second, classes = "") {
    const attributes = { class: `conv ${classes}`.trim(), href: address, tabindex: "-1", onclick: () => this.#opened() };
    return h("li", null, h("a", attributes, avatar(face), h("span", { class: "lines" }, h("span", { class: "l1" }, first), h("span", { class: "l2" }, second))));
  }

  #conversationRow(conversation) {
    const face = this.model.face(conversation);
    const info = conversation.type === "group" ? this.model.groups.info(conversation.groupId) : null;
    const under = info ? t("n_members", { n: info.memberCount }) : marked(face.id, this.q);
    return this.#row(face, addressOf(conversation.id), [h("span", { class: "name ell", dir: "auto" }, marked(face.name, this.q))], [h("span", { class: "prev ell" }, under)]);
  }

  #personRow(user) {
    const face = this.model.personFace(user.userId);
    const address = addressOf(this.model.client.chatWith(user.userId).id);
    return this.#row(face, address, [h("span", { class: "name ell", dir: "auto" }, marked(face.name, this.q))], [h("span", { class: "prev ell" }, marked(user.userId, this.q))]);
  }

  #messageRow({ message, snippet, ranges }) {
    const { model } = this;
    const conversation = model.client.conversation(message.conversationId);
    const face = model.face(conversation);
    const isMine = message.senderId === model.userId;
    const who = isMine ? t("prefix", { name: t("you") }) : conversation.type === "group" ? t("prefix", { name: model.people.name(message.senderId) }) : "";
    const isFile = message.msgType === FILE;
    const second = [isFile && icon("file", "s"), h("span", { class: "prev ell", dir: "auto" }, who && h("span", { class: "who" }, who), inRanges(snippet, ranges))];
    const first = [h("span", { class: "name ell", dir: "auto" }, face.name), h("time", { class: "when" }, shortTime(message.sendAt))];
    return this.#row(face, messageAddress(message.conversationId, message.seq), first, second, isFile ? "" : "two");
  }

  /** The list stays for the next one; on narrow screens Back returns to it. */
  #opened() {
    this.around.leave();
  }

  #nothing() {
    const { isDone, isLocal } = this.#found;
    if (!isDone || this.#found.q !== this.q) return [h("p", { class: "sr", role: "status" }, t("loading"))];
    if (isLocal) return [];
    return [h("div", { class: "side-empty" }, icon("search"), h("b", null, t("nobody", { q: this.q })), h("span", null, t("nobody_hint")))];
  }

  // -- by keyboard ---------------------------------------------------------------------------------------

  get rows() {
    return [...this.scroller.querySelectorAll("a.conv")];
  }

  #key(event) {
    const at = this.rows.indexOf(document.activeElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: this.rows.length - 1 }[event.key];
    if (event.key === "Escape") {
      event.stopPropagation();
      this.around.field.focus();
    }
    if (next === undefined || at < 0) return;
    event.preventDefault();
    if (next < 0) this.around.field.focus();
    else this.rows[Math.min(next, this.rows.length - 1)]?.focus();
  }

  #tabKey(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const tab = TABS.at((TABS.indexOf(this.#tab) + step) % TABS.length);
    this.#choose(tab);
    this.tabs.querySelector("[aria-selected=true]")?.focus();
  }
}

/** The text with what was asked for marked, wherever it is. @param {string} text @param {string} q */
export function marked(text, q) {
  const at = q ? text.toLocaleLowerCase().indexOf(q.toLocaleLowerCase()) : -1;
  if (at < 0) return text;
  return [text.slice(0, at), h("mark", null, text.slice(at, at + q.length)), text.slice(at + q.length)];
}

/** Ranges count characters, not the halves of which strings are made. @param {string} text @param {[number, number][]} ranges */
export function inRanges(text, ranges) {
  const letters = [...text];
  const parts = [];
  let from = 0;
  for (const [start, end] of ranges ?? []) {
    parts.push(letters.slice(from, start).join(""), h("mark", null, letters.slice(start, end).join("")));
    from = end;
  }
  return [...parts, letters.slice(from).join("")];
}
