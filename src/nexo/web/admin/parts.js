/** Parts that the sections of the console share: tables, facts, questions with a reason. */

import { button, fill, h, icon } from "../js/dom.js";
import { locale, t } from "./texts.js";

/** @param {number | null | undefined} ms */
export function when(ms) {
  return ms ? new Intl.DateTimeFormat(locale(), { dateStyle: "medium", timeStyle: "medium" }).format(ms) : "–";
}

/** @param {string} label @param {(text: string) => void} search */
export function searchField(label, search) {
  const input = /** @type {HTMLInputElement} */ (h("input", { type: "search", placeholder: label, autocomplete: "off", autocapitalize: "none", spellcheck: "false" }));
  let timer = 0;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => search(input.value.trim()), 250);
  });
  return h("label", { class: "search" }, icon("search", "s"), h("span", { class: "sr" }, label), input);
}

/** @param {string[]} heads @param {any[][]} rows @param {(at: number) => void} [open] a row opens a card */
export function table(heads, rows, open) {
  const row = (cells, at) => {
    const element = h("tr", open ? { tabindex: "0", onclick: () => choose(at), onkeydown: (event) => event.key === "Enter" && choose(at) } : null, cells.map((cell) => h("td", null, cell)));
    return element;
  };
  const body = h("tbody", null, rows.map(row));
  const choose = (at) => {
    [...body.children].forEach((one, index) => one.classList.toggle("is-open", index === at));
    open?.(at);
  };
  return h("div", { class: "tblwrap", tabindex: "0", role: "region", "aria-label": heads[0] }, h("table", { class: "tbl" }, h("thead", null, h("tr", null, heads.map((head) => h("th", { scope: "col" }, head)))), body));
}

/** @param {string} title @param {...any} content */
export const card = (title, ...content) => h("section", { class: "card" }, h("h2", null, title), content);

/** @param {[string, any][]} facts */
export const factList = (facts) => h("dl", { class: "kv" }, facts.filter(([, value]) => value !== null && value !== undefined && value !== "").map(([name, value]) => [h("dt", null, name), h("dd", null, value)]));

/** @param {any} error */
export const failure = (error) => h("p", { class: "failed", role: "alert" }, error?.name === "not_found" || /_not_found$/.test(error?.name ?? "") ? t("not_found") : error?.message || t("unreachable"));

/**
 * Asks for a reason, which goes to the audit log; the button names what it does.
 * @param {{title: string, text: string, action: string, reason?: boolean, act: (reason: string) => Promise<any>}} question
 */
export function askReason(question) {
  const reason = /** @type {HTMLInputElement} */ (h("input", { maxlength: 255, "aria-label": t("reason"), placeholder: t("reason") }));
  const note = h("div");
  const go = button(question.action, { class: "danger" });
  const element = /** @type {HTMLDialogElement} */ (
    h("dialog", { class: "dialog", "aria-label": question.title }, h("header", null, h("h2", null, question.title)), h("div", { class: "body" }, h("p", { class: "gap" }, question.text), question.reason !== false && h("span", { class: "input" }, reason), note), h("footer", null, button(t("cancel"), { autofocus: true, onclick: () => element.close() }), go))
  );
  go.addEventListener("click", async () => {
    go.disabled = true;
    try {
      await question.act(reason.value.trim());
      element.close();
    } catch (error) {
      fill(note, failure(error));
      go.disabled = false;
    }
  });
  element.addEventListener("close", () => element.remove());
  document.body.append(element);
  element.showModal();
}
