// The events of the client and their payloads.

/** @import { Conversation } from "./conversation.js" */
/** @import { NexoError } from "./errors.js" */
/** @import { OutgoingMessage } from "./outgoing-message.js" */
/** @import { Message, OnlineUser, PlacedMessage, Session, StateChange } from "./types.js" */

/**
 * @typedef {object} ClientEvents
 * @property {StateChange} state
 * @property {Session | null} session
 * @property {{message: PlacedMessage, conversation: Conversation}} message
 * @property {{message: PlacedMessage, conversation: Conversation}} sent
 * @property {{message: PlacedMessage, conversation: Conversation}} groupEvent
 * @property {{message: Message, conversation: Conversation}} provisional
 * @property {{serverMsgId: string, reason: string, conversation: Conversation}} withdrawn
 * @property {{serverMsgId: string, seq: number, by: string, conversation: Conversation}} recalled
 * @property {{serverMsgId: string, change: "edited" | "reactions" | "expired", message: Message | null, conversation: Conversation}} changed
 * @property {{serverMsgIds: readonly string[], upToSeq: number | null, conversation: Conversation}} deleted
 * @property {{serverMsgId: string, seq: number, on: boolean, by: string, conversation: Conversation}} pinned
 * @property {{conversation: Conversation}} settings
 * @property {{requestId: string, userId: string, message: string, at: number}} contactRequest
 * @property {{requestId: string, userId: string, accepted: boolean, at: number}} contactDecision
 * @property {{groupId: string, userId: string, message: string, at: number}} joinRequest
 * @property {OutgoingMessage} outgoing
 * @property {{type: "delivered" | "read", userId: string, seq: number, serverMsgId: string, conversation: Conversation}} receipt
 * @property {{userId: string, on: boolean, conversation: Conversation}} typing
 * @property {{users: OnlineUser[]}} presence
 * @property {Conversation[]} conversations
 * @property {{reason: string}} kicked
 * @property {NexoError} error
 */

/** @type {readonly (keyof ClientEvents)[]} */
export const EVENT_NAMES = [
  "state", "session", "message", "sent", "groupEvent", "provisional", "withdrawn", "recalled", "changed", "deleted", "pinned",
  "settings", "contactRequest", "contactDecision", "joinRequest", "outgoing", "receipt", "typing", "presence", "conversations",
  "kicked", "error",
]; // prettier-ignore

const WRAPPED = new Set(["session", "outgoing", "conversations", "error"]);

/**
 * An event for an iterator, which may be one of several names: with its name, and a payload that is one object under that name.
 * @param {keyof ClientEvents} name
 * @param {any} payload
 */
export function namedEvent(name, payload) {
  return WRAPPED.has(name) ? { name, [name]: payload } : { name, ...payload };
}
