/** The rows of a conversation's log, from what the SDK has in memory. */

import { dayOf } from "../format.js";
import { t } from "../i18n.js";
import { EXPIRED, IMAGE, isChange, isEvent, PIN_EVENT, VIDEO } from "../wording.js";

const RUN_MS = 300_000;
const ALBUM_MAX = 10;

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
    extra: outgoing.extra ?? null,
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

const albumOf = (message) => {
  const id = message.extra?.album?.id;
  return (message.msgType === IMAGE || message.msgType === VIDEO) && message.status === 0 && typeof id === "string" ? id : "";
};

/** The least of all that is known. */
const ORDER = ["failed", "uploading", "sending", "accepted", "saved", "delivered", "read"];
const least = (one, other) => (ORDER.indexOf(one) <= ORDER.indexOf(other) ? one : other);

/**
 * @typedef {object} View how the log is looked at
 * @property {number | null} newAfter where the line above new messages belongs
 * @property {number} newCount
 * @property {Set<string>} open long texts that are shown whole, by key
 * @property {Set<string> | null} selected the keys of what is selected; null: nothing is being selected
 * @property {Set<string>} gone expired messages that were gone when the conversation was opened
 */

/**
 * @param {any} model @param {any} conversation @param {View} view
 * @returns {import("./message.js").Row[]}
 */
export function buildRows(model, conversation, view) {
  const builder = new Builder(model, conversation, view);
  for (const message of conversation.messages) {
    if (isChange(message) || (message.msgType === PIN_EVENT && message.content?.on === false)) continue;
    builder.add(message, message.senderId === model.userId ? model.stateOf(conversation, message) : "saved");
  }
  for (const outgoing of conversation.pending) builder.add(asMessage(outgoing, conversation, model.userId), outgoing.state);
  const { rows } = builder;
  for (const id of model.withdrawn(conversation.id)) rows.push({ kind: "line", key: `w${id}`, text: t("withdrawn") });
  if (conversation.type === "group") noteReaders(rows, model, conversation);
  return rows;
}

class Builder {
  /** @type {any[]} */
  rows = [];
  #day = 0;
  /** @type {any} the message row before, of the same run */
  #previous = null;

  constructor(model, conversation, view) {
    this.model = model;
    this.conversation = conversation;
    this.view = view;
    this.inGroup = conversation.type === "group";
    this.members = this.inGroup ? model.groups.members(conversation.groupId) : null;
    this.isOffline = !model.isConnected;
    this.now = model.now();
    // Where the first new message is not in memory, neither is the line above it.
    const oldest = conversation.messages[0]?.seq ?? 0;
    this.isNewShown = view.newAfter === null || (conversation.hasEarlier && oldest > view.newAfter + 1);
    if (!conversation.hasEarlier && this.inGroup && conversation.minSeq > 1) this.rows.push({ kind: "line", key: "joined", text: this.#newcomer() });
  }

  /** To someone who has just come, how many are there matters more than that nothing is shown. */
  #newcomer() {
    const count = this.model.groups.info(this.conversation.groupId)?.memberCount ?? 0;
    return count > 1 ? t("newcomer", { n: count }) : t("history_starts");
  }

  /** @param {any} message @param {string} state */
  add(message, state) {
    const key = keyOf(message);
    const isExpired = message.status === EXPIRED || (message.expiresAt > 0 && message.expiresAt <= this.now);
    if (isExpired && this.view.gone.has(key)) return;
    const day = dayOf(message.sendAt);
    if (day !== this.#day) {
      this.#put({ kind: "day", key: `d${day}`, at: message.sendAt });
      this.#day = day;
    }
    if (!this.isNewShown && message.seq !== null && message.seq > this.view.newAfter && message.senderId !== this.model.userId) {
      this.#put({ kind: "new", key: "new", count: this.view.newCount });
      this.isNewShown = true;
    }
    if (isExpired) this.#addExpired(message, key);
    else if (isEvent(message)) this.#put({ kind: "event", key, message });
    else this.#addMessage(message, key, state);
  }

  #put(row) {
    this.rows.push(row);
    this.#previous = null;
  }

  #addExpired(message, key) {
    const last = this.rows.at(-1);
    if (last?.kind === "expired") this.rows[this.rows.length - 1] = { ...last, count: last.count + 1 };
    else this.#put({ kind: "expired", key: `x${key}`, count: 1, message });
  }

  #addMessage(message, key, state) {
    const previous = this.#previous;
    const album = albumOf(message);
    const { selected, open } = this.view;
    if (album && previous && albumOf(previous.message) === album && previous.message.senderId === message.senderId && previous.messages.length < ALBUM_MAX) {
      // Uploads end in any order: pictures stand as they were chosen, words are those of the one that has some.
      previous.messages = [...previous.messages, message].sort((a, b) => (a.extra.album.index ?? 0) - (b.extra.album.index ?? 0));
      if (!previous.message.content?.text) previous.message = message;
      previous.state = least(previous.state, state);
      previous.uploaded += message.outgoing?.progress?.uploaded ?? 0;
      if (selected?.has(key)) previous.selected = true;
      return;
    }
    const isStart = !previous || previous.message.senderId !== message.senderId || message.sendAt - previous.message.sendAt > RUN_MS;
    if (!isStart) previous.isEnd = false;
    const role = this.members?.byId.get(message.senderId)?.role ?? "";
    this.#previous = {
      kind: "message",
      key,
      message,
      messages: [message],
      isMine: message.senderId === this.model.userId,
      isStart,
      isEnd: true,
      inGroup: this.inGroup,
      name: this.inGroup ? this.model.nameIn(this.conversation.groupId, message.senderId) : "",
      state,
      note: "",
      role: role === "member" ? "" : role,
      isOffline: this.isOffline && state === "sending",
      uploaded: message.outgoing?.progress?.uploaded ?? 0,
      isOpen: open.has(key),
      selected: selected ? selected.has(key) : null,
      minutes: message.expiresAt > 0 ? Math.ceil((message.expiresAt - this.now) / 60_000) : 0,
    };
    this.rows.push(this.#previous);
  }
}

/** Below the newest own message that another member has read. */
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
  for (const name of Object.keys(one)) {
    const [a, b] = [one[name], other[name]];
    if (a === b) continue;
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length || a.some((part, at) => part !== b[at])) return false;
  }
  return true;
}
