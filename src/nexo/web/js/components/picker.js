/** Choosing people: those already known at once, others by name or user id. */

import { findPeople } from "../peoplesearch.js";
import { fill, h, icon, newId } from "../dom.js";
import { t } from "../i18n.js";
import { avatar } from "./avatar.js";

const KNOWN_MAX = 50;
const SEARCH_AFTER_MS = 200;

export class PeoplePicker {
  /** @type {Set<string>} */
  chosen = new Set();
  #shown = [];
  #active = -1;
  #timer = 0;
  #listId = newId("p");

  /**
   * @param {any} model
   * @param {{many: boolean, label: string, tags?: (userId: string) => string, candidates?: () => string[],
   *   onchange?: () => void, onpick?: (userId: string) => void}} given
   *   `tags`: why a user cannot be chosen; `candidates`: only among these
   */
  constructor(model, given) {
    this.model = model;
    this.given = given;
    this.chips = h("div", { class: "chips" });
    this.field = /** @type {HTMLInputElement} */ (
      h("input", { type: "search", placeholder: t("name_or_id"), autocomplete: "off", role: "combobox", "aria-expanded": "true", "aria-controls": this.#listId, "aria-label": t("search_people"), autofocus: true })
    );
    this.list = h("ul", { role: "listbox", id: this.#listId, "aria-multiselectable": given.many ? "true" : null, "aria-label": given.label });
    this.nothing = h("p", { class: "pickhint" });
    this.element = h("div", { class: "picker" }, this.chips, h("label", { class: "search" }, icon("search", "s"), this.field), this.list, this.nothing);
    this.field.addEventListener("input", () => this.#search());
    this.field.addEventListener("keydown", (event) => this.#key(event));
    this.list.addEventListener("click", (event) => this.#choose(event.target.closest("[role=option]")?.dataset.id));
    this.#showKnown("");
  }

  #showKnown(q) {
    const wanted = q.toLocaleLowerCase();
    const ids = this.given.candidates?.() ?? this.model.people.all().map((person) => person.userId);
    const fits = (id) => !wanted || id.toLocaleLowerCase().startsWith(wanted) || this.model.people.name(id).toLocaleLowerCase().includes(wanted);
    const found = ids.filter((id) => id !== this.model.userId && fits(id));
    found.sort((a, b) => Number(this.model.isOnline(b)) - Number(this.model.isOnline(a)) || this.model.people.name(a).localeCompare(this.model.people.name(b)));
    this.#show(found.slice(0, KNOWN_MAX), q);
  }

  #search() {
    clearTimeout(this.#timer);
    const q = this.field.value.trim();
    this.#showKnown(q);
    if (!q || this.given.candidates) return;
    this.#timer = window.setTimeout(async () => {
      try {
        const found = (await findPeople(this.model, q)).map((user) => user.userId);
        if (this.field.value.trim() !== q) return;
        this.#show([...new Set([...this.#shown, ...found])].filter((id) => id !== this.model.userId), q);
        if (this.#shown.length === 0) this.#sayNobody(q);
      } catch {
        if (this.#shown.length === 0) this.#sayNobody(q);
      }
    }, SEARCH_AFTER_MS);
  }

  #sayNobody(q) {
    fill(this.nothing, h("b", null, t("nobody", { q })), " ", t("nobody_hint"));
  }

  #show(ids, q) {
    this.#shown = ids;
    this.#active = q && ids.length > 0 ? 0 : -1;
    fill(this.nothing, ids.length === 0 && !q && !this.given.candidates ? t("picker_hint") : "");
    this.#draw();
  }

  #draw() {
    fill(this.list, this.#shown.map((id, at) => this.#option(id, at)));
    if (this.#active >= 0) this.field.setAttribute("aria-activedescendant", `${this.#listId}-${this.#active}`);
    else this.field.removeAttribute("aria-activedescendant");
    if (!this.given.many) return;
    fill(this.chips, [...this.chosen].map((id) => this.#chip(id)));
    this.chips.hidden = this.chosen.size === 0;
  }

  #option(id, at) {
    const face = this.model.personFace(id);
    const tag = this.given.tags?.(id) ?? "";
    const isOn = this.chosen.has(id);
    const attributes = {
      class: at === this.#active ? "pick is-active" : "pick",
      role: "option",
      id: `${this.#listId}-${at}`,
      dataset: { id },
      "aria-selected": String(isOn || (!this.given.many && at === this.#active)),
      "aria-disabled": tag ? "true" : null,
    };
    const end = tag ? h("span", { class: "tag" }, tag) : this.given.many ? h("span", { class: isOn ? "box on" : "box" }, icon("check", "s")) : h("span");
    const sub = face.online ? t("id_online", { id }) : id;
    return h("li", attributes, avatar(face, "s36"), h("span", { class: "ell" }, h("span", { class: "name" }, face.name), h("br"), h("span", { class: "sub" }, sub)), end);
  }

  #chip(id) {
    const name = this.model.people.name(id);
    const remove = () => this.#choose(id);
    return h("span", { class: "chip" }, avatar({ ...this.model.personFace(id), online: false }, "s24"), name, h("button", { type: "button", "aria-label": t("remove_x", { name }), onclick: remove }, icon("close", "xs")));
  }

  #choose(id) {
    if (!id || this.given.tags?.(id)) return;
    if (!this.given.many) {
      this.chosen = new Set([id]);
      this.given.onpick?.(id);
    } else if (!this.chosen.delete(id)) {
      this.chosen.add(id);
      this.field.value = "";
      this.#showKnown("");
    }
    this.#draw();
    this.field.focus();
    this.given.onchange?.();
  }

  #key(event) {
    const size = this.#shown.length;
    if (event.key === "ArrowDown" && size) this.#active = (this.#active + 1) % size;
    else if (event.key === "ArrowUp" && size) this.#active = (this.#active + size - 1) % size;
    else if (event.key === "Enter" && !event.isComposing) {
      if (this.#active >= 0) this.#choose(this.#shown[this.#active]);
    } else if (event.key === "Backspace" && !this.field.value && this.given.many) {
      const last = [...this.chosen].at(-1);
      if (last) this.#choose(last);
      return;
    } else return;
    event.preventDefault();
    this.#draw();
    this.list.children[this.#active]?.scrollIntoView({ block: "nearest" });
  }
}
