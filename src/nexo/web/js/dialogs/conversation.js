/** What can be done with a whole conversation. */

import { confirmDialog } from "../components/dialog.js";
import { toast } from "../components/toast.js";
import { trying } from "../failures.js";
import { t } from "../i18n.js";
import { currentRoute, go } from "../router.js";

/** @param {any} model @param {any} conversation @returns {import("../components/menu.js").MenuItem[]} */
export function conversationMenu(model, conversation) {
  const isMuted = conversation.recvMsgOpt !== 0;
  const isGroup = conversation.type === "group";
  const isBlocked = !isGroup && model.blocked.has(conversation.peerId);
  return [
    { icon: "info", text: t("details"), act: () => go(conversation.id, true) },
    { icon: "pin", text: t(conversation.pinned ? "unpin" : "pin"), act: () => setPinned(conversation, !conversation.pinned) },
    { icon: isMuted ? "bell" : "belloff", text: t(isMuted ? "unmute" : "mute"), act: () => setMuted(conversation, !isMuted) },
    { icon: "hide", text: t("hide"), act: () => hide(conversation) },
    !isGroup && "line",
    !isGroup && {
      icon: "ban",
      text: t(isBlocked ? "unblock" : "block"),
      danger: !isBlocked,
      act: () => askBlock(model, conversation.peerId, !isBlocked),
    },
  ];
}

/** @param {any} conversation @param {boolean} pinned */
export const setPinned = (conversation, pinned) => trying(() => conversation.update({ pinned }));

/** Muted is pushed without a sound (2), so that an open chat stays live. @param {any} conversation @param {boolean} muted */
export const setMuted = (conversation, muted) => trying(() => conversation.update({ recvMsgOpt: muted ? 2 : 0 }));

/** @param {any} conversation */
export async function hide(conversation) {
  if (!(await trying(() => conversation.update({ hidden: true })))) return;
  if (currentRoute().conversationId === conversation.id) go(null);
  toast(t("hidden"), { action: t("undo"), act: () => trying(() => conversation.update({ hidden: false })) });
}

/** @param {any} model @param {string} userId @param {boolean} on */
export function askBlock(model, userId, on) {
  if (!on) return trying(() => model.block(userId, false));
  const name = model.people.name(userId);
  return confirmDialog({
    icon: "ban",
    title: t("block_title", { name }),
    text: t("block_text"),
    action: t("block"),
    danger: true,
    act: () => trying(() => model.block(userId, true)),
  });
}
