/** @param {Message} message */
export function isEvent(message: Message): boolean;
/**
 * Whether it counts as unread for this user: recalled ones do.
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
 * MESSAGE_REVOKED is the recall event, told as what it means: its own id and the seq of its target are not in it.
 * @param {any} frame
 * @returns {PlacedMessage}
 */
export function recallFromFrame(frame: any): PlacedMessage;
/**
 * @param {any} shape a message of the HTTP API
 * @param {string} userId
 * @returns {PlacedMessage}
 */
export function messageFromApi(shape: any, userId: string): PlacedMessage;
/**
 * The sender's own copy, which the server does not send to the connection that wrote it.
 * @param {OutboxItem} item
 * @param {{serverMsgId: string, msgSeq: number, ts: number, body?: any}} saved
 * @param {string} userId
 * @param {Message | undefined} target what it replies to, if it is known here
 * @returns {PlacedMessage}
 */
export function messageFromSaved(item: OutboxItem, saved: {
    serverMsgId: string;
    msgSeq: number;
    ts: number;
    body?: any;
}, userId: string, target: Message | undefined): PlacedMessage;
/**
 * As the server builds it.
 * @param {Message} target
 * @returns {Quote | null}
 */
export function quoteOf(target: Message): Quote | null;
/**
 * What is left of a recalled message, as the server keeps it.
 * @template {Message} M
 * @param {M} message
 * @param {number} at
 * @returns {M}
 */
export function recalledCopy<M extends Message>(message: M, at: number): M;
/** @import { Message, OutboxItem, PlacedMessage, Quote } from "../types.js" */
export const FIRST_EVENT: 100;
export const RECALLED: 100;
import type { Message } from "../types.js";
import type { PlacedMessage } from "../types.js";
import type { OutboxItem } from "../types.js";
import type { Quote } from "../types.js";
