/** What can be done with one message. */

import { announce } from "../components/announce.js";
import { confirmDialog } from "../components/dialog.js";
import { openMenu } from "../components/menu.js";
import { toast } from "../components/toast.js";
import { openReceipts } from "../dialogs/receipts.js";
import { countdown } from "../format.js";
import { t } from "../i18n.js";
import { contentLine, errorText, isText } from "../wording.js";

/** How long it can still be recalled: ms, Infinity for who may always, 0 for not at all. @param {any} model @param {any} conversation @param {any} message */
export function recallLeft(model, conversation, message) {
  if (!message.serverMsgId || message.provisional || message.status === 1) return 0;
  const { recall_admin: byAdmins, recall_window_s: window_s } = model.settings;
  if (conversation.type === "group") {
    if (model.groups.info(conversation.groupId)?.status === 1 || model.groups.hasLeft(conversation.groupId)) return 0;
    if (byAdmins && model.groups.isManager(conversation.groupId)) return Infinity;
  }
  if (message.senderId !== model.userId) return 0;
  return Math.max(0, message.sendAt + window_s * 1000 - model.now());
}

/** @param {any} message */
export async function copyText(message) {
  const text = isText(message) ? message.content : (message.content?.url ?? contentLine(message));
  try {
    await navigator.clipboard.writeText(text);
    toast(t("copied"));
  } catch {
    toast(t("copy_failed"), { bad: true });
  }
}

/** @param {any} model @param {any} conversation @param {any} message */
export function askRecall(model, conversation, message) {
  if (recallLeft(model, conversation, message) <= 0) {
    if (message.senderId === model.userId && message.serverMsgId && message.status === 0) toast(recallRule(model), { bad: true });
    return;
  }
  confirmDialog({
    icon: "recall",
    title: t("recall_title"),
    text: t("recall_text"),
    action: t("recall"),
    danger: true,
    act: async () => {
      try {
        await conversation.recall(message.serverMsgId);
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

/**
 * @param {any} chat the chat view @param {any} row @param {HTMLElement} anchor @param {{x: number, y: number}} [point]
 */
export function openMessageMenu(chat, row, anchor, point) {
  const { model, conversation } = chat;
  const { message } = row;
  const left = recallLeft(model, conversation, message);
  const isStored = Boolean(message.serverMsgId) && !message.provisional;
  openMenu(
    anchor,
    t("message_actions"),
    [
      isStored && chat.composer.obstacle === null && { icon: "reply", text: t("reply"), keys: "R", act: () => chat.composer.replyTo(message) },
      { icon: "copy", text: t("copy_text"), keys: "C", act: () => copyText(message) },
      row.isMine && isStored && { icon: "eye", text: t("who_read"), act: () => openReceipts(chat, row, anchor) },
      row.state === "failed" && { icon: "retry", text: t("try_again"), act: () => message.outgoing.retry() },
      left > 0 && "line",
      left > 0 && {
        icon: "recall",
        text: t("recall"),
        danger: true,
        end: left === Infinity ? "" : t("time_left", { time: countdown(left) }),
        act: () => askRecall(model, conversation, message),
      },
    ],
    { point },
  );
}
