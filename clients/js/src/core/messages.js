// Messages and settings, decoded from frames and from the HTTP API into the SDK's type.

/** @import { ConversationSettings, ListRow, Message, OutboxItem, PlacedMessage, Quote, SyncEntry } from "../types.js" */

export const FIRST_EVENT = 100;
export const RECALLED = 100;
export const CALL = 120; // the record of a call: a message of the caller that the server made

const COUNTED_OUTCOMES = new Set(["missed", "canceled"]);
export const EDITED = 110;
export const REACTIONS = 111;
export const PINNED = 112;
export const STATUS_RECALLED = 1;
export const STATUS_EXPIRED = 2;

const QUIET = new Set([EDITED, REACTIONS, PINNED]);
const CHANGE_TYPES = new Map([["MESSAGE_EDITED", EDITED], ["REACTIONS", REACTIONS], ["PINNED", PINNED]]); // prettier-ignore

/** @param {Message} message */
export function isEvent(message) {
  return message.msgType >= FIRST_EVENT && message.msgType !== CALL;
}

/** Whether it is an event about an earlier message, which changes neither the last message nor the place in the list. @param {Message} message */
export function isQuiet(message) {
  return QUIET.has(message.msgType);
}

/**
 * Whether it counts as a mention of this user: a message, or an edit that has added the mention.
 * @param {Message} message
 * @param {string} userId
 */
export function isMention(message, userId) {
  return message.important && message.senderId !== userId && (!isEvent(message) || message.msgType === EDITED);
}

/**
 * Whether it counts as unread for this user: recalled ones do, and of calls those that were missed or canceled.
 * @param {Message} message
 * @param {string} userId
 */
export function isCountable(message, userId) {
  if (message.senderId === userId || isEvent(message)) return false;
  return message.msgType !== CALL || COUNTED_OUTCOMES.has(message.content?.outcome);
}

/**
 * @param {any} quote of a frame or of the API
 * @returns {Quote | null}
 */
function readQuote(quote) {
  if (!quote) return null;
  return {
    serverMsgId: quote.serverMsgId ?? quote.server_msg_id,
    senderId: quote.from ?? quote.sender_id,
    msgType: quote.msgType ?? quote.msg_type,
    text: quote.text,
  };
}

/**
 * @param {readonly string[]} mentions
 * @param {string} senderId
 * @param {string} userId
 */
function concerns(mentions, senderId, userId) {
  return senderId !== userId && (mentions.includes(userId) || mentions[0] === "@all");
}

/**
 * SINGLE_CHAT, GROUP_CHAT or GROUP_EVENT, also inside PULL_OK.
 * @param {any} frame
 * @param {string} userId
 * @returns {Message}
 */
export function messageFromFrame(frame, userId) {
  const mentions = frame.mentions ?? [];
  const provisional = frame.provisional === true;
  return {
    serverMsgId: String(frame.serverMsgId),
    clientMsgId: frame.clientMsgId ?? null,
    conversationId: frame.conversationId,
    seq: provisional ? null : Number(frame.msgSeq),
    senderId: frame.from,
    recvId: frame.to ?? null,
    groupId: frame.groupId ?? null,
    msgType: frame.msgType ?? 1,
    content: frame.body ?? null,
    mentions,
    replyTo: frame.replyToServerMsgId ?? null,
    quote: readQuote(frame.quote),
    extra: frame.extra ?? null,
    status: frame.status ?? 0,
    recalledAt: frame.recalledAt ?? null,
    editedAt: frame.editedAt ?? null,
    reactions: frame.reactions ?? [],
    forwardedFrom: frame.forwardedFrom ? { senderId: frame.forwardedFrom.from, sendAt: frame.forwardedFrom.ts } : null,
    expiresAt: frame.expiresAt ?? null,
    sendAt: frame.ts ?? 0,
    important: frame.important === true || concerns(mentions, frame.from, userId),
    silent: frame.silent === true,
    provisional,
  };
}

/**
 * MESSAGE_REVOKED as the recall event it stands for. The frame has neither the id of the event nor the seq of its target.
 * @param {any} frame
 * @returns {PlacedMessage}
 */
export function recallFromFrame(frame) {
  return eventFromFrame(frame, RECALLED, { server_msg_id: String(frame.serverMsgId), by: frame.from });
}

/**
 * MESSAGE_EDITED, REACTIONS or PINNED as the event it stands for, with the content that it has in a pull.
 * @param {any} frame
 * @returns {PlacedMessage}
 */
export function changeFromFrame(frame) {
  const msgType = /** @type {number} */ (CHANGE_TYPES.get(frame.type));
  const server_msg_id = String(frame.serverMsgId);
  if (msgType === PINNED) return eventFromFrame(frame, msgType, { server_msg_id, on: frame.on, by: frame.from });
  if (msgType === EDITED) {
    const { body: content, mentions, editedAt: edited_at, from: by } = frame;
    return eventFromFrame(frame, msgType, { server_msg_id, edited_at, by, ...(content !== undefined && { content, mentions }) });
  }
  const named = (/** @type {any[] | undefined} */ changes) => changes?.map(({ emoji, userId }) => ({ emoji, user_id: userId }));
  const { reactions, added, removed } = frame;
  return eventFromFrame(frame, msgType, { server_msg_id, reactions, added: named(added), removed: named(removed) });
}

/**
 * @param {any} frame
 * @param {number} msgType
 * @param {object} content
 * @returns {PlacedMessage}
 */
function eventFromFrame(frame, msgType, content) {
  return {
    serverMsgId: null,
    clientMsgId: null,
    conversationId: frame.conversationId,
    seq: Number(frame.msgSeq),
    senderId: frame.from ?? "",
    recvId: null,
    groupId: frame.groupId ?? null,
    msgType,
    content,
    mentions: [],
    replyTo: null,
    quote: null,
    extra: null,
    status: 0,
    recalledAt: null,
    editedAt: null,
    reactions: [],
    forwardedFrom: null,
    expiresAt: null,
    sendAt: frame.ts ?? 0,
    important: frame.important === true,
    silent: false,
    provisional: false,
  };
}

/**
 * @param {any} shape a message of the HTTP API
 * @param {string} userId
 * @returns {PlacedMessage}
 */
export function messageFromApi(shape, userId) {
  const mentions = shape.mentions ?? [];
  return {
    serverMsgId: shape.server_msg_id,
    clientMsgId: shape.client_msg_id ?? null,
    conversationId: shape.conversation_id,
    seq: shape.seq,
    senderId: shape.sender_id,
    recvId: shape.recv_id ?? null,
    groupId: shape.group_id ?? null,
    msgType: shape.msg_type,
    content: shape.content ?? null,
    mentions,
    replyTo: shape.reply_to ?? null,
    quote: readQuote(shape.quote),
    extra: shape.extra ?? null,
    status: shape.status ?? 0,
    recalledAt: shape.recalled_at ?? null,
    editedAt: shape.edited_at ?? null,
    reactions: shape.reactions ?? [],
    forwardedFrom: shape.forwarded_from
      ? { senderId: shape.forwarded_from.sender_id, sendAt: shape.forwarded_from.send_at }
      : null,
    expiresAt: shape.expires_at ?? null,
    sendAt: shape.send_at,
    important: concerns(mentions, shape.sender_id, userId),
    silent: false,
    provisional: false,
  };
}

/**
 * The sender's own copy, which the server does not send to the connection that wrote it.
 * @param {OutboxItem} item
 * @param {{serverMsgId: string, msgSeq: number, ts: number, body?: any, expiresAt?: number}} saved
 * @param {string} userId
 * @param {Message | undefined} target what it replies to, if it is known here
 * @returns {PlacedMessage}
 */
export function messageFromSaved(item, saved, userId, target) {
  return {
    serverMsgId: String(saved.serverMsgId),
    clientMsgId: item.clientMsgId,
    conversationId: item.conversationId,
    seq: Number(saved.msgSeq),
    senderId: userId,
    recvId: item.recvId,
    groupId: item.groupId,
    msgType: item.msgType,
    content: saved.body === undefined ? item.content : saved.body,
    mentions: item.mentions,
    replyTo: item.replyTo,
    quote: target ? quoteOf(target) : null,
    extra: item.extra,
    status: 0,
    recalledAt: null,
    editedAt: null,
    reactions: [],
    forwardedFrom: null,
    expiresAt: saved.expiresAt ?? null,
    sendAt: saved.ts,
    important: false,
    silent: false,
    provisional: false,
  };
}

const QUOTE_CHARS = 200;

/**
 * As the server builds it.
 * @param {Message} target
 * @returns {Quote | null}
 */
export function quoteOf(target) {
  if (target.serverMsgId === null || target.status !== 0) return null;
  const { serverMsgId, senderId, msgType, content } = target;
  return { serverMsgId, senderId, msgType, text: quoteText(msgType, content) };
}

/** @param {number} msgType @param {any} content */
export function quoteText(msgType, content) {
  const merged = msgType === 8 ? content?.title : null;
  const line = typeof content === "string" ? content : merged || content?.text || content?.name || content?.url || "";
  return msgType === 6 ? "" : [...String(line)].slice(0, QUOTE_CHARS).join("");
}

/**
 * What is left of a recalled message, as the server keeps it.
 * @template {Message} M
 * @param {M} message
 * @param {number} at
 * @returns {M}
 */
export function recalledCopy(message, at) {
  return { ...blankCopy(message), status: STATUS_RECALLED, recalledAt: at };
}

/**
 * What is left of a message after its time.
 * @template {Message} M
 * @param {M} message
 * @returns {M}
 */
export function expiredCopy(message) {
  return { ...blankCopy(message), status: STATUS_EXPIRED };
}

/**
 * @template {Message} M
 * @param {M} message
 * @returns {M}
 */
function blankCopy(message) {
  const content = typeof message.content === "string" ? "" : {};
  const gone = { extra: null, quote: null, replyTo: null, editedAt: null, forwardedFrom: null };
  return { ...message, content, ...gone, mentions: [], reactions: [] };
}

/**
 * The path of a message's file on the server, or of a smaller picture of it; null when there is none. It is valid without a
 * token for an hour or two.
 * @param {Message} message
 * @param {"" | "small" | "medium"} [preview]
 * @returns {string | null}
 */
export function filePath(message, preview = "") {
  const content = message.msgType >= 2 && message.msgType <= 5 ? message.content : null;
  const url = typeof content?.url === "string" ? content.url : null;
  if (!preview || url === null) return url;
  if (!url.startsWith("/files/") || !content.preview) return null;
  const [path, query] = url.split("?");
  return `${path}/${preview}${query === undefined ? "" : `?${query}`}`;
}

/** @type {ConversationSettings} */
export const DEFAULT_SETTINGS = {
  pinned: false,
  recvMsgOpt: 0,
  archived: false,
  silentUntil: 0,
  markedUnread: false,
  messageTtlS: 0,
  draft: null,
  extra: null,
};

/**
 * @param {SyncEntry | ListRow} source what it leaves out has its default value
 * @returns {ConversationSettings}
 */
export function settingsOf(source) {
  const { pinned, recvMsgOpt, archived, silentUntil, markedUnread, messageTtlS, draft, extra } = { ...DEFAULT_SETTINGS, ...source };
  const shown = draft ? { text: draft.text, replyTo: draft.replyTo ?? draft.replyToServerMsgId ?? null } : null;
  return { pinned, recvMsgOpt, archived, silentUntil, markedUnread, messageTtlS, draft: shown, extra: extra ?? null };
}

/** @param {ConversationSettings} one @param {ConversationSettings} other */
export function areSameSettings(one, other) {
  return JSON.stringify(one) === JSON.stringify(other);
}
