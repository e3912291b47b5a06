/**
 * An event for an iterator, which may be one of several names: with its name, and a payload that is one object under that name.
 * @param {keyof ClientEvents} name
 * @param {any} payload
 */
export function namedEvent(name: keyof ClientEvents, payload: any): any;
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
export const EVENT_NAMES: readonly (keyof ClientEvents)[];
export type ClientEvents = {
    state: StateChange;
    session: Session | null;
    message: {
        message: PlacedMessage;
        conversation: Conversation;
    };
    sent: {
        message: PlacedMessage;
        conversation: Conversation;
    };
    groupEvent: {
        message: PlacedMessage;
        conversation: Conversation;
    };
    provisional: {
        message: Message;
        conversation: Conversation;
    };
    withdrawn: {
        serverMsgId: string;
        reason: string;
        conversation: Conversation;
    };
    recalled: {
        serverMsgId: string;
        seq: number;
        by: string;
        conversation: Conversation;
    };
    changed: {
        serverMsgId: string;
        change: "edited" | "reactions" | "expired";
        message: Message | null;
        conversation: Conversation;
    };
    deleted: {
        serverMsgIds: readonly string[];
        upToSeq: number | null;
        conversation: Conversation;
    };
    pinned: {
        serverMsgId: string;
        seq: number;
        on: boolean;
        by: string;
        conversation: Conversation;
    };
    settings: {
        conversation: Conversation;
    };
    contactRequest: {
        requestId: string;
        userId: string;
        message: string;
        at: number;
    };
    contactDecision: {
        requestId: string;
        userId: string;
        accepted: boolean;
        at: number;
    };
    joinRequest: {
        groupId: string;
        userId: string;
        message: string;
        at: number;
    };
    outgoing: OutgoingMessage;
    receipt: {
        type: "delivered" | "read";
        userId: string;
        seq: number;
        serverMsgId: string;
        conversation: Conversation;
    };
    typing: {
        userId: string;
        on: boolean;
        conversation: Conversation;
    };
    presence: {
        users: OnlineUser[];
    };
    conversations: Conversation[];
    kicked: {
        reason: string;
    };
    error: NexoError;
};
import type { StateChange } from "./types.js";
import type { Session } from "./types.js";
import type { PlacedMessage } from "./types.js";
import type { Conversation } from "./conversation.js";
import type { Message } from "./types.js";
import type { OutgoingMessage } from "./outgoing-message.js";
import type { OnlineUser } from "./types.js";
import type { NexoError } from "./errors.js";
