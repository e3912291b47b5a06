/** Finding within a conversation: a bar under its header, from hit to hit; and a calendar that jumps to a day. */

import { openPopover } from "../components/menu.js";
import { toast } from "../components/toast.js";
import { fill, h, icon, iconButton } from "../dom.js";
import { tellFailure } from "../failures.js";
import { dayOf } from "../format.js";
import { locale, t } from "../i18n.js";
import { openLayer } from "../layers.js";

const AFTER_MS = 250;
const PAGE = 50;

export class FindBar {
  #hits = [];
  #at = -1;
  #cursor = "";
  #timer = 0;
  #round = 0;

  /** @param {any} model @param {any} chat the view of the conversation @param {() => void} onclose */
  constructor(model, chat, onclose) {
    this.model = model;
    this.chat = chat;
    this.conversation = chat.conversation;
    this.onclose = onclose;
    const label = t("find_label");
    this.field = /** @type {HTMLInputElement} */ (h("input", { type: "search", placeholder: label, autocomplete: "off", enterkeyhint: "search" }));
    this.count = h("span", { class: "num", role: "status" });
    this.date = iconButton("calendar", t("jump_to_date"), { "aria-haspopup": "dialog", "aria-expanded": "false", onclick: () => this.#calendar() });
    this.element = h(
      "div",
      { class: "findbar", role: "search" },
      h("label", { class: "search" }, icon("search", "s"), h("span", { class: "sr" }, label), this.field),
      this.count,
      iconButton("up", t("find_older"), { onclick: () => this.#move(1) }),
      iconButton("chevd", t("find_newer"), { onclick: () => this.#move(-1) }),
      this.date,
      iconButton("close", t("close"), { onclick: () => this.close() }),
    );
    this.field.addEventListener("input", (event) => {
      if (/** @type {InputEvent} */ (event).isComposing) return;
      clearTimeout(this.#timer);
      this.#timer = window.setTimeout(() => this.#search(), AFTER_MS);
    });
    this.element.addEventListener("keydown", (event) => this.#key(event));
    this.leave = openLayer(() => this.close());
  }

  focus() {
    this.field.focus();
    this.field.select();
  }

  close() {
    clearTimeout(this.#timer);
    this.#round += 1;
    this.element.remove();
    this.leave();
    this.onclose();
  }

  #key(event) {
    if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      this.close();
    } else if (event.key === "Enter" && event.target === this.field && !event.isComposing) {
      event.preventDefault();
      this.#move(event.shiftKey ? -1 : 1);
    }
  }

  async #search() {
    const q = this.field.value.trim();
    this.#round += 1;
    const round = this.#round;
    this.#hits = [];
    this.#at = -1;
    if (!q) return this.#draw();
    try {
      const page = await this.model.client.search(q, { conversationId: this.conversation.id, limit: PAGE });
      if (round !== this.#round) return;
      this.#hits = page.results;
      this.#cursor = page.hasMore ? page.nextCursor : "";
      this.#draw();
      if (this.#hits.length > 0) this.#move(1);
    } catch (error) {
      if (round === this.#round) fill(this.count, this.model.isConnected ? t("find_failed") : t("find_offline"));
    }
  }

  #draw() {
    const n = this.#hits.length;
    fill(this.count, !this.field.value.trim() ? "" : n === 0 ? t("find_none") : t("find_count", { i: this.#at + 1, n: this.#cursor ? `${n}+` : n }));
  }

  /** @param {number} step towards older ones */
  async #move(step) {
    const next = this.#at + step;
    if (next < 0 || (next >= this.#hits.length && !this.#cursor)) return;
    if (next >= this.#hits.length) {
      const round = this.#round;
      const page = await this.model.client.search(this.field.value.trim(), { conversationId: this.conversation.id, limit: PAGE, cursor: this.#cursor });
      if (round !== this.#round) return;
      this.#hits.push(...page.results);
      this.#cursor = page.hasMore ? page.nextCursor : "";
      if (next >= this.#hits.length) return;
    }
    this.#at = next;
    this.#draw();
    this.chat.jumpTo(this.#hits[next].message.seq);
  }

  #calendar() {
    const close = openPopover(this.date, calendar(async (time) => {
      close();
      try {
        const seq = await this.conversation.at(time);
        if (seq === null) return toast(t("find_nothing_later"));
        await this.chat.jumpTo(seq);
        const found = this.conversation.messages.find((message) => message.seq === seq);
        if (found && dayOf(found.sendAt) !== dayOf(time)) toast(t("find_next_day"));
      } catch (error) {
        tellFailure(error);
      }
    }), { keepsTab: true });
  }
}

/** A month of days; later days cannot be chosen. @param {(time: number) => void} choose the first moment of the day */
export function calendar(choose) {
  const now = new Date();
  let [year, month] = [now.getFullYear(), now.getMonth()];
  const element = h("div", { class: "menu cal", role: "dialog", "aria-label": t("jump_to_date") });
  const format = (date, options) => new Intl.DateTimeFormat(locale(), options).format(date);
  const draw = (focusDay = 0) => {
    const title = format(new Date(year, month), { month: "long", year: "numeric" });
    const first = (new Date(year, month, 1).getDay() + 6) % 7;
    const days = new Date(year, month + 1, 0).getDate();
    const move = (step) => {
      [year, month] = [new Date(year, month + step).getFullYear(), new Date(year, month + step).getMonth()];
      draw(1);
    };
    const week = Array.from({ length: 7 }, (_, at) => h("span", { "aria-hidden": "true" }, format(new Date(2024, 0, 1 + at), { weekday: "narrow" })));
    const cells = Array.from({ length: days }, (_, at) => {
      const date = new Date(year, month, at + 1);
      const isToday = date.toDateString() === now.toDateString();
      return h("button", { type: "button", disabled: date > now, "aria-current": isToday ? "date" : null, "aria-label": format(date, { dateStyle: "long" }), onclick: () => choose(date.getTime()) }, String(at + 1));
    });
    fill(
      element,
      h("header", null, iconButton("back", t("month_before"), { onclick: () => move(-1) }, "s"), h("b", null, title), iconButton("next", t("month_after"), { onclick: () => move(1) }, "s")),
      h("div", { class: "d" }, week, Array.from({ length: first }, () => h("span")), cells),
    );
    if (focusDay) cells[Math.min(focusDay, days) - 1].focus();
  };
  element.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -7, ArrowDown: 7 }[event.key];
    const cells = [...element.querySelectorAll(".d button")];
    const at = cells.indexOf(document.activeElement);
    if (!step || at < 0) return;
    event.preventDefault();
    /** @type {HTMLElement | undefined} */ (cells[at + step])?.focus();
  });
  draw();
  queueMicrotask(() => /** @type {HTMLElement | null} */ (element.querySelector("[aria-current=date]"))?.focus());
  return element;
}
