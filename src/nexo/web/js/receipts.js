/** How far each member of a group has read, as far as the server has reported: for "Read by 6 of 8". */

export class GroupReceipts {
  /** @type {Map<string, Map<string, {read: number, delivered: number}>>} */
  #cursors = new Map();

  /** @param {string} conversationId @param {string} userId @param {"read" | "delivered"} type @param {number} seq */
  advance(conversationId, userId, type, seq) {
    const members = this.#cursors.get(conversationId) ?? new Map();
    this.#cursors.set(conversationId, members);
    const at = members.get(userId) ?? { read: 0, delivered: 0 };
    if (type === "read") at.read = Math.max(at.read, seq);
    at.delivered = Math.max(at.delivered, seq);
    members.set(userId, at);
  }

  /** The answer of the server for one message. @param {string} conversationId @param {number} seq @param {any} found */
  learn(conversationId, seq, found) {
    for (const userId of found.delivered) this.advance(conversationId, userId, "delivered", seq);
    for (const userId of found.read) this.advance(conversationId, userId, "read", seq);
  }

  /** How far an own message has come with at least one member. @param {string} conversationId @param {number} seq */
  state(conversationId, seq) {
    let state = "saved";
    for (const at of this.#cursors.get(conversationId)?.values() ?? []) {
      if (at.read >= seq) return "read";
      if (at.delivered >= seq) state = "delivered";
    }
    return state;
  }

  /** @param {string} conversationId @param {number} seq */
  readers(conversationId, seq) {
    let count = 0;
    for (const at of this.#cursors.get(conversationId)?.values() ?? []) if (at.read >= seq) count += 1;
    return count;
  }
}
