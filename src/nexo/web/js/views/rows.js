/** The rows of a conversation's log, from what the SDK has in memory. */

import { dayOf } from "../format.js";
import { t } from "../i18n.js";
import { isEvent, RECALL_EVENT } from "../wording.js";

const RUN_MS = 300_000;

const wrapped = new WeakMap();

/** A message that is not saved yet, with the fields of one that is. */
function asMessage(outgoing, conversation, me) {
  const known = wrapped.get(outgoing);
  if (known) return known;
  const answered = outgoing.replyTo ? conversation.messages.find((one) => one.serverMsgId === outgoing.replyTo) : null;
  const quote = answered && {
    serverMsgId: answered.serverMsgId,
    senderId: answered.senderId,
    msgType: answered.msgType,
    text: typeof answered.content === "string" ? answered.content.slice(0, 200) : "",
  };
  const message = {
    clientMsgId: outgoing.clientMsgId,
    serverMsgId: null,
    seq: null,
    senderId: me,
    msgType: outgoing.msgType,
    content: outgoing.content,
    mentions: outgoing.mentions ?? [],
    replyTo: outgoing.replyTo,
    quote,
    status: 0,
    sendAt: outgoing.createdAt,
    outgoing,
    get error() {
      return outgoing.error;
    },
  };
  wrapped.set(outgoing, message);
  return message;
}

/** Own messages keep their row when they are saved. @param {any} message */
export const keyOf = (message) => message.clientMsgId ?? `s${message.serverMsgId}`;

/**
 * @param {any} model @param {any} conversation
 * @param {{newAfter: number | null, newCount: number}} marks where the line above new messages belongs
 * @returns {import("./message.js").Row[]}
 */
export function buildRows(model, conversation, marks) {
  const me = model.userId;
  const inGroup = conversation.type === "group";
  const isOffline = !model.isConnected;
  const members = inGroup ? model.groups.members(conversation.groupId) : null;
  const rows = [];
  let lastDay = 0;
  let previous = null;
  // Where the first new message is not in memory, neither is the line above it.
  const oldest = conversation.messages[0]?.seq ?? 0;
  let isNewShown = marks.newAfter === null || (conversation.hasEarlier && oldest > marks.newAfter + 1);

  const add = (message, state) => {
    const day = dayOf(message.sendAt);
    if (day !== lastDay) {
      rows.push({ kind: "day", key: `d${day}`, at: message.sendAt });
      lastDay = day;
      previous = null;
    }
    if (!isNewShown && message.seq !== null && message.seq > marks.newAfter && message.senderId !== me) {
      rows.push({ kind: "new", key: "new", count: marks.newCount });
      isNewShown = true;
      previous = null;
    }
    if (isEvent(message)) {
      rows.push({ kind: "event", key: keyOf(message), message });
      previous = null;
      return;
    }
    const isStart = !previous || previous.message.senderId !== message.senderId || message.sendAt - previous.message.sendAt > RUN_MS;
    if (!isStart) previous.isEnd = false;
    const role = members?.byId.get(message.senderId)?.role ?? "";
    const row = {
      kind: "message",
      key: keyOf(message),
      message,
      isMine: message.senderId === me,
      isStart,
      isEnd: true,
      inGroup,
      state,
      note: "",
      role: role === "member" ? "" : role,
      isOffline: isOffline && state === "sending",
    };
    rows.push(row);
    previous = row;
  };

  if (!conversation.hasEarlier && inGroup && conversation.minSeq > 1) rows.push({ kind: "line", key: "joined", text: t("history_starts") });
  for (const message of conversation.messages) {
    if (message.msgType === RECALL_EVENT) continue;
    add(message, message.senderId === me ? model.stateOf(conversation, message) : "saved");
  }
  for (const outgoing of conversation.pending) add(asMessage(outgoing, conversation, me), outgoing.state);
  for (const id of model.withdrawn(conversation.id)) rows.push({ kind: "line", key: `w${id}`, text: t("withdrawn") });
  if (inGroup) noteReaders(rows, model, conversation);
  return rows;
}

/** Below the newest own message that somebody has read. */
function noteReaders(rows, model, conversation) {
  const others = (model.groups.info(conversation.groupId)?.memberCount ?? 0) - 1;
  for (let at = rows.length - 1; at >= 0; at -= 1) {
    const row = rows[at];
    if (row.kind !== "message" || !row.isMine || row.message.seq === null || row.message.status === 1) continue;
    const readers = model.receipts.readers(conversation.id, row.message.seq);
    if (readers > 0 && others > 0) row.note = t("read_by", { n: Math.min(readers, others), m: others });
    return;
  }
}

/** @param {any} one @param {any} other */
export function sameRow(one, other) {
  for (const name of Object.keys(one)) if (one[name] !== other[name]) return false;
  return true;
}
