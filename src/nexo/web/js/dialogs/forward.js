/** Messages sent on: to whom, each by itself or as one. */

import { avatar } from "../components/avatar.js";
import { busyWhile, openDialog } from "../components/dialog.js";
import { toast } from "../components/toast.js";
import { button, fill, h, icon } from "../dom.js";
import { tellFailure } from "../failures.js";
import { t } from "../i18n.js";
import { contentLine } from "../wording.js";

const TARGETS_MAX = 20;
const SHOWN_MAX = 60;

/** @param {any} model @param {any[]} messages @param {() => void} [ondone] */
export function openForward(model, messages, ondone) {
  const chosen = new Set();
  let isMerged = false;
  const find = /** @type {HTMLInputElement} */ (h("input", { type: "search", placeholder: t("search"), "aria-label": t("search_people"), autofocus: true, dir: "auto" }));
  const list = h("ul", { class: "picks", role: "listbox", "aria-multiselectable": "true", "aria-label": t("forward_to"), tabindex: "-1" });
  const go = button(t("forward"), { class: "primary", disabled: true });
  const count = h("span", { class: "count", role: "status" });
  const candidates = model.client.conversations.filter((one) => one.type === "single" || !model.groups.hasLeft(one.groupId));

  const toggle = (id) => {
    if (chosen.has(id)) chosen.delete(id);
    else if (chosen.size < TARGETS_MAX) chosen.add(id);
    else toast(t("forward_max", { n: TARGETS_MAX }), { bad: true });
    draw();
  };
  const draw = () => {
    const wanted = find.value.trim().toLocaleLowerCase();
    const shown = candidates.filter((one) => model.face(one).name.toLocaleLowerCase().includes(wanted)).slice(0, SHOWN_MAX);
    const active = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset?.id;
    fill(
      list,
      shown.map((one) => {
        const isOn = chosen.has(one.id);
        return h(
          "li",
          { class: "pick", role: "option", tabindex: "0", "aria-selected": String(isOn), dataset: { id: one.id }, onclick: () => toggle(one.id) },
          avatar(model.face(one), "s32"),
          h("span", { class: "ell", dir: "auto" }, model.face(one).name),
          h("span", { class: isOn ? "box on" : "box", "aria-hidden": "true" }, icon("check", "s")),
        );
      }),
    );
    if (active) /** @type {HTMLElement | null} */ (list.querySelector(`[data-id="${CSS.escape(active)}"]`))?.focus();
    go.disabled = chosen.size === 0;
    count.textContent = chosen.size ? t("n_chosen", { n: chosen.size }) : "";
  };
  list.addEventListener("keydown", (event) => {
    const option = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest("[role=option]"));
    const next = { ArrowDown: option?.nextElementSibling, ArrowUp: option?.previousElementSibling ?? find }[event.key];
    if (next) /** @type {HTMLElement} */ (next).focus();
    else if (option && (event.key === " " || event.key === "Enter")) toggle(option.dataset.id);
    else return;
    event.preventDefault();
  });
  find.addEventListener("input", draw);
  find.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") /** @type {HTMLElement | null} */ (list.firstElementChild)?.focus();
  });
  go.addEventListener("click", () => busyWhile(go, send));

  async function send() {
    const targets = [...chosen];
    try {
      const ids = messages.map((one) => one.serverMsgId);
      const sent = await model.client.forward(ids, targets, isMerged ? { merge: true, title: titleFor(model, messages) } : {});
      dialog.close();
      const refused = sent.filter((one) => one.error).length;
      toast(refused ? t("forwarded_some", { n: targets.length - refused, m: refused }) : t("forwarded_done"), { bad: refused > 0 });
      ondone?.();
    } catch (error) {
      tellFailure(error);
    }
  }

  const preview = h("p", { class: "fwdline", dir: "auto" }, messages.length === 1 ? contentLine(messages[0]) : t("n_messages", { n: messages.length }));
  const choice = (value, text) => h("label", null, h("input", { type: "radio", name: "how", checked: value === isMerged, onchange: () => (isMerged = value) }), text);
  const how = messages.length > 1 && h("fieldset", { class: "seg2", "aria-label": t("forward_how") }, choice(false, t("forward_each")), choice(true, t("forward_merged")));
  draw();
  const dialog = openDialog({
    title: t("forward_to"),
    body: [preview, how, h("label", { class: "search" }, icon("search", "s"), find), list],
    footer: [count, button(t("cancel"), { onclick: () => dialog.close() }), go],
    classes: "forward",
  });
}

function titleFor(model, messages) {
  const names = [...new Set(messages.map((one) => one.senderId))].map((id) => model.people.name(id));
  return names.length === 2 ? t("chat_of", { a: names[0], b: names[1] }) : t("forwarded_n", { n: messages.length });
}
