// What later events and calls have changed of earlier messages: recalls, edits, reactions, and what the user has deleted. It is
// remembered for messages that are loaded later, because a page may have been read before the change. No I/O.

import { quoteText, recalledCopy } from "./messages.js";

/** @import { Message, Reaction } from "../types.js" */

const RECALLS_MAX = 500;
const EDITS_MAX = 500;
const REACTIONS_MAX = 500;
const DELETED_MAX = 10_000; // as many as the server keeps of a conversation

/**
 * @typedef {object} Edit
 * @property {any} content
 * @property {readonly string[]} mentions
 * @property {number} editedAt
 */

/**
 * @typedef {object} ReactionChange
 * @property {readonly {emoji: string, count: number}[]} counts
 * @property {ReadonlyMap<string, boolean>} own this user's reactions, as far as they are known
 */

export class MessageChanges {
  constructor() {
    /** @type {Map<string, number>} */
    this._recalls = new Map();
    /** @type {Map<string, Edit>} */
    this._edits = new Map();
    /** @type {Map<string, ReactionChange>} */
    this._reactions = new Map();
    /** @type {Set<string>} */
    this._deleted = new Set();
    /** The user has cleared everything up to here. */
    this.clearedSeq = 0;
  }

  /** @param {string} serverMsgId @param {number} at */
  recalled(serverMsgId, at) {
    keep(this._recalls, serverMsgId, at, RECALLS_MAX);
  }

  /** @param {string} serverMsgId @param {Edit} edit @returns {boolean} whether it is the newest */
  edited(serverMsgId, edit) {
    if ((this._edits.get(serverMsgId)?.editedAt ?? 0) > edit.editedAt) return false;
    keep(this._edits, serverMsgId, edit, EDITS_MAX);
    return true;
  }

  /**
   * @param {string} serverMsgId
   * @param {readonly {emoji: string, count: number}[]} counts
   * @param {Iterable<[string, boolean]>} own the changes by this user
   */
  reacted(serverMsgId, counts, own) {
    const known = this._reactions.get(serverMsgId)?.own ?? [];
    keep(this._reactions, serverMsgId, { counts, own: new Map([...known, ...own]) }, REACTIONS_MAX);
  }

  /** @param {string} serverMsgId @returns {boolean} whether that is new */
  deleted(serverMsgId) {
    if (this._deleted.has(serverMsgId)) return false;
    this._deleted.add(serverMsgId);
    const [oldest] = this._deleted;
    if (this._deleted.size > DELETED_MAX && oldest !== undefined) this._deleted.delete(oldest);
    return true;
  }

  /** Whether this user has deleted it. @param {Message} message */
  hides(message) {
    if (message.seq !== null && message.seq <= this.clearedSeq) return true;
    return message.serverMsgId !== null && this._deleted.has(message.serverMsgId);
  }

  /**
   * The message as it is now: the same object where nothing has changed.
   * @template {Message} M
   * @param {M} message
   * @returns {M}
   */
  apply(message) {
    const id = message.serverMsgId;
    if (id !== null && message.status === 0) {
      const at = this._recalls.get(id);
      if (at !== undefined) return recalledCopy(message, at);
      message = this._withReactions(this._withEdit(message, this._edits.get(id)), this._reactions.get(id));
    }
    return message.quote ? this._withQuote(message, message.quote) : message;
  }

  /**
   * @template {Message} M
   * @param {M} message
   * @param {Edit | undefined} edit
   * @returns {M}
   */
  _withEdit(message, edit) {
    if (edit === undefined || edit.editedAt <= (message.editedAt ?? 0)) return message;
    return { ...message, ...edit };
  }

  /**
   * @template {Message} M
   * @param {M} message
   * @param {ReactionChange | undefined} change
   * @returns {M}
   */
  _withReactions(message, change) {
    if (change === undefined) return message;
    const mine = new Map(message.reactions.map((one) => [one.emoji, one.mine]));
    const reactions = change.counts.map(({ emoji, count }) => ({ emoji, count, mine: change.own.get(emoji) ?? mine.get(emoji) ?? false }));
    return areSame(reactions, message.reactions) ? message : { ...message, reactions };
  }

  /**
   * @template {Message} M
   * @param {M} message
   * @param {import("../types.js").Quote} quote
   * @returns {M}
   */
  _withQuote(message, quote) {
    if (this._recalls.has(quote.serverMsgId) || this._deleted.has(quote.serverMsgId)) return { ...message, quote: null };
    const edit = this._edits.get(quote.serverMsgId);
    const text = edit === undefined ? quote.text : quoteText(quote.msgType, edit.content);
    return text === quote.text ? message : { ...message, quote: { ...quote, text } };
  }
}

/**
 * @template V
 * @param {Map<string, V>} map the newest last
 * @param {string} key
 * @param {V} value
 * @param {number} most
 */
function keep(map, key, value, most) {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > most && oldest !== undefined) map.delete(oldest);
}

/** @param {readonly Reaction[]} some @param {readonly Reaction[]} others */
function areSame(some, others) {
  if (some.length !== others.length) return false;
  return some.every((one, i) => one.emoji === others[i]?.emoji && one.count === others[i]?.count && one.mine === others[i]?.mine);
}
