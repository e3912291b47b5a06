/**
 * The messages of a conversation, of which only those near the view are in the document.
 *
 * The scroller runs in reverse: 0 is the newest, so staying there follows what arrives without any script. Rows that
 * are not drawn are stood in for by two spacers made of their measured heights. After every change the row that was
 * being looked at is put back where it was, in the same frame.
 */

import { Emitter } from "../emitter.js";
import { arrange, h } from "../dom.js";
import { t } from "../i18n.js";
import { drawRow, ensureActions } from "./message.js";
import { sameRow } from "./rows.js";

const GUESS_PX = 56;
const DRAWN_MAX = 200;
const AROUND = 60;
const NEAR_END = 20;
export const FOLLOW_PX = 80;
const ARRIVING_MAX = 3;

export class Log extends Emitter {
  /** @type {import("./message.js").Row[]} */
  rows = [];
  from = 0;
  to = 0;
  #heights = new Map();
  #drawn = new Map();
  #index = new Map();
  #focusKey = "";
  #frame = 0;
  #places = new Map();

  /** @param {any} model */
  constructor(model) {
    super();
    this.model = model;
    this.above = h("li", { class: "spacer", "aria-hidden": "true" });
    this.below = h("li", { class: "spacer", "aria-hidden": "true" });
    this.list = h("ol", { class: "column" }, this.above, this.below);
    this.element = h("div", { class: "scroll log", tabindex: "-1", role: "region", "aria-label": t("messages") }, this.list);
    this.element.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    for (const name of ["pointerover", "focusin"])
      this.list.addEventListener(name, (event) => {
        const row = event.target.closest?.(".msg");
        if (!row) return;
        ensureActions(row);
        if (name === "focusin") this.#focusKey = row.dataset.key;
        if (name === "focusin") this.#tabStop();
      });
    this.resized = new ResizeObserver(() => this.#resized());
    this.resized.observe(this.element);
  }

  end() {
    this.resized.disconnect();
    cancelAnimationFrame(this.#frame);
  }

  /** How far the view is above the newest row. */
  get distance() {
    return Math.max(0, -this.element.scrollTop);
  }

  /** Whether what arrives is followed. The position itself decides: a flag could be older than the reader's last move. */
  get follows() {
    return this.distance < FOLLOW_PX;
  }

  /**
   * @param {import("./message.js").Row[]} rows
   * @param {{follow?: boolean, arriving?: boolean}} [how] follow: stay at the newest; arriving: new ones at the end may move in
   */
  show(rows, how = {}) {
    const before = this.#index;
    const last = this.rows.at(-1)?.key;
    this.#places = before;
    this.rows = rows;
    this.#index = new Map(rows.map((row, at) => [row.key, at]));
    const follow = how.follow ?? this.follows;
    const [from, to] = follow ? this.#newest() : this.#around(before);
    this.#draw(from, to, { follow });
    if (how.arriving && follow && last !== undefined) this.#moveIn(before);
  }

  #newest() {
    return [Math.max(0, this.rows.length - AROUND * 2), this.rows.length];
  }

  /** The same rows as before, wherever they are now. */
  #around(before) {
    const anchor = this.#anchor();
    const at = anchor ? this.#index.get(anchor.key) : undefined;
    if (at === undefined) return this.#rangeAt();
    const shift = at - (before.get(anchor.key) ?? at);
    return [Math.max(0, this.from + shift), Math.min(this.rows.length, this.to + shift)];
  }

  /** What is drawn has to be drawn again at the next `show`: a name has changed. */
  spoil() {
    for (const drawn of this.#drawn.values()) drawn.isStale = true;
  }

  // -- drawing -------------------------------------------------------------------------------------------

  /** @param {number} from @param {number} to @param {{follow?: boolean, isFree?: boolean}} [how] isFree: the view moves to another position */
  #draw(from, to, { follow = false, isFree = false } = {}) {
    const size = this.rows.length;
    this.to = Math.max(0, Math.min(size, to));
    this.from = Math.max(0, Math.min(from, this.to));
    if (this.to - this.from > DRAWN_MAX) {
      if (follow) this.from = this.to - DRAWN_MAX;
      else this.to = this.from + DRAWN_MAX;
    }
    const anchor = follow || isFree ? null : this.#anchor();
    const active = document.activeElement?.closest?.(".column > li");
    const elements = [this.above];
    const drawn = new Map();
    for (let at = this.from; at < this.to; at += 1) {
      const row = this.rows[at];
      const known = this.#drawn.get(row.key) ?? { element: h("li", { dataset: { key: row.key } }), row: null, isStale: true };
      if (known.isStale || !sameRow(row, known.row)) drawRow(known.element, row, this.model);
      known.row = row;
      known.isStale = false;
      drawn.set(row.key, known);
      elements.push(known.element);
    }
    this.#drawn = drawn;
    elements.push(this.below);
    arrange(this.list, elements);
    this.#setSpacers();
    this.#measure();
    if (active?.isConnected && !active.contains(document.activeElement)) active.focus({ preventScroll: true });
    else if (active && !active.isConnected) this.#focusInstead(active.dataset.key ?? "");
    this.#tabStop();
    if (follow) this.element.scrollTop = 0;
    else if (anchor) this.#putBack(anchor);
  }

  /** What had the focus is gone: the next message has it, else the one before, else the listener of `unfocused` finds a place. */
  #focusInstead(key) {
    const near = this.#index.get(key) ?? this.#places.get(key) ?? this.to;
    const isHere = (at) => at >= this.from && at < this.to && this.rows[at]?.kind === "message";
    for (let step = 0; step < this.rows.length; step += 1)
      for (const at of [near + step, near - 1 - step])
        if (isHere(at)) {
          this.#focusKey = this.rows[at].key;
          this.#drawn.get(this.#focusKey).element.focus({ preventScroll: true });
          return;
        }
    this.emit("unfocused");
  }

  #height(at) {
    return this.#heights.get(this.rows[at].key) ?? GUESS_PX;
  }

  #setSpacers() {
    let above = 0;
    let below = 0;
    for (let at = 0; at < this.from; at += 1) above += this.#height(at);
    for (let at = this.to; at < this.rows.length; at += 1) below += this.#height(at);
    this.above.style.setProperty("height", `${above}px`);
    this.below.style.setProperty("height", `${below}px`);
  }

  /** From top to top: margins between rows belong to them. */
  #measure() {
    let next = this.below.getBoundingClientRect().top;
    for (let at = this.to - 1; at >= this.from; at -= 1) {
      const { key } = this.rows[at];
      const { top } = this.#drawn.get(key).element.getBoundingClientRect();
      this.#heights.set(key, next - top);
      next = top;
    }
    if (this.#heights.size > 5000) for (const key of this.#heights.keys()) if (!this.#index.has(key)) this.#heights.delete(key);
  }

  /** The first message in view, and where it is. Days and other lines between messages move when more are loaded. */
  #anchor() {
    const top = this.element.getBoundingClientRect().top;
    for (let at = 0; at < this.list.children.length; at += 1) {
      const element = this.list.children[at];
      const { key } = element.dataset;
      const kind = this.#drawn.get(key)?.row?.kind;
      if (kind !== "message" && kind !== "event") continue;
      const box = element.getBoundingClientRect();
      if (box.bottom > top + 1) return { key, offset: box.top - top };
    }
    return null;
  }

  #putBack(anchor) {
    const element = this.#drawn.get(anchor.key)?.element;
    if (!element) return;
    const moved = element.getBoundingClientRect().top - this.element.getBoundingClientRect().top - anchor.offset;
    if (Math.abs(moved) > 0.5) this.element.scrollTop += moved;
  }

  #moveIn(before) {
    if (!document.hasFocus()) return;
    const fresh = [];
    for (let at = this.rows.length - 1; at >= this.from && !before.has(this.rows[at].key); at -= 1) fresh.push(this.rows[at]);
    if (fresh.length > ARRIVING_MAX) return;
    for (const row of fresh) {
      const element = this.#drawn.get(row.key)?.element;
      element?.classList.add("arriving");
      element?.addEventListener("animationend", () => element.classList.remove("arriving"), { once: true });
    }
  }

  // -- scrolling -----------------------------------------------------------------------------------------

  #scrolled() {
    if (this.#frame) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      const [top, bottom] = this.#inView();
      const wantsUp = this.from > 0 && top - this.from < NEAR_END;
      const wantsDown = this.to < this.rows.length && this.to - bottom < NEAR_END;
      if (wantsUp || wantsDown) this.#draw(top - AROUND, bottom + AROUND);
      this.emit("scroll");
    });
  }

  /** The first and the last row in view, reckoned from the heights. @returns {[number, number]} */
  #inView() {
    const low = this.distance;
    const high = low + this.element.clientHeight;
    let sum = 0;
    let bottom = this.rows.length - 1;
    let at = this.rows.length - 1;
    for (; at > 0; at -= 1) {
      sum += this.#height(at);
      if (sum < low) bottom = at - 1;
      if (sum >= high) break;
    }
    return [Math.max(0, at), Math.max(0, bottom)];
  }

  #rangeAt() {
    const [top, bottom] = this.#inView();
    return [top - AROUND, bottom + AROUND + 1];
  }

  #resized() {
    if (this.rows.length === 0) return;
    this.#measure();
    this.emit("scroll");
  }

  toNewest() {
    const [from, to] = this.#newest();
    this.#draw(from, to, { follow: true });
  }

  /** Puts a row a third below the top. @param {string} key @returns {HTMLElement | null} */
  reveal(key, share = 1 / 3) {
    const at = this.#index.get(key);
    if (at === undefined) return null;
    this.#draw(at - AROUND, at + AROUND, { isFree: true });
    const element = this.#drawn.get(key).element;
    const box = this.element.getBoundingClientRect();
    this.element.scrollTop += element.getBoundingClientRect().top - box.top - box.height * share;
    return element;
  }

  /** Where the reader is, so that they find the place again. @returns {{key: string, offset: number} | null} */
  place() {
    return this.follows ? null : this.#anchor();
  }

  /** @param {{key: string, offset: number}} place */
  goTo(place) {
    const element = this.reveal(place.key, 0);
    if (element) this.#putBack(place);
    return element !== null;
  }

  /** @param {string} key */
  elementOf(key) {
    return this.#drawn.get(key)?.element ?? null;
  }

  /** @param {Element | null} element @returns {any | null} */
  rowOf(element) {
    const key = element?.closest?.(".column > li")?.dataset.key;
    return key === undefined ? null : (this.rows[this.#index.get(key)] ?? null);
  }

  get isAtTop() {
    return this.element.scrollHeight - this.element.clientHeight - this.distance < 4;
  }

  /** The first message in view. */
  firstSeen() {
    const anchor = this.#anchor();
    return anchor ? (this.rows[this.#index.get(anchor.key)] ?? null) : null;
  }

  /** Whether the name of a day is that near to the top. @param {number} px */
  hasDayWithin(px) {
    const top = this.element.getBoundingClientRect().top;
    for (const element of this.list.querySelectorAll(".day")) {
      const box = element.getBoundingClientRect();
      if (box.bottom > top && box.top < top + px) return true;
    }
    return false;
  }

  /** The place where the keyboard continues. @param {HTMLElement} element */
  mark(element) {
    this.#focusKey = element.dataset.key ?? "";
    this.#tabStop();
  }

  /** The last row of which at least half is in view. */
  lastSeen() {
    const { bottom } = this.element.getBoundingClientRect();
    for (let at = this.to - 1; at >= this.from; at -= 1) {
      const box = this.#drawn.get(this.rows[at].key).element.getBoundingClientRect();
      if (box.top + Math.min(box.height, this.element.clientHeight) / 2 <= bottom + 1) return this.rows[at];
    }
    return null;
  }

  // -- by keyboard ---------------------------------------------------------------------------------------

  /** @param {number} step @param {Element | null} from null: the newest */
  moveFocus(step, from = null) {
    const isMessage = (row) => row?.kind === "message";
    let at = from ? (this.#index.get(from.closest(".column > li")?.dataset.key) ?? this.rows.length) + step : this.rows.length - 1;
    while (at >= 0 && at < this.rows.length && !isMessage(this.rows[at])) at += step || -1;
    if (!isMessage(this.rows[at])) return false;
    this.focusRow(this.rows[at].key);
    return true;
  }

  /** @param {string} key */
  focusRow(key) {
    this.#focusKey = key;
    if (!this.#drawn.has(key)) this.reveal(key);
    const element = this.#drawn.get(key)?.element;
    this.#tabStop();
    element?.focus({ preventScroll: true });
    element?.scrollIntoView({ block: "nearest" });
  }

  /** One stop for the Tab key: the message last focused, at first the newest. */
  #tabStop() {
    const isMessage = (element) => element?.classList.contains("msg");
    let stop = this.#drawn.get(this.#focusKey)?.element;
    if (!isMessage(stop)) stop = [...this.#drawn.values()].findLast(({ element }) => isMessage(element))?.element;
    for (const { element } of this.#drawn.values()) if (element.tabIndex === 0 && element !== stop) element.tabIndex = -1;
    if (stop && stop.tabIndex !== 0) stop.tabIndex = 0;
  }
}
