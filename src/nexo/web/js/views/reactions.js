/** Reactions below a bubble, and adding or taking back one's own. */

import { openPopover } from "../components/menu.js";
import { toast } from "../components/toast.js";
import { avatar } from "../components/avatar.js";
import { fill, h, icon } from "../dom.js";
import { tellFailure } from "../failures.js";
import { counted } from "../format.js";
import { t } from "../i18n.js";
import { remember, remembered } from "../prefs.js";
import { errorText, whoIs } from "../wording.js";

const FIRST = ["👍", "❤️", "😂", "🎉", "👀", "🙏"];
const OWN_MAX = 3;
const SHOWN_WHO = 100;

/** The six that were used last. @returns {string[]} */
export function quickReactions() {
  const used = remembered("reactions");
  const known = Array.isArray(used) ? used.filter((one) => typeof one === "string") : [];
  return [...new Set([...known, ...FIRST])].slice(0, FIRST.length);
}

function remembersUse(emoji) {
  remember("reactions", [...new Set([emoji, ...quickReactions()])].slice(0, FIRST.length));
}

const wordsOf = ({ emoji, count, mine }) => t(mine ? "reaction_mine" : "reaction", { emoji, n: count });

/** For the label of a message. @param {any} message */
export const reactionsLabel = (message) => (message.reactions ?? []).map(wordsOf).join(t("label_comma"));

/** @param {any} message */
export function reactionBar(message) {
  const reactions = message.reactions ?? [];
  if (reactions.length === 0) return null;
  const one = ({ emoji, count, mine }) =>
    h("button", { type: "button", "aria-pressed": String(Boolean(mine)), "aria-label": wordsOf({ emoji, count, mine }), dataset: { act: "reaction", emoji } }, h("em", null, emoji), counted(count));
  const plus = h("button", { type: "button", class: "plus", "aria-label": t("add_reaction"), title: t("add_reaction"), dataset: { act: "react" } }, icon("smile", "s"));
  return h("div", { class: "reacts", role: "group", "aria-label": t("reactions") }, reactions.map(one), plus);
}

/** @param {any} conversation @param {any} message @param {string} emoji @param {boolean} [on] left out: the other way round */
export async function react(conversation, message, emoji, on) {
  const mine = (message.reactions ?? []).filter((one) => one.mine);
  const isOn = on ?? !mine.some((one) => one.emoji === emoji);
  if (isOn && mine.length >= OWN_MAX && !mine.some((one) => one.emoji === emoji)) {
    toast(t("reactions_max", { n: OWN_MAX }), { bad: true });
    return;
  }
  if (isOn) remembersUse(emoji);
  try {
    await conversation.react(message.serverMsgId, emoji, isOn);
  } catch (error) {
    tellFailure(error);
  }
}

/** Who reacted. @param {any} chat @param {any} message @param {HTMLElement} anchor */
export async function openWhoReacted(chat, message, anchor) {
  const { conversation, model } = chat;
  const content = h("div", { class: "menu receipts", role: "dialog", "aria-label": t("reactions"), tabindex: "-1" });
  fill(content, h("p", { class: "dim" }, t("loading")));
  openPopover(anchor, content);
  content.focus();
  try {
    const found = await conversation.reactions(message.serverMsgId);
    const list = (found.reactions ?? []).slice(0, SHOWN_WHO);
    const line = ({ emoji, userId }) =>
      h("li", null, avatar({ ...model.personFace(userId), online: false }, "s24"), h("span", { class: "ell", dir: "auto" }, whoIs(model, userId)), h("span", { class: "emo" }, emoji));
    fill(content, h("h3", null, t("reactions")), h("ul", null, list.map(line)));
  } catch (error) {
    fill(content, h("p", null, errorText(error)));
  }
}
