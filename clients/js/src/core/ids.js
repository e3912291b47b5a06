// Names of conversations, and ids of outgoing messages that sort by creation time.

/** @param {string} one @param {string} other */
export function singleConversationId(one, other) {
  return one < other ? `si_${one}:${other}` : `si_${other}:${one}`;
}

/** @param {string} groupId */
export function groupConversationId(groupId) {
  return `sg_${groupId}`;
}

/**
 * The group of a conversation, or null when it is a single@conversation.
 * @param {string} conversationId
 */
export function groupOf(conversationId) {
  return conversationId.startsWith("sg_") ? conversationId.slice(3) : null;
}

/**
 * The other one in a single@conversation, or null.
 * @param {string} conversationId
 * @param {string} userId
 */
export function peerOf(conversationId, userId) {
  if (!conversationId.startsWith("si_")) return null;
  const [low, high] = conversationId.slice(3).split(":");
  if (low === undefined || high === undefined) return null;
  return low === userId ? high : high === userId ? low : null;
}

const RANDOM_CHARS = 18;

/** Makes ids that sort by when they were made, also within a millisecond and when the clock is set back. */
export class MessageIds {
  /** @param {() => number} random between 0 and 1 */
  constructor(random) {
    this._random = random;
    this._lastMs = 0;
    this._count = 0;
  }

  /** @param {number} nowMs */
  next(nowMs) {
    const ms = Math.floor(nowMs);
    if (ms > this._lastMs) {
      this._lastMs = ms;
      this._count = 0;
    } else {
      this._count += 1;
    }
    const time = this._lastMs.toString(16).padStart(12, "0");
    const count = this._count.toString(16).padStart(4, "0");
    let tail = "";
    while (tail.length < RANDOM_CHARS) tail += Math.floor(this._random() * 36).toString(36);
    return `${time}-${count}-${tail}`;
  }
}
