/** What can be done with a whole conversation. */

import { confirmDialog, openDialog } from "../components/dialog.js";
import { openMenu } from "../components/menu.js";
import { toast } from "../components/toast.js";
import { button, h } from "../dom.js";
import { trying } from "../failures.js";
import { fullTime, lastingText } from "../format.js";
import { t } from "../i18n.js";
import { currentRoute, go } from "../router.js";

const HOUR_MS = 3_600_000;
const EVENING = 18;
const MORNING = 8;

/** @param {any} model @param {any} conversation @returns {import("../components/menu.js").MenuItem[]} */
export function conversationMenu(model, conversation) {
  const muted = isMuted(conversation);
  const isGroup = conversation.type === "group";
  const isBlocked = !isGroup && model.blocked.has(conversation.peerId);
  const hasUnread = conversation.unread > 0 || conversation.markedUnread;
  return [
    { icon: "info", text: t("details"), act: () => go(conversation.id, true) },
    { icon: "search", text: t("find_label"), act: () => openFind(model, conversation) },
    { icon: "pin", text: t(conversation.pinned ? "unpin" : "pin"), act: () => setPinned(conversation, !conversation.pinned) },
    { icon: muted ? "bell" : "belloff", text: t(muted ? "unmute" : "mute"), act: () => (muted ? setMuted(conversation, false) : openMute(conversation)) },
    { icon: "chat", text: t(hasUnread ? "mark_read" : "mark_unread"), act: () => setUnread(model, conversation, !hasUnread) },
    { icon: "archive", text: t(conversation.archived ? "unarchive" : "archive"), act: () => archive(model, conversation, !conversation.archived) },
    { icon: "hide", text: t("hide"), act: () => hide(conversation) },
    "line",
    { icon: "trash", text: t("delete_chat"), danger: true, act: () => askDeleteChat(conversation) },
    !isGroup && {
      icon: "ban",
      text: t(isBlocked ? "unblock" : "block"),
      danger: !isBlocked,
      act: () => askBlock(model, conversation.peerId, !isBlocked),
    },
  ];
}

/** @param {any} model @param {any} conversation */
export function openFind(model, conversation) {
  if (currentRoute().conversationId !== conversation.id || currentRoute().details) go(conversation.id);
  setTimeout(() => model.emit("find", conversation.id));
}

/** @param {any} conversation @param {boolean} pinned */
export const setPinned = (conversation, pinned) => trying(() => conversation.update({ pinned }));

/** @param {any} conversation */
export const isMuted = (conversation) => conversation.recvMsgOpt !== 0 || (conversation.silentUntil ?? 0) > Date.now();

/** Muted is pushed without a sound (2), so that an open chat stays live. @param {any} conversation @param {boolean} muted */
export const setMuted = (conversation, muted) => trying(() => conversation.update(muted ? { recvMsgOpt: 2 } : { recvMsgOpt: 0, silentUntil: 0 }));

/** Until when it is muted, in words. @param {any} conversation */
export function mutedUntil(conversation) {
  if (conversation.recvMsgOpt !== 0) return t("muted_always");
  return (conversation.silentUntil ?? 0) > Date.now() ? t("muted_until", { time: fullTime(conversation.silentUntil) }) : "";
}

/** The moments that a conversation can be muted until. @param {Date} now @returns {[string, number][]} */
export function muteTimes(now) {
  const evening = new Date(now).setHours(EVENING, 0, 0, 0);
  const tomorrow = new Date(now.getFullYear(), now.getMonth(), now.getDate() + 1, MORNING).getTime();
  return [["hour", now.getTime() + HOUR_MS], ...(evening > now.getTime() ? [/** @type {[string, number]} */ (["evening", evening])] : []), ["tomorrow", tomorrow], ["always", 0]];
}

/** @param {any} conversation @param {HTMLElement | null} [anchor] a menu beside it, else a dialog */
export function openMute(conversation, anchor = null) {
  const mute = (until) => trying(() => conversation.update(until ? { silentUntil: until } : { recvMsgOpt: 2 }));
  const times = muteTimes(new Date());
  if (anchor) {
    openMenu(anchor, t("mute"), times.map(([name, until]) => ({ text: t(`mute_for_${name}`), act: () => mute(until) })));
    return;
  }
  const choose = (until) => {
    dialog.close();
    mute(until);
  };
  const dialog = openDialog({ title: t("mute_notifications"), body: [h("div", { class: "choices" }, times.map(([name, until]) => button(t(`mute_for_${name}`), { class: "block", onclick: () => choose(until) })))] });
}

const TTLS_S = [0, 3600, 86_400, 604_800];

/** How long new messages stay, for everyone in it. @param {any} conversation @param {HTMLElement} anchor */
export function openDisappearing(conversation, anchor) {
  const set = (messageTtlS) => trying(() => conversation.update({ messageTtlS }));
  openMenu(anchor, t("disappearing"), TTLS_S.map((s) => ({ text: s > 0 ? t("after_t", { t: lastingText(s) }) : t("off_word"), act: () => set(s) })));
}

/** @param {any} model @param {any} conversation @param {boolean} on */
async function setUnread(model, conversation, on) {
  if (!on) return conversation.markRead();
  if (model.openId === conversation.id) go(null); // an open one would be read at once
  return trying(() => conversation.update({ markedUnread: true }));
}

/** @param {any} model @param {any} conversation @param {boolean} on */
export async function archive(model, conversation, on) {
  if (!(await trying(() => conversation.update({ archived: on })))) return;
  if (on && currentRoute().conversationId === conversation.id) go(null);
  const name = model.face(conversation).name;
  toast(t(on ? "archived_x" : "unarchived_x", { name }), { action: t("undo"), act: () => trying(() => conversation.update({ archived: !on })) });
}

/** @param {any} conversation */
export async function hide(conversation) {
  if (!(await trying(() => conversation.update({ hidden: true })))) return;
  if (currentRoute().conversationId === conversation.id) go(null);
  toast(t("hidden"), { action: t("undo"), act: () => trying(() => conversation.update({ hidden: false })) });
}

/** @param {any} conversation */
export function askDeleteChat(conversation) {
  confirmDialog({
    icon: "trash",
    title: t("delete_chat_title"),
    text: t("delete_chat_text"),
    action: t("delete_word"),
    danger: true,
    act: () =>
      trying(async () => {
        await conversation.clear();
        await conversation.update({ hidden: true });
        if (currentRoute().conversationId === conversation.id) go(null);
      }),
  });
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
