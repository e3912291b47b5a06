/** The list that opens after an @ in a group: a combobox on the text field. */

import { avatar } from "./avatar.js";
import { fill, h, icon, newId } from "../dom.js";
import { t } from "../i18n.js";

const SHOWN_MAX = 6;

export class MentionList {
  #options = [];
  #active = 0;
  #query = null;
  #id = newId("m");

  /**
   * @param {HTMLTextAreaElement} field
   * @param {() => {userId: string, name: string}[]} candidates all members that can be mentioned; "@all" where allowed
   * @param {(candidate: {userId: string, name: string}) => void} onpick
   */
  constructor(field, candidates, onpick) {
    this.field = field;
    this.candidates = candidates;
    this.onpick = onpick;
    this.element = h("div", { class: "menu pop mentions", id: this.#id, role: "listbox", "aria-label": t("mention_someone") });
    this.element.hidden = true;
    field.setAttribute("aria-autocomplete", "list");
    field.setAttribute("aria-haspopup", "listbox"); // a text field has no aria-expanded
    field.setAttribute("aria-controls", this.#id);
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
  update() {
    const before = this.field.value.slice(0, this.field.selectionStart);
    const match = /(^|[\s(（，。、])@([^\s@]{0,40})$/u.exec(before);
    if (!match) return this.close();
    this.#query = match[2];
    const wanted = match[2].toLocaleLowerCase();
    const fits = ({ userId, name }) =>
      name.toLocaleLowerCase().split(/\s+/).some((word) => word.startsWith(wanted)) ||
      name.toLocaleLowerCase().startsWith(wanted) ||
      userId.toLocaleLowerCase().replace(/^@/, "").startsWith(wanted);
    this.#options = this.candidates().filter(fits).slice(0, SHOWN_MAX);
    if (this.#options.length === 0) return this.close();
    this.#active = Math.min(this.#active, this.#options.length - 1);
    this.#draw();
    return undefined;
  }

  #draw() {
    const label = this.#query ? t("members_matching", { q: this.#query }) : t("members");
    const options = this.#options.map(({ userId, name }, at) => {
      const isOn = at === this.#active;
      const attributes = { role: "option", id: `${this.#id}-${at}`, "aria-selected": String(isOn), class: isOn ? "is-active" : "", dataset: { at } };
      const sign = userId === "@all" ? icon("megaphone") : avatar({ id: userId, name }, "s24");
      return h("div", attributes, sign, h("span", { class: "ell" }, name), h("span", { class: "end" }, userId));
    });
    fill(this.element, h("div", { class: "lbl", role: "presentation" }, label), options);
    this.element.hidden = false;
    this.field.setAttribute("aria-activedescendant", `${this.#id}-${this.#active}`);
  }

  close() {
    this.#active = 0;
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
    const start = field.selectionStart - (this.#query?.length ?? 0);
    const text = chosen.userId === "@all" ? "all" : chosen.name;
    field.setRangeText(`${text} `, start, field.selectionStart, "end");
    this.close();
    this.onpick(chosen);
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
}
