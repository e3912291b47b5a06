// The order of the conversation list: pinned first, then the newest activity.

/** @import { Chat } from "./chat.js" */

/**
 * @param {Iterable<Chat>} chats
 * @returns {Chat[]}
 */
export function sortChats(chats) {
  return [...chats].filter((chat) => chat.isListed && !chat.isHidden).sort(compare);
}

/** @param {Chat} one @param {Chat} other */
function compare(one, other) {
  if (one.pinned !== other.pinned) return one.pinned ? -1 : 1;
  if (one.updatedAt !== other.updatedAt) return other.updatedAt - one.updatedAt;
  if (one.rank !== other.rank) return one.rank - other.rank; // no time is known: as SYNC had it
  return one.id < other.id ? -1 : 1;
}
