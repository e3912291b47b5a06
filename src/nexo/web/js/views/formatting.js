/** Marks in the text that is being written. Every change goes through the browser's own editing, so that undo works. */

import { h, iconButton } from "../dom.js";
import { t } from "../i18n.js";

/** @param {HTMLTextAreaElement} field @param {string} text in place of the selection */
export function insert(field, text) {
  field.focus();
  if (document.execCommand("insertText", false, text)) return;
  field.setRangeText(text, field.selectionStart, field.selectionEnd, "end");
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

/** Puts marks around the selection, or takes them away. @param {HTMLTextAreaElement} field @param {string} mark */
export function wrap(field, mark) {
  const { selectionStart: start, selectionEnd: end, value } = field;
  const inner = value.slice(start, end);
  const size = mark.length;
  const isOutside = value.slice(start - size, start) === mark && value.slice(end, end + size) === mark;
  if (isOutside) {
    field.setSelectionRange(start - size, end + size);
    insert(field, inner);
    field.setSelectionRange(start - size, end - size);
    return;
  }
  insert(field, mark + inner + mark);
  field.setSelectionRange(start + size, end + size);
}

function code(field) {
  const inner = field.value.slice(field.selectionStart, field.selectionEnd);
  if (!inner.includes("\n")) return wrap(field, "`");
  return insert(field, `\`\`\`\n${inner}\n\`\`\``);
}

/** @param {HTMLTextAreaElement} field @param {string} [address] */
export function link(field, address = "https://") {
  const start = field.selectionStart;
  const inner = field.value.slice(start, field.selectionEnd);
  insert(field, `[${inner}](${address})`);
  if (!inner) field.setSelectionRange(start + 1, start + 1);
  else field.setSelectionRange(start + inner.length + 3, start + inner.length + 3 + address.length);
}

function list(field) {
  const { value, selectionStart, selectionEnd } = field;
  const from = value.lastIndexOf("\n", selectionStart - 1) + 1;
  const to = Math.max(selectionEnd, from);
  const lines = value.slice(from, to).split("\n");
  const isList = lines.every((line) => line.startsWith("- "));
  field.setSelectionRange(from, to);
  insert(field, lines.map((line) => (isList ? line.slice(2) : `- ${line}`)).join("\n"));
}

const ACTIONS = {
  bold: (field) => wrap(field, "**"),
  italic: (field) => wrap(field, "_"),
  strike: (field) => wrap(field, "~~"),
  code,
  link: (field) => link(field),
  list,
};

/** @param {KeyboardEvent} event @param {HTMLTextAreaElement} field @returns {boolean} whether it was one of these keys */
export function formatKey(event, field) {
  if (!(event.ctrlKey || event.metaKey) || event.altKey) return false;
  const plain = { KeyB: "bold", KeyI: "italic", KeyE: "code" };
  const shifted = { KeyX: "strike", KeyU: "link", Digit8: "list" };
  const name = (event.shiftKey ? shifted : plain)[event.code];
  if (!name) return false;
  ACTIONS[name](field);
  return true;
}

/** @param {HTMLTextAreaElement} field @param {(() => void) | null} onmention */
export function formatBar(field, onmention) {
  const one = (name, keys) => iconButton(name, t(`format_${name}`), { title: `${t(`format_${name}`)}, ${keys}`, onclick: () => ACTIONS[name](field) });
  const gap = () => h("i", { class: "v" });
  return h(
    "div",
    { class: "fmt", role: "toolbar", "aria-label": t("formatting") },
    one("bold", "Ctrl B"),
    one("italic", "Ctrl I"),
    one("strike", "Ctrl Shift X"),
    gap(),
    one("code", "Ctrl E"),
    one("link", "Ctrl Shift U"),
    one("list", "Ctrl Shift 8"),
    onmention && [gap(), iconButton("at", t("mention_someone"), { onclick: onmention })],
    h("span", { class: "end mouse-only", "aria-hidden": "true" }, t("format_hint")),
  );
}
