/** @import { Chat } from "./chat.js" */
/**
 * @param {Iterable<Chat>} chats
 * @returns {Chat[]}
 */
export function sortChats(chats: Iterable<Chat>): Chat[];
import type { Chat } from "./chat.js";
