/** One short note at a time, at the head of the log and never over what is written. It stays while it is pointed at or focused. */

import { h, icon } from "../dom.js";

const SHOWN_MS = 6000;

let current = null;

/**
 * @param {string} text
 * @param {{action?: string, act?: () => void, bad?: boolean, detail?: string}} [more]
 */
export function toast(text, more = {}) {
  current?.end();
  const element = h("div", { class: "toast", role: "status", title: more.detail }, more.bad && icon("alert", "s"), h("span", null, text));
  if (more.action) {
    const act = () => {
      end();
      more.act?.();
    };
    element.append(h("button", { type: "button", onclick: act }, more.action));
  }
  let timer = 0;
  const end = () => {
    clearTimeout(timer);
    element.remove();
    if (current?.element === element) current = null;
  };
  const start = () => {
    clearTimeout(timer);
    timer = window.setTimeout(end, SHOWN_MS);
  };
  for (const name of ["pointerenter", "focusin"]) element.addEventListener(name, () => clearTimeout(timer));
  for (const name of ["pointerleave", "focusout"]) element.addEventListener(name, start);
  // A modal dialog covers everything else: a toast that appears while one is open belongs on it.
  const modal = [...document.querySelectorAll("dialog[open]")].at(-1);
  const head = /** @type {HTMLElement | null} */ (document.querySelector(".loghead"));
  (modal ?? (head?.checkVisibility() ? head : null) ?? document.getElementById("layer") ?? document.body).append(element);
  current = { element, end };
  start();
}
