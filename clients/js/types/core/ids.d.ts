/** @param {string} one @param {string} other */
export function singleConversationId(one: string, other: string): string;
/** @param {string} groupId */
export function groupConversationId(groupId: string): string;
/**
 * The group of a conversation, or null when it is a single@conversation.
 * @param {string} conversationId
 */
export function groupOf(conversationId: string): string | null;
/**
 * The other one in a single@conversation, or null.
 * @param {string} conversationId
 * @param {string} userId
 */
export function peerOf(conversationId: string, userId: string): string | null;
/** Makes ids that sort by when they were made, also within a millisecond and when the clock is set back. */
export class MessageIds {
    /** @param {() => number} random between 0 and 1 */
    constructor(random: () => number);
    _random: () => number;
    _lastMs: number;
    _count: number;
    /** @param {number} nowMs */
    next(nowMs: number): string;
}
