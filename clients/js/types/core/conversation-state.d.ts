export class ConversationState {
    /**
     * @param {string} id
     * @param {string} userId
     * @param {number} windowSize
     */
    constructor(id: string, userId: string, windowSize: number);
    id: string;
    userId: string;
    groupId: string | null;
    peerId: string | null;
    minSeq: number;
    readSeq: number;
    /** The cursor of the server. */
    deliveredSeq: number;
    /** `delivered` was sent up to here on this connection, and has to be sent up to there. */
    acknowledged: number;
    toAcknowledge: number;
    /** Seqs that were given to the application's inbox, in order. @type {Set<number>} */
    unhandled: Set<number>;
    /** The server's read cursor; the own one may be ahead of it. */
    serverReadSeq: number;
    peerReadSeq: number;
    peerDeliveredSeq: number;
    /** @type {ConversationSettings} */
    settings: ConversationSettings;
    /** Up to which revision this device has the user's deletions; null before the server named one. @type {number | null} */
    deletedRev: number | null;
    /** The revisions that the server's last counts are without. */
    unreadRev: number;
    mentionsRev: number;
    updatedAt: number;
    isListed: boolean;
    /** When its last message arrived, by this device's clock. */
    listedAt: number;
    isHidden: boolean;
    /** Its position in SYNC, for conversations without a time. */
    rank: number;
    /** @type {Message | null} */
    lastMessage: Message | null;
    timeline: Timeline;
    window: Window;
    unread: UnreadCounter;
    mentions: UnreadCounter;
    /** What members of a small group have got and read. @type {Map<string, {delivered: number, read: number}>} */
    memberCursors: Map<string, {
        delivered: number;
        read: number;
    }>;
    changes: MessageChanges;
    _hasExpiring: boolean;
    get syncedSeq(): number;
    /** How far the application has it: the contiguous point, unless messages wait in its inbox. */
    get handledSeq(): number;
    /**
     * A SYNC entry.
     * @param {SyncEntry} entry
     * @param {number | undefined} baseline how far this device had it before the restart
     * @param {boolean} isFirst the SYNC of signing in: nothing can be newer than it
     * @returns {PlacedMessage[]} what can be given now
     */
    applyEntry(entry: SyncEntry, baseline: number | undefined, isFirst: boolean): PlacedMessage[];
    /** @param {SyncEntry | ListRow} source */
    _setUnread(source: SyncEntry | ListRow): void;
    /**
     * The settings of a SYNC entry or of a row of the list.
     * @param {SyncEntry | ListRow} source
     * @returns {boolean} whether any has changed
     */
    applySettings(source: SyncEntry | ListRow): boolean;
    /**
     * The server's revision of the user's deletions.
     * @param {number | undefined} rev
     * @returns {boolean} whether there are some that this device does not have
     */
    missesDeletions(rev: number | undefined): boolean;
    /**
     * @param {SyncEntry} entry
     * @param {number | undefined} baseline
     * @param {boolean} isFirst
     */
    _place(entry: SyncEntry, baseline: number | undefined, isFirst: boolean): PlacedMessage[];
    /**
     * A row of the list, which may be older than what the socket brought.
     * @param {ListRow} row
     */
    applyRow(row: ListRow): void;
    /** Begins a new conversation. */
    begin(): PlacedMessage[];
    /** Forgets what was sent on the last connection: it may be lost. */
    reconnected(): void;
    /**
     * A message with its place, pushed, resent, pulled or one's own.
     * @param {PlacedMessage} message
     * @returns {PlacedMessage[]} what can be given now, in order
     */
    receive(message: PlacedMessage): PlacedMessage[];
    /**
     * The answer to a pull from the contiguous point.
     * @param {Page} page
     * @returns {PlacedMessage[]}
     */
    receivePage(page: Page): PlacedMessage[];
    /** @param {Message} message @param {number} until @returns {boolean} whether it is new */
    receiveProvisional(message: Message, until: number): boolean;
    /**
     * What follows from messages that are given now.
     * @param {PlacedMessage[]} given
     */
    _take(given: PlacedMessage[]): PlacedMessage[];
    /** The newest activity. @param {PlacedMessage} message */
    _moveUp(message: PlacedMessage): void;
    /** An edit or reactions; without their content, they are of a message that this user may not see. @param {PlacedMessage} event */
    _applyChange({ msgType, content }: PlacedMessage): void;
    /**
     * Blank it, and the quotes of it, wherever they are in memory.
     * @param {string} serverMsgId
     * @param {number} at
     */
    markRecalled(serverMsgId: string, at: number): void;
    /** @param {string} serverMsgId @param {import("./message-changes.js").Edit} edit */
    markEdited(serverMsgId: string, edit: import("./message-changes.js").Edit): void;
    /**
     * @param {string} serverMsgId
     * @param {readonly {emoji: string, count: number}[]} counts
     * @param {Iterable<[string, boolean]>} own what this user has added and removed
     */
    markReacted(serverMsgId: string, counts: readonly {
        emoji: string;
        count: number;
    }[], own: Iterable<[string, boolean]>): void;
    /**
     * This user has deleted messages, here or on another device.
     * @param {readonly string[]} serverMsgIds
     * @param {number | null} upToSeq everything up to it
     * @param {number | null} rev the revision that this led to; null when it is not known
     * @returns {boolean} whether any of it is new
     */
    markDeleted(serverMsgIds: readonly string[], upToSeq: number | null, rev: number | null): boolean;
    /** @param {UnreadCounter} counter @param {import("./unread-counter.js").Count} count @param {boolean} isCounted its value is without them */
    _recount(counter: UnreadCounter, count: import("./unread-counter.js").Count, isCounted: boolean): void;
    _correctAll(): void;
    /**
     * A page as it is now: it may have been read before later changes.
     * @param {PlacedMessage[]} messages
     */
    correct(messages: PlacedMessage[]): PlacedMessage[];
    /** @param {Message} message */
    _noteExpiry(message: Message): void;
    /** When `expire` has something to do, by the server's clock. */
    get nextExpiry(): number;
    /**
     * Blanks what is over, and its quotes.
     * @param {number} now by the server's clock
     * @returns {string[]} the ids of the messages
     */
    expire(now: number): string[];
    /** The seq up to which `delivered` has to be sent, or null. */
    get ackSeq(): number | null;
    /** The read cursor that the server does not know yet, or null. */
    get unsentReadSeq(): number | null;
    /**
     * Read up to `seq`, here. Never beyond what was given.
     * @param {number} seq
     * @returns {boolean} whether that moved the cursor
     */
    read(seq: number): boolean;
    /** Another device of this user has read. @param {number} seq */
    readOnOtherDevice(seq: number): boolean;
    /** @param {number} seq */
    _moveRead(seq: number): boolean;
    /** Cursors step over one's own message when everything before it is covered. @param {number} seq */
    _stepOverOwn(seq: number): void;
    /** @param {Message} message */
    _isOwn(message: Message): boolean;
    /**
     * Notes that another user has received or read up to `seq`.
     * @param {string} userId
     * @param {"delivered" | "read"} type
     * @param {number} seq
     */
    applyReceipt(userId: string, type: "delivered" | "read", seq: number): void;
    /**
     * The state of an own message.
     * @param {number} seq
     * @returns {"saved" | "delivered" | "read"}
     */
    stateOf(seq: number): "saved" | "delivered" | "read";
    /** @type {import("./unread-counter.js").Count} */
    _countUnread: import("./unread-counter.js").Count;
    /**
     * A recalled message still counts, but no longer has its mentions, and one that was edited may have been mentioning or not
     * when it was sent: the server has to be asked.
     * @type {import("./unread-counter.js").Count}
     */
    _countMentions: import("./unread-counter.js").Count;
}
import type { ConversationSettings } from "../types.js";
import type { Message } from "../types.js";
import { Timeline } from "./timeline.js";
import { Window } from "./window.js";
import { UnreadCounter } from "./unread-counter.js";
import { MessageChanges } from "./message-changes.js";
import type { SyncEntry } from "../types.js";
import type { PlacedMessage } from "../types.js";
import type { ListRow } from "../types.js";
import type { Page } from "../types.js";
