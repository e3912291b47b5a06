/** Modal dialogs on the native element: it keeps the focus inside and gives it back. */

import { button, h, icon, iconButton, newId, pointerIsFine } from "../dom.js";
import { t } from "../i18n.js";
import { openLayer } from "../layers.js";
import { closePopover } from "./menu.js";

/**
 * @param {{title: string, body: any[], footer?: any[], onclose?: () => void, classes?: string}} content
 * @returns {{element: HTMLDialogElement, close: () => void}}
 */
export function openDialog(content) {
  const titleId = newId("d");
  const close = () => element.close();
  const header = h("header", null, h("h2", { id: titleId }, content.title), iconButton("close", t("close"), { onclick: close }));
  const element = /** @type {HTMLDialogElement} */ (
    h("dialog", { class: `dialog ${content.classes ?? ""}`.trim(), "aria-labelledby": titleId }, header, h("div", { class: "body" }, content.body))
  );
  if (content.footer) element.append(h("footer", null, content.footer));
  show(element, content.onclose);
  return { element, close };
}

function show(element, onclose) {
  const opener = document.activeElement;
  element.addEventListener("click", (event) => {
    if (event.target === element && !isInside(element, event)) element.close(); // the backdrop
  });
  element.addEventListener("cancel", (event) => {
    if (closePopover()) event.preventDefault(); // Escape closes the topmost only
  });
  element.addEventListener("close", () => {
    element.remove();
    leave();
    onclose?.();
    if (opener?.isConnected && opener !== document.body) return;
    const home = pointerIsFine() ? document.querySelector(".composer textarea") : null;
    /** @type {HTMLElement | null} */ (home ?? document.querySelector(".chat h1"))?.focus({ preventScroll: true });
  });
  document.body.append(element);
  element.showModal();
  const leave = openLayer(() => element.close());
}

function isInside(element, event) {
  const box = element.getBoundingClientRect();
  return event.clientX >= box.left && event.clientX <= box.right && event.clientY >= box.top && event.clientY <= box.bottom;
}

/**
 * Asks before an action that other users notice. The button names the action; focus is on Cancel.
 * @param {{icon: string, title: string, text: string, action: string, danger?: boolean, act: () => any}} question
 */
export function confirmDialog(question) {
  const [titleId, textId] = [newId("d"), newId("d")];
  const cancel = button(t("cancel"), { class: "block", onclick: () => element.close(), autofocus: true });
  const go = button(question.action, {
    class: `block ${question.danger ? "danger" : "primary"}`,
    onclick: async () => {
      await busyWhile(go, async () => question.act());
      element.close();
    },
  });
  const sign = h("span", { class: question.danger ? "badge-i bad" : "badge-i" }, icon(question.icon));
  const body = h("div", { class: "body" }, sign, h("h2", { id: titleId }, question.title), h("p", { id: textId }, question.text));
  const element = /** @type {HTMLDialogElement} */ (
    h(
      "dialog",
      { class: "dialog alert center", role: "alertdialog", "aria-labelledby": titleId, "aria-describedby": textId },
      body,
      h("footer", null, cancel, go),
    )
  );
  show(element);
  return element;
}

/** A button that waits: it keeps its width and turns a wheel when it takes longer. @param {HTMLButtonElement} target */
export async function busyWhile(target, work) {
  if (target.getAttribute("aria-busy") === "true") return undefined;
  target.setAttribute("aria-busy", "true");
  try {
    return await work();
  } finally {
    target.removeAttribute("aria-busy");
  }
}
