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
    /** @type {Map<string, number>} */
    _recalls: Map<string, number>;
    /** @type {Map<string, Edit>} */
    _edits: Map<string, Edit>;
    /** @type {Map<string, ReactionChange>} */
    _reactions: Map<string, ReactionChange>;
    /** @type {Set<string>} */
    _deleted: Set<string>;
    /** The user has cleared everything up to here. */
    clearedSeq: number;
    /** @param {string} serverMsgId @param {number} at */
    recalled(serverMsgId: string, at: number): void;
    /** @param {string} serverMsgId @param {Edit} edit @returns {boolean} whether it is the newest */
    edited(serverMsgId: string, edit: Edit): boolean;
    /**
     * @param {string} serverMsgId
     * @param {readonly {emoji: string, count: number}[]} counts
     * @param {Iterable<[string, boolean]>} own the changes by this user
     */
    reacted(serverMsgId: string, counts: readonly {
        emoji: string;
        count: number;
    }[], own: Iterable<[string, boolean]>): void;
    /** @param {string} serverMsgId @returns {boolean} whether that is new */
    deleted(serverMsgId: string): boolean;
    /** Whether this user has deleted it. @param {Message} message */
    hides(message: Message): boolean;
    /**
     * The message as it is now: the same object where nothing has changed.
     * @template {Message} M
     * @param {M} message
     * @returns {M}
     */
    apply<M extends Message>(message: M): M;
    /**
     * @template {Message} M
     * @param {M} message
     * @param {Edit | undefined} edit
     * @returns {M}
     */
    _withEdit<M extends Message>(message: M, edit: Edit | undefined): M;
    /**
     * @template {Message} M
     * @param {M} message
     * @param {ReactionChange | undefined} change
     * @returns {M}
     */
    _withReactions<M extends Message>(message: M, change: ReactionChange | undefined): M;
    /**
     * @template {Message} M
     * @param {M} message
     * @param {import("../types.js").Quote} quote
     * @returns {M}
     */
    _withQuote<M extends Message>(message: M, quote: import("../types.js").Quote): M;
}
export type Edit = {
    content: any;
    mentions: readonly string[];
    editedAt: number;
};
export type ReactionChange = {
    counts: readonly {
        emoji: string;
        count: number;
    }[];
    /**
     * this user's reactions, as far as they are known
     */
    own: ReadonlyMap<string, boolean>;
};
import type { Message } from "../types.js";
