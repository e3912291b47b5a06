// What the engine makes its driver do.

/** @import { ConversationState } from "./conversation-state.js" */
/** @import { OutboxItem, PlacedMessage } from "../types.js" */

/**
 * @typedef {object} Outputs
 * @property {() => void} open opens a socket
 * @property {(code: number) => void} drop closes it
 * @property {(isExpired: boolean) => void} needToken
 * @property {() => {token: string, deviceId: string}} credentials
 * @property {(frame: object) => void} send
 * @property {(name: string, payload: any) => void} emit an event; its `conversation` is a ConversationState
 * @property {(conversation: ConversationState) => void} changed
 * @property {(item: OutboxItem) => void} itemChanged its state or error changed, and it has to be stored
 * @property {(item: OutboxItem, message: PlacedMessage) => void} itemSaved
 * @property {(clientMsgId: string) => void} itemGiven its message is among those of the conversation
 * @property {(baselines: Map<string, number>) => void} storeBaselines
 * @property {(reason: string, forgetSession: boolean) => void} ended the connection is closed for good
 * @property {() => void} loadList loads the first page of the conversation list
 * @property {(conversation: ConversationState) => void} loadDeleted loads what the user has deleted on other devices
 */

export {};
