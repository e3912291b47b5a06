/** Who has got and read a message, asked for when it is opened. */

import { avatar } from "../components/avatar.js";
import { openPopover } from "../components/menu.js";
import { fill, h, icon } from "../dom.js";
import { clockSeconds } from "../format.js";
import { t } from "../i18n.js";
import { tick } from "../views/message.js";
import { errorText } from "../wording.js";

const SHOWN_FIRST = 5;

/** @param {any} chat @param {any} row @param {HTMLElement} anchor */
export async function openReceipts(chat, row, anchor) {
  const { conversation, model } = chat;
  const { message } = row;
  const content = h("div", { class: "menu receipts", role: "dialog", "aria-label": t("message_details"), tabindex: "-1" });
  fill(content, h("p", { class: "dim" }, t("loading")));
  openPopover(anchor.isConnected ? anchor : (chat.log.elementOf(row.key) ?? anchor), content); // it may have been drawn anew
  content.focus();
  try {
    const found = await conversation.receipts(message.serverMsgId);
    if (conversation.type === "group") model.receipts.learn(conversation.id, message.seq, found);
    draw(content, model, message, found, SHOWN_FIRST);
    model.emit("receipt", conversation.id);
  } catch (error) {
    fill(content, h("p", null, errorText(error)));
  }
}

function draw(content, model, message, found, limit) {
  const all = found.readCount + (found.deliveredCount - found.readCount) + found.pending.length;
  const of = (n) => h("span", { class: "num" }, t("n_of_m", { n, m: all }));
  const trail = h(
    "div",
    { class: "trail" },
    icon("check", "s"),
    h("b", null, t("state_saved_short")),
    h("time", null, clockSeconds(message.sendAt)),
    icon("checks", "s"),
    h("b", null, t("state_delivered")),
    of(found.deliveredCount),
  );
  const people = [
    ...found.read.map((userId) => [userId, "read"]),
    ...found.delivered.map((userId) => [userId, "delivered"]),
    ...found.pending.map((userId) => [userId, "saved"]),
  ];
  const list = people.slice(0, limit).map(([userId, state]) => {
    const sign = state === "saved" ? null : tick(state);
    return h("li", null, avatar({ ...model.personFace(userId), online: false }, "s24"), h("span", { class: "ell" }, model.people.name(userId)), sign);
  });
  const more =
    people.length > limit &&
    h("button", { type: "button", class: "btn quiet small", onclick: () => draw(content, model, message, found, Infinity) }, t("show_all"));
  fill(content, trail, h("h3", null, t("state_read"), of(found.readCount)), h("ul", null, list), more);
}
