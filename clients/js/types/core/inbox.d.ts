/**
 * @typedef {object} InboxParts
 * @property {Outbox} outbox
 * @property {() => Connection} connection
 * @property {() => void} caughtUp everything that the server reported at signing in is here
 * @property {() => number} clock
 */
export class Inbox {
    /**
     * @param {string} userId
     * @param {Outputs} outputs
     * @param {Options} options
     * @param {InboxParts} parts
     */
    constructor(userId: string, outputs: Outputs, options: Options, parts: InboxParts);
    _userId: string;
    _outputs: Outputs;
    _options: Options;
    _parts: InboxParts;
    timers: Timers;
    serverClock: ServerClock;
    /** @type {Map<string, ConversationState>} */
    conversations: Map<string, ConversationState>;
    /** Saved above a gap: still shown as pending. @type {Map<string, OutboxItem>} */
    savedAhead: Map<string, OutboxItem>;
    /** Conversations with messages in memory, least recently used first. @type {Set<ConversationState>} */
    _inMemory: Set<ConversationState>;
    /** The application takes messages from its inbox and reports each as handled. */
    holdsUnhandled: boolean;
    _isFirstSync: boolean;
    _rank: number;
    baselines: Baselines;
    typists: Typists;
    acks: Acks;
    catchUp: CatchUp;
    /** @param {string} conversationId */
    conversation(conversationId: string): ConversationState;
    /** Notes that its messages are in use: those of unused conversations are dropped first. @param {ConversationState} conversation */
    touch(conversation: ConversationState): void;
    /** How far this device has each conversation. @returns {Map<string, number>} the most recent last */
    knownSeqs(): Map<string, number>;
    /** @param {number} now */
    signedIn(now: number): void;
    disconnected(): void;
    /** Sends a request. @param {object} frame */
    _ask(frame: object): void;
    /** @param {number} now @param {any} frame */
    receiveSync(now: number, frame: any): void;
    /** Pushes may have been lost, among them the final copies of provisional messages. @param {number} now @param {any} frame */
    receiveResync(now: number, frame: any): void;
    /** @param {readonly ListRow[]} rows of the conversation list */
    applyRows(rows: readonly ListRow[]): void;
    /** @param {ConversationState} conversation @param {SyncEntry | ListRow} source @param {boolean} isNew */
    _applySettings(conversation: ConversationState, source: SyncEntry | ListRow, isNew: boolean): void;
    /**
     * Hides conversations that a complete list did not contain, unless a message arrived since it was read.
     * @param {ReadonlySet<string>} listed
     * @param {number} since
     */
    hideUnlisted(listed: ReadonlySet<string>, since: number): void;
    /** @param {number} now @param {Message} message */
    receiveMessage(now: number, message: Message): void;
    /** @param {number} now @param {ConversationState} conversation @param {PlacedMessage} message */
    applyMessage(now: number, conversation: ConversationState, message: PlacedMessage): void;
    /** An own message that the server sends is saved, also if its ACK was lost. @param {PlacedMessage} message */
    _confirm(message: PlacedMessage): void;
    /**
     * Applies the sender's own copy of a message that was saved.
     * @param {number} now
     * @param {OutboxItem} item
     * @param {PlacedMessage} message
     */
    applySaved(now: number, item: OutboxItem, message: PlacedMessage): void;
    /** @param {OutboxItem} item @param {PlacedMessage} message */
    _itemSaved(item: OutboxItem, message: PlacedMessage): void;
    /** It is among the messages, and no longer pending. @param {string} clientMsgId */
    _itemGiven(clientMsgId: string): void;
    /**
     * Emits the events of messages that are in order now.
     * @param {ConversationState} conversation
     * @param {readonly PlacedMessage[]} given
     */
    _give(conversation: ConversationState, given: readonly PlacedMessage[]): void;
    /** @param {ConversationState} conversation @param {PlacedMessage} event */
    _emitChange(conversation: ConversationState, { msgType, seq, content }: PlacedMessage): void;
    /** @param {ConversationState} conversation @param {string} serverMsgId @param {"edited" | "reactions" | "expired"} change */
    _emitChanged(conversation: ConversationState, serverMsgId: string, change: "edited" | "reactions" | "expired"): void;
    /**
     * The answer to an own edit, before its event.
     * @param {ConversationState} conversation
     * @param {string} serverMsgId
     * @param {import("./message-changes.js").Edit} edit
     */
    applyEdit(conversation: ConversationState, serverMsgId: string, edit: import("./message-changes.js").Edit): void;
    /**
     * The answer to an own reaction, before its event.
     * @param {ConversationState} conversation
     * @param {string} serverMsgId
     * @param {readonly import("../types.js").Reaction[]} reactions
     * @param {string} emoji
     */
    applyReactions(conversation: ConversationState, serverMsgId: string, reactions: readonly import("../types.js").Reaction[], emoji: string): void;
    /** DELETED: what the user has deleted on another device. @param {number} now @param {any} frame */
    receiveDeleted(now: number, frame: any): void;
    /**
     * The user has deleted messages, here or on another device.
     * @param {number} now
     * @param {ConversationState} conversation
     * @param {readonly string[]} serverMsgIds
     * @param {number | null} upToSeq
     * @param {number | null} rev the revision that this led to; null when it is not known
     */
    applyDeleted(now: number, conversation: ConversationState, serverMsgIds: readonly string[], upToSeq: number | null, rev: number | null): void;
    /** Blanks messages at their time. @param {ConversationState} conversation */
    watchExpiry(conversation: ConversationState): void;
    /** The application has handled a message of its inbox. @param {number} now @param {ConversationState} conversation @param {number} seq */
    handled(now: number, conversation: ConversationState, seq: number): void;
    /** @param {any} frame */
    receiveWithdrawn(frame: any): void;
    _dropProvisional(): void;
    /**
     * Begins a conversation before its first message is sent. SYNC has reported all conversations, so this one is new, and
     * all its messages are still to be given; else, if the answer to that message were lost, it would be taken for history.
     * @param {ConversationState} conversation
     */
    beginIfNew(conversation: ConversationState): void;
    /** @param {number} now @param {any} frame */
    receivePage(now: number, frame: any): void;
    /** @param {number} now @param {string} conversationId @param {number} headSeq */
    receiveHead(now: number, conversationId: string, headSeq: number): void;
    /** @param {string} conversationId */
    _pullFrom(conversationId: string): number | null;
    /** @param {string} conversationId */
    _abandon(conversationId: string): void;
    /** @param {string} conversationId */
    _isUnclear(conversationId: string): boolean;
    /** @param {number} now @param {ConversationState} conversation @param {boolean} hasMoved */
    readMoved(now: number, conversation: ConversationState, hasMoved: boolean): void;
    /** @param {string} conversationId @param {string} userId @param {boolean} on */
    _typingChanged(conversationId: string, userId: string, on: boolean): void;
}
export type InboxParts = {
    outbox: Outbox;
    connection: () => Connection;
    /**
     * everything that the server reported at signing in is here
     */
    caughtUp: () => void;
    clock: () => number;
};
import type { Outputs } from "./outputs.js";
import type { Options } from "./options.js";
import { Timers } from "./timers.js";
import { ServerClock } from "./server-clock.js";
import { ConversationState } from "./conversation-state.js";
import type { OutboxItem } from "../types.js";
import { Baselines } from "./baselines.js";
import { Typists } from "./typists.js";
import { Acks } from "./acks.js";
import { CatchUp } from "./catchup.js";
import type { ListRow } from "../types.js";
import type { SyncEntry } from "../types.js";
import type { Message } from "../types.js";
import type { PlacedMessage } from "../types.js";
import type { Outbox } from "./outbox.js";
import type { Connection } from "./connection.js";
