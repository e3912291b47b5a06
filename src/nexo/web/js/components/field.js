/** A labelled input whose error takes the place of its help. */

import { fill, h, icon, iconButton, newId } from "../dom.js";
import { t } from "../i18n.js";

/**
 * @param {{label: string, help?: string, value?: string, type?: string, multiline?: boolean, attributes?: Record<string, any>}} given
 */
export function field(given) {
  const [id, noteId] = [newId("f"), newId("f")];
  const attributes = { id, "aria-describedby": given.help ? noteId : null, ...given.attributes };
  const input = /** @type {HTMLInputElement | HTMLTextAreaElement} */ (
    given.multiline ? h("textarea", { rows: 3, ...attributes }) : h("input", { type: given.type ?? "text", ...attributes })
  );
  input.value = given.value ?? "";
  const box = h("span", { class: given.multiline ? "input multiline" : "input" }, input);
  if (given.type === "password") box.append(revealButton(/** @type {HTMLInputElement} */ (input)));
  const note = h("span", { class: "help", id: noteId }, given.help);
  note.hidden = !given.help;
  const element = h("div", { class: "fieldset" }, h("label", { for: id }, given.label), box, note);

  /** @param {string} text empty: it is right */
  const setError = (text) => {
    input.setAttribute("aria-invalid", text ? "true" : "false");
    note.className = text ? "err" : "help";
    note.hidden = !text && !given.help;
    if (text) input.setAttribute("aria-describedby", noteId);
    if (text) note.setAttribute("role", "alert");
    else note.removeAttribute("role");
    if (text) fill(note, icon("alert", "s"), h("span", null, text));
    else fill(note, given.help);
  };
  input.addEventListener("input", () => {
    if (input.getAttribute("aria-invalid") === "true") setError("");
  });
  return { element, input, setError };
}

function revealButton(input) {
  const reveal = iconButton("eye", t("show_password"), { "aria-pressed": "false" });
  reveal.addEventListener("click", () => {
    const shown = input.type === "password";
    input.type = shown ? "text" : "password";
    reveal.setAttribute("aria-pressed", String(shown));
  });
  return reveal;
}

/**
 * One of a few, side by side.
 * @param {{label: string, options: [string, string][], value: string, onchange?: (value: string) => void}} given
 */
export function segmented(given) {
  const labelId = newId("f");
  let value = given.value;
  const choose = (chosen, focus) => {
    value = chosen;
    for (const option of group.children) {
      const isOn = option.dataset.value === chosen;
      option.setAttribute("aria-checked", String(isOn));
      option.setAttribute("tabindex", isOn ? "0" : "-1");
      if (isOn && focus) option.focus();
    }
  };
  const group = h(
    "div",
    { class: "seg", role: "radiogroup", "aria-labelledby": labelId },
    given.options.map(([key, text]) =>
      h("button", { type: "button", role: "radio", dataset: { value: key }, onclick: () => pick(key) }, text),
    ),
  );
  const pick = (key, focus = false) => {
    choose(key, focus);
    given.onchange?.(key);
  };
  group.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const keys = given.options.map(([key]) => key);
    pick(keys.at((keys.indexOf(value) + step) % keys.length), true);
  });
  choose(value, false);
  const element = h("div", { class: "fieldset" }, h("span", { class: "lab", id: labelId }, given.label), group);
  return { element, value: () => value };
}
