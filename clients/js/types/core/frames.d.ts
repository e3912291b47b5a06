/**
 * @param {string} token
 * @param {string} deviceId
 * @param {ReadonlyMap<string, number>} baselines the most recent last; as many as fit are sent
 */
export function authFrame(token: string, deviceId: string, baselines: ReadonlyMap<string, number>): {
    baselines?: Record<string, number> | undefined;
    type: string;
    token: string;
    deviceId: string;
};
/** @param {OutboxItem} item */
export function sendFrame(item: OutboxItem): Record<string, any>;
/**
 * @param {"delivered" | "read"} ackType
 * @param {string} conversationId
 * @param {number} msgSeq
 */
export function ackFrame(ackType: "delivered" | "read", conversationId: string, msgSeq: number): {
    type: string;
    ackType: "delivered" | "read";
    conversationId: string;
    msgSeq: number;
};
import type { OutboxItem } from "../types.js";
