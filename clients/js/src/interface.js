// What the client is made with, and what it tells.

/** @import { Conversation } from "./conversation.js" */
/** @import { NexoError } from "./errors.js" */
/** @import { OutgoingMessage } from "./outgoing.js" */
/** @import { Message, OnlineUser, PlacedMessage, Session, StateChange, Storage } from "./types.js" */

/**
 * @typedef {object} ClientOptions
 * @property {string} url the HTTP address of the server
 * @property {Storage} [storage]
 * @property {string} [deviceId]
 * @property {number} [platformId]
 * @property {any} [WebSocket] the class to use; `ws` in Node before 22
 * @property {typeof globalThis.fetch} [fetch]
 * @property {number} [gapWaitMs]
 * @property {number} [ackDelayMs]
 * @property {number} [ackTimeoutMs]
 * @property {number} [heartbeatMs]
 * @property {number} [connectTimeoutMs]
 * @property {number} [backoffMinMs]
 * @property {number} [backoffMaxMs]
 * @property {number} [provisionalMs]
 * @property {number} [windowSize]
 * @property {number} [maxConversations]
 * @property {number} [maxInFlight]
 * @property {number} [maxPending]
 */

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
 * @property {OutgoingMessage} outgoing
 * @property {{type: "delivered" | "read", userId: string, seq: number, serverMsgId: string, conversation: Conversation}} receipt
 * @property {{userId: string, on: boolean, conversation: Conversation}} typing
 * @property {{users: OnlineUser[]}} presence
 * @property {Conversation[]} conversations
 * @property {{reason: string}} kicked
 * @property {NexoError} error
 */

export {};
