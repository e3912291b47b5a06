/** What can be done with one message. */

import { announce } from "../components/announce.js";
import { confirmDialog, openDialog } from "../components/dialog.js";
import { openMenu } from "../components/menu.js";
import { toast } from "../components/toast.js";
import { openForward } from "../dialogs/forward.js";
import { openReceipts } from "../dialogs/receipts.js";
import { h, icon, pointerIsFine } from "../dom.js";
import { tellFailure } from "../failures.js";
import { countdown } from "../format.js";
import { t } from "../i18n.js";
import { contentLine, errorText, isText } from "../wording.js";
import { openEmoji } from "./emoji.js";
import { openWhoReacted, quickReactions, react } from "./reactions.js";
import { askDeleteForMe, canBeSelected } from "./selection.js";

const LINKS_MAX = 3;

/** How long it can still be recalled: ms, Infinity for who may always, 0 for not at all. @param {any} model @param {any} conversation @param {any} message */
export function recallLeft(model, conversation, message) {
  if (!message.serverMsgId || message.provisional || message.status !== 0) return 0;
  const { recall_admin: byAdmins, recall_window_s: window_s } = model.settings;
  if (conversation.type === "group") {
    if (model.groups.info(conversation.groupId)?.status === 1 || model.groups.hasLeft(conversation.groupId)) return 0;
    if (byAdmins && model.groups.isManager(conversation.groupId)) return Infinity;
  }
  if (message.senderId !== model.userId) return 0;
  return Math.max(0, message.sendAt + window_s * 1000 - model.now());
}

/** How long it can still be edited, in ms. @param {any} model @param {any} conversation @param {any} message */
export function editLeft(model, conversation, message) {
  if (!message.serverMsgId || message.provisional || message.status !== 0 || message.senderId !== model.userId || !isText(message)) return 0;
  return Math.max(0, message.sendAt + (model.settings.edit_window_s ?? 0) * 1000 - model.now());
}

/** @param {any} message */
export async function copyText(message) {
  const text = isText(message) ? message.content : (message.content?.text ?? (message.content?.file_id ? contentLine(message) : message.content?.url) ?? contentLine(message));
  try {
    await navigator.clipboard.writeText(text);
    toast(t("copied"));
  } catch {
    toast(t("copy_failed"), { bad: true });
  }
}

/** @param {any} model @param {any} conversation @param {any[]} messages */
export function askRecall(model, conversation, messages) {
  confirmDialog({
    icon: "recall",
    title: t("recall_title"),
    text: t("recall_text"),
    action: t("recall"),
    danger: true,
    act: async () => {
      try {
        for (const message of messages) await conversation.recall(message.serverMsgId);
      } catch (error) {
        const text = error?.reason === "recall_timeout" ? recallRule(model) : errorText(error);
        toast(text, { bad: true, detail: error?.reason });
        announce(text, "assertive");
      }
    },
  });
}

function recallRule(model) {
  const s = model.settings.recall_window_s;
  return t("recall_rule", { time: s >= 60 ? t("n_minutes", { n: Math.floor(s / 60) }) : t("n_seconds", { n: s }) });
}

/** The Delete key: takes it back for everyone while that is possible, else deletes it for oneself. Both ask. @param {any} chat @param {any} row */
export function askDelete(chat, row) {
  const { model, conversation } = chat;
  const { message } = row;
  if (message.outgoing) return;
  if (message.status === 0 && message.senderId === model.userId && recallLeft(model, conversation, message) > 0) askRecall(model, conversation, row.messages);
  else if (message.serverMsgId) askDeleteForMe(chat, row.messages);
}

async function setPinned(chat, message, on) {
  try {
    await chat.conversation.pin(message.serverMsgId, on);
    await chat.pins.load();
  } catch (error) {
    tellFailure(error);
  }
}

/** In single chats both, in groups who manages them. */
function mayPin({ model, conversation }) {
  return conversation.type === "single" || (model.groups.isManager(conversation.groupId) && !model.groups.hasLeft(conversation.groupId));
}

/** Only the text, to take a part of it: bubbles are not selectable by touch. */
function selectText(message) {
  const text = isText(message) ? message.content : message.content?.text;
  const body = h("p", { class: "pre selectable", dir: "auto", tabindex: "0" }, text);
  openDialog({ title: t("select_text"), body: [body] });
}

const linksIn = (element) => [...(element?.querySelectorAll(".text a.link") ?? [])].slice(0, LINKS_MAX);

/**
 * @param {any} chat the chat view @param {any} row @param {HTMLElement} anchor @param {{x: number, y: number}} [point]
 */
export function openMessageMenu(chat, row, anchor, point) {
  const { model, conversation } = chat;
  const { message, messages } = row;
  const left = recallLeft(model, conversation, message);
  const isStored = Boolean(message.serverMsgId) && !message.provisional && message.status === 0;
  const mayWrite = chat.composer.obstacle === null;
  const hasText = isText(message) || Boolean(message.content?.text);
  const isPinned = isStored && chat.pins.has(message.serverMsgId);
  const element = chat.log.elementOf(row.key);
  const report = isStored && !row.isMine;
  openMenu(
    anchor,
    t("message_actions"),
    [
      isStored && mayWrite && { icon: "reply", text: t("reply"), keys: "R", act: () => chat.composer.replyTo(message) },
      mayWrite && editLeft(model, conversation, message) > 0 && { icon: "edit", text: t("edit"), keys: "E", act: () => chat.composer.edit(message) },
      hasText && { icon: "copy", text: t("copy_text"), keys: "C", act: () => copyText(message) },
      hasText && !pointerIsFine() && { icon: "select", text: t("select_text"), act: () => selectText(message) },
      ...linksIn(element).map((link) => ({ icon: "link", text: t("open_x", { address: shortened(link.textContent ?? "") }), act: () => link.click() })),
      isStored && { icon: "forward", text: t("forward"), keys: "F", act: () => openForward(model, messages) },
      isStored && mayPin(chat) && { icon: "pin", text: isPinned ? t("unpin_for_everyone") : t("pin_for_everyone"), keys: "P", act: () => setPinned(chat, message, !isPinned) },
      row.isMine && isStored && { icon: "eye", text: t("who_read"), keys: "W", act: () => openReceipts(chat, row, element ?? anchor) },
      isStored && message.reactions?.length > 0 && { icon: "smile", text: t("who_reacted"), act: () => openWhoReacted(chat, message, element ?? anchor) },
      canBeSelected(row) && { icon: "select", text: t("select"), keys: "S", act: () => startSelecting(chat, row) },
      row.state === "failed" && { icon: "retry", text: t("try_again"), act: () => messages.forEach((one) => one.outgoing?.retry()) },
      message.outgoing && { icon: "trash", text: t("delete"), danger: true, act: () => messages.forEach((one) => one.outgoing?.cancel()) },
      (left > 0 || isStored) && "line",
      left > 0 && {
        icon: "recall",
        text: t("recall"),
        danger: true,
        end: left === Infinity ? "" : t("time_left", { time: countdown(left) }),
        act: () => askRecall(model, conversation, messages),
      },
      isStored && { icon: "trash", text: t("delete_for_me"), keys: "D", danger: true, act: () => askDeleteForMe(chat, messages) },
      report && { icon: "flag", text: t("report"), danger: true, act: () => askReport(chat, message) },
    ],
    { point, beside: anchor.querySelector(":scope > .bubble") ?? undefined, classes: "ctx", head: isStored && mayWrite ? quickRow(chat, row) : undefined },
  );
}

const shortened = (address) => (address.length > 32 ? `${address.slice(0, 31)}…` : address);

function startSelecting(chat, row) {
  chat.selection.start(row.key);
  chat.log.focusRow(row.key);
}

/** The reactions that were used last, above the menu. */
function quickRow(chat, row) {
  const { conversation } = chat;
  const { message } = row;
  const mine = new Set((message.reactions ?? []).filter((one) => one.mine).map((one) => one.emoji));
  const one = (emoji) => h("button", { type: "button", role: "menuitemcheckbox", tabindex: "-1", "aria-checked": String(mine.has(emoji)), "aria-label": t("react_with", { emoji }), onclick: () => react(conversation, message, emoji) }, emoji);
  const more = h("button", { type: "button", role: "menuitem", tabindex: "-1", "aria-label": t("more_emoji"), onclick: () => setTimeout(() => openEmoji(chat.log.elementOf(row.key), (emoji) => react(conversation, message, emoji, true), () => chat.log.focusRow(row.key))) }, icon("plus"));
  return h("div", { class: "quick", role: "group", "aria-label": t("react") }, quickReactions().map(one), more);
}

function askReport(chat, message) {
  const reason = /** @type {HTMLTextAreaElement} */ (h("textarea", { rows: 3, maxlength: 500, "aria-label": t("report_reason"), autofocus: true, dir: "auto" }));
  const send = h("button", { type: "submit", class: "btn danger" }, t("report"));
  const submit = async (event) => {
    event.preventDefault();
    try {
      await chat.model.client.report(message.serverMsgId, reason.value.trim());
      dialog.close();
      toast(t("reported"));
    } catch (error) {
      tellFailure(error);
    }
  };
  const form = h("form", { onsubmit: submit }, h("p", { class: "gap" }, t("report_text")), h("div", { class: "input multiline" }, reason), h("div", { class: "formend" }, send));
  const dialog = openDialog({ title: t("report_title"), body: [form] });
}
