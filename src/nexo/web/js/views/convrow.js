/** One row of the list of conversations. */

import { avatar } from "../components/avatar.js";
import { fill, h, icon } from "../dom.js";
import { counted, fullTime, shortTime } from "../format.js";
import { t } from "../i18n.js";
import { isEvent, previewOf } from "../wording.js";
import { tick } from "./message.js";

/** Everything the row shows, so that two can be compared. @param {any} model @param {any} conversation */
export function rowModel(model, conversation) {
  const face = model.face(conversation);
  const pending = conversation.pending.at(-1);
  const last = pending
    ? { senderId: model.userId, sendAt: pending.createdAt, status: 0, msgType: pending.msgType, content: pending.content }
    : conversation.lastMessage;
  const isMine = last && last.senderId === model.userId && !isEvent(last) && last.status !== 1;
  const state = !isMine ? "" : pending ? pending.state : model.stateOf(conversation, last);
  const draft = conversation.id === model.openId ? "" : model.drafts.text(conversation.id);
  return {
    id: conversation.id,
    face,
    at: last?.sendAt ?? conversation.updatedAt ?? 0,
    preview: last ? previewOf(model, conversation, last) : { who: "", text: "", sign: "" },
    state,
    draft: draft.replace(/\s+/g, " ").slice(0, 100),
    typing: model.isConnected && conversation.typists.length > 0,
    unread: conversation.unread,
    mentions: conversation.unreadMentions,
    muted: conversation.recvMsgOpt !== 0 || (conversation.silentUntil ?? 0) > Date.now(),
    marked: Boolean(conversation.markedUnread),
    pinned: Boolean(conversation.pinned),
    day: new Date().getDate(), // times become days at midnight
  };
}

/** @param {HTMLAnchorElement} link @param {ReturnType<typeof rowModel>} row */
export function drawConversation(link, row) {
  const hasUnread = row.unread > 0 || row.marked;
  link.className = ["conv", hasUnread && "unread", row.muted && "muted"].filter(Boolean).join(" ");
  const line1 = h(
    "span",
    { class: "l1" },
    h("span", { class: "name ell", dir: "auto" }, row.face.name),
    row.muted && icon("belloff", "s", t("muted")),
    row.at > 0 && h("time", { class: "when", title: fullTime(row.at) }, shortTime(row.at)),
  );
  fill(link, avatar(row.face), h("span", { class: "lines" }, line1, h("span", { class: "l2" }, ...secondLine(row), badges(row))));
}

function secondLine(row) {
  if (row.typing) return [h("span", { class: "prev ell typing" }, t("typing_dots"))];
  if (row.draft) return [h("span", { class: "prev ell" }, h("span", { class: "draft" }, t("draft_prefix")), h("bdi", null, row.draft))];
  const who = row.preview.who && h("span", { class: "who" }, row.preview.who);
  const sign = row.state === "failed" ? icon("alert", "s bad", t("state_failed")) : row.state && tick(row.state);
  const [kind, isMissed] = row.preview.sign.split(" ");
  const what = kind && icon(kind, isMissed ? "s bad" : "s dim");
  // A line of one's own language begins where that language does; after a name it stays in its place.
  return [sign || null, what || null, h("span", { class: "prev ell", dir: who ? null : "auto" }, who, who ? h("bdi", null, row.preview.text) : row.preview.text)];
}

function badges(row) {
  const found = [];
  if (row.mentions > 0) found.push(h("span", { class: "badge mention" }, icon("at", "xs", t("you_were_mentioned"))));
  if (row.unread > 0) found.push(h("span", { class: row.muted ? "badge muted" : "badge" }, counted(row.unread), h("span", { class: "sr" }, t("unread"))));
  else if (row.marked) found.push(h("span", { class: "badge mark" }, h("span", { class: "sr" }, t("unread"))));
  else if (row.pinned) found.push(icon("pin", "s", t("pinned")));
  return found;
}
