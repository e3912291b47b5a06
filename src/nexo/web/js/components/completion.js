/** The list that opens after `:na` in a text: a combobox on the text field, as for mentions. */

import { fill, h, newId } from "../dom.js";
import { findEmoji, loadEmoji, nameOf, useEmoji, withTone } from "../emojinames.js";
import { t } from "../i18n.js";

const SHOWN_MAX = 6;
const FROM_CHARS = 2;

export class EmojiCompletion {
  #options = [];
  #active = 0;
  #query = "";
  #id = newId("e");

  /** @param {HTMLTextAreaElement} field */
  constructor(field) {
    this.field = field;
    this.element = h("div", { class: "menu pop mentions", id: this.#id, role: "listbox", "aria-label": t("emoji") });
    this.element.hidden = true;
    this.element.addEventListener("pointerdown", (event) => {
      event.preventDefault(); // the field keeps the focus
      const option = event.target.closest("[role=option]");
      if (option) this.#pick(Number(option.dataset.at));
    });
  }

  get isOpen() {
    return !this.element.hidden;
  }

  /** Looks at what stands before the cursor. */
  async update() {
    const before = this.field.value.slice(0, this.field.selectionStart).slice(-40);
    const match = /(?:^|[\s(（，。、])[:：]([\p{L}\p{N}_+-]{1,30})$/u.exec(before);
    if (!match || (match[1].length < FROM_CHARS && /^[\x00-\x7F]*$/.test(match[1]))) return this.close();
    this.#query = match[1];
    const asked = this.#query;
    let groups;
    try {
      groups = await loadEmoji();
    } catch {
      return this.close();
    }
    if (asked !== this.#query || this.field !== document.activeElement) return undefined;
    this.#options = findEmoji(groups, asked, SHOWN_MAX);
    if (this.#options.length === 0) return this.close();
    this.#active = Math.min(this.#active, this.#options.length - 1);
    this.#draw();
    return undefined;
  }

  #draw() {
    const options = this.#options.map((emoji, at) => {
      const isOn = at === this.#active;
      const attributes = { role: "option", id: `${this.#id}-${at}`, "aria-selected": String(isOn), class: isOn ? "is-active" : "", dataset: { at } };
      return h("div", attributes, h("span", { class: "emo" }, withTone(emoji)), h("span", { class: "ell" }, nameOf(emoji)), h("span", { class: "end" }, `:${emoji.names[0]}:`));
    });
    fill(this.element, h("div", { class: "lbl", role: "presentation" }, t("emoji_matching", { q: this.#query })), options);
    this.element.hidden = false;
    this.field.setAttribute("aria-controls", this.#id);
    this.field.setAttribute("aria-activedescendant", `${this.#id}-${this.#active}`);
  }

  close() {
    this.#active = 0;
    this.#query = "";
    if (!this.isOpen) return;
    this.element.hidden = true;
    this.field.removeAttribute("aria-activedescendant");
  }

  /** @param {KeyboardEvent} event @returns {boolean} whether it was for this list */
  key(event) {
    if (!this.isOpen || event.isComposing) return false;
    const size = this.#options.length;
    if (event.key === "ArrowDown") this.#active = (this.#active + 1) % size;
    else if (event.key === "ArrowUp") this.#active = (this.#active + size - 1) % size;
    else if (event.key === "Enter" || event.key === "Tab") {
      this.#pick(this.#active);
      return true;
    } else if (event.key === "Escape") {
      this.close();
      return true;
    } else return false;
    this.#draw();
    return true;
  }

  #pick(at) {
    const chosen = this.#options[at];
    if (!chosen) return;
    const { field } = this;
    const sign = withTone(chosen);
    const start = field.selectionStart - this.#query.length - 1;
    field.setRangeText(`${sign} `, start, field.selectionStart, "end");
    useEmoji(sign);
    this.close();
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
}
