// Frames that the client sends.

/** @import { OutboxItem } from "../types.js" */

const BASELINES_BYTES = 40_000; // a frame holds 64 KiB
const AROUND_BASELINE_BYTES = 16;

/**
 * @param {string} token
 * @param {string} deviceId
 * @param {ReadonlyMap<string, number>} baselines the most recent last; as many as fit are sent
 */
export function authFrame(token, deviceId, baselines) {
  /** @type {Record<string, number>} */
  const sent = {};
  let bytes = 0;
  for (const [id, seq] of [...baselines].reverse()) {
    bytes += id.length + AROUND_BASELINE_BYTES;
    if (bytes > BASELINES_BYTES) break;
    sent[id] = seq;
  }
  return { type: "AUTH", token, deviceId, ...(bytes > 0 ? { baselines: sent } : {}) };
}

/** @param {OutboxItem} item */
export function sendFrame(item) {
  /** @type {Record<string, any>} */
  const frame = { type: item.groupId === null ? "SINGLE_CHAT" : "GROUP_CHAT", clientMsgId: item.clientMsgId };
  if (item.groupId === null) frame.to = item.recvId;
  else frame.groupId = item.groupId;
  frame.msgType = item.msgType;
  frame.body = item.content;
  if (item.mentions.length > 0) frame.mentions = item.mentions;
  if (item.replyTo !== null) frame.replyToServerMsgId = item.replyTo;
  if (item.extra !== null) frame.extra = item.extra;
  if (item.expiresS !== undefined) frame.expiresS = item.expiresS;
  if (item.createdAt > 0) frame.ts = Math.round(item.createdAt); // when it was written, which may be long before it is sent
  return frame;
}

/**
 * @param {"delivered" | "read"} ackType
 * @param {string} conversationId
 * @param {number} msgSeq
 */
export function ackFrame(ackType, conversationId, msgSeq) {
  return { type: "ACK", ackType, conversationId, msgSeq };
}
