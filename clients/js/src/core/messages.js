// Messages as frames and as the HTTP API tell them, in the one shape of the SDK.

/** @import { Message, OutboxItem, PlacedMessage, Quote } from "../types.js" */

export const FIRST_EVENT = 100;
export const RECALLED = 100;

/** @param {Message} message */
export function isEvent(message) {
  return message.msgType >= FIRST_EVENT;
}

/**
 * Whether it counts as unread for this user: recalled ones do.
 * @param {Message} message
 * @param {string} userId
 */
export function isCountable(message, userId) {
  return !isEvent(message) && message.senderId !== userId;
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
    sendAt: frame.ts ?? 0,
    important: frame.important === true || concerns(mentions, frame.from, userId),
    silent: frame.silent === true,
    provisional,
  };
}

/**
 * MESSAGE_REVOKED is the recall event, told as what it means: its own id and the seq of its target are not in it.
 * @param {any} frame
 * @returns {PlacedMessage}
 */
export function recallFromFrame(frame) {
  return {
    serverMsgId: null,
    clientMsgId: null,
    conversationId: frame.conversationId,
    seq: Number(frame.msgSeq),
    senderId: frame.from,
    recvId: null,
    groupId: frame.groupId ?? null,
    msgType: RECALLED,
    content: { server_msg_id: String(frame.serverMsgId), by: frame.from },
    mentions: [],
    replyTo: null,
    quote: null,
    extra: null,
    status: 0,
    recalledAt: null,
    sendAt: frame.ts ?? 0,
    important: false,
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
    sendAt: shape.send_at,
    important: concerns(mentions, shape.sender_id, userId),
    silent: false,
    provisional: false,
  };
}

/**
 * The sender's own copy, which the server does not send to the connection that wrote it.
 * @param {OutboxItem} item
 * @param {{serverMsgId: string, msgSeq: number, ts: number, body?: any}} saved
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
  if (target.serverMsgId === null || target.status === 1) return null;
  const content = target.content;
  const line = typeof content === "string" ? content : content?.name || content?.url || "";
  const text = target.msgType === 6 ? "" : [...String(line)].slice(0, QUOTE_CHARS).join("");
  return { serverMsgId: target.serverMsgId, senderId: target.senderId, msgType: target.msgType, text };
}

/**
 * What is left of a recalled message, as the server keeps it.
 * @template {Message} M
 * @param {M} message
 * @param {number} at
 * @returns {M}
 */
export function recalledCopy(message, at) {
  const content = typeof message.content === "string" ? "" : {};
  return { ...message, status: 1, recalledAt: at, content, extra: null, quote: null, replyTo: null, mentions: [] };
}
