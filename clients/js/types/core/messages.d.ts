/** @param {Message} message */
export function isEvent(message: Message): boolean;
/** Whether it is an event about an earlier message, which changes neither the last message nor the place in the list. @param {Message} message */
export function isQuiet(message: Message): boolean;
/**
 * Whether it counts as a mention of this user: a message, or an edit that has added the mention.
 * @param {Message} message
 * @param {string} userId
 */
export function isMention(message: Message, userId: string): boolean;
/**
 * Whether it counts as unread for this user: recalled ones do, and of calls those that were missed or canceled.
 * @param {Message} message
 * @param {string} userId
 */
export function isCountable(message: Message, userId: string): boolean;
/**
 * SINGLE_CHAT, GROUP_CHAT or GROUP_EVENT, also inside PULL_OK.
 * @param {any} frame
 * @param {string} userId
 * @returns {Message}
 */
export function messageFromFrame(frame: any, userId: string): Message;
/**
 * MESSAGE_REVOKED as the recall event it stands for. The frame has neither the id of the event nor the seq of its target.
 * @param {any} frame
 * @returns {PlacedMessage}
 */
export function recallFromFrame(frame: any): PlacedMessage;
/**
 * MESSAGE_EDITED, REACTIONS or PINNED as the event it stands for, with the content that it has in a pull.
 * @param {any} frame
 * @returns {PlacedMessage}
 */
export function changeFromFrame(frame: any): PlacedMessage;
/**
 * @param {any} shape a message of the HTTP API
 * @param {string} userId
 * @returns {PlacedMessage}
 */
export function messageFromApi(shape: any, userId: string): PlacedMessage;
/**
 * The sender's own copy, which the server does not send to the connection that wrote it.
 * @param {OutboxItem} item
 * @param {{serverMsgId: string, msgSeq: number, ts: number, body?: any, expiresAt?: number}} saved
 * @param {string} userId
 * @param {Message | undefined} target what it replies to, if it is known here
 * @returns {PlacedMessage}
 */
export function messageFromSaved(item: OutboxItem, saved: {
    serverMsgId: string;
    msgSeq: number;
    ts: number;
    body?: any;
    expiresAt?: number;
}, userId: string, target: Message | undefined): PlacedMessage;
/**
 * As the server builds it.
 * @param {Message} target
 * @returns {Quote | null}
 */
export function quoteOf(target: Message): Quote | null;
/** @param {number} msgType @param {any} content */
export function quoteText(msgType: number, content: any): string;
/**
 * What is left of a recalled message, as the server keeps it.
 * @template {Message} M
 * @param {M} message
 * @param {number} at
 * @returns {M}
 */
export function recalledCopy<M extends Message>(message: M, at: number): M;
/**
 * What is left of a message after its time.
 * @template {Message} M
 * @param {M} message
 * @returns {M}
 */
export function expiredCopy<M extends Message>(message: M): M;
/**
 * The path of a message's file on the server, or of a smaller picture of it; null when there is none. It is valid without a
 * token for an hour or two.
 * @param {Message} message
 * @param {"" | "small" | "medium"} [preview]
 * @returns {string | null}
 */
export function filePath(message: Message, preview?: "" | "small" | "medium"): string | null;
/**
 * @param {SyncEntry | ListRow} source what it leaves out has its default value
 * @returns {ConversationSettings}
 */
export function settingsOf(source: SyncEntry | ListRow): ConversationSettings;
/** @param {ConversationSettings} one @param {ConversationSettings} other */
export function areSameSettings(one: ConversationSettings, other: ConversationSettings): boolean;
/** @import { ConversationSettings, ListRow, Message, OutboxItem, PlacedMessage, Quote, SyncEntry } from "../types.js" */
export const FIRST_EVENT: 100;
export const RECALLED: 100;
export const CALL: 120;
export const EDITED: 110;
export const REACTIONS: 111;
export const PINNED: 112;
export const STATUS_RECALLED: 1;
export const STATUS_EXPIRED: 2;
/** @type {ConversationSettings} */
export const DEFAULT_SETTINGS: ConversationSettings;
import type { Message } from "../types.js";
import type { PlacedMessage } from "../types.js";
import type { OutboxItem } from "../types.js";
import type { Quote } from "../types.js";
import type { SyncEntry } from "../types.js";
import type { ListRow } from "../types.js";
import type { ConversationSettings } from "../types.js";
