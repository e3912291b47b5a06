export class Chat {
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
    /** As the server last told. */
    deliveredSeq: number;
    /** What the server was told on this connection, and what is worth telling. */
    toldSeq: number;
    worthSeq: number;
    /** The server's read cursor; the own one may be ahead of it. */
    serverReadSeq: number;
    peerReadSeq: number;
    peerDeliveredSeq: number;
    pinned: boolean;
    recvMsgOpt: number;
    updatedAt: number;
    isListed: boolean;
    /** When it was last told of by a message, by this device's clock. */
    listedAt: number;
    isHidden: boolean;
    /** In what order SYNC told of it, for rows that have no time yet. */
    rank: number;
    /** @type {Message | null} */
    lastMessage: Message | null;
    timeline: Timeline;
    window: Window;
    unread: Counter;
    mentions: Counter;
    /** What members of a small group have got and read. @type {Map<string, {delivered: number, read: number}>} */
    memberCursors: Map<string, {
        delivered: number;
        read: number;
    }>;
    /** The latest recalls that were told. @type {Map<string, number>} */
    _recalls: Map<string, number>;
    get syncedSeq(): number;
    /**
     * A SYNC entry.
     * @param {SyncEntry} entry
     * @param {number | undefined} baseline how far this device had it in an earlier life
     * @param {boolean} isFirst the SYNC of signing in: nothing can be newer than it
     * @returns {PlacedMessage[]} what can be given now
     */
    applyEntry(entry: SyncEntry, baseline: number | undefined, isFirst: boolean): PlacedMessage[];
    /**
     * @param {SyncEntry} entry
     * @param {number | undefined} baseline
     * @param {boolean} isFirst
     */
    _place(entry: SyncEntry, baseline: number | undefined, isFirst: boolean): PlacedMessage[];
    /**
     * A row of the list, which may be older than what came over the socket.
     * @param {ListRow} row
     */
    applyRow(row: ListRow): void;
    /** It is new: everything is still to come. */
    begin(): PlacedMessage[];
    /** A new connection: what was told on the old one may be lost. */
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
    /**
     * Blank it, and the quotes of it, wherever they are in memory.
     * @param {string} serverMsgId
     * @param {number} at
     */
    markRecalled(serverMsgId: string, at: number): void;
    /**
     * A page that was asked for over HTTP may be older than a recall that came over the socket.
     * @param {PlacedMessage[]} messages
     */
    correct(messages: PlacedMessage[]): PlacedMessage[];
    /** The place that `delivered` should be told for, or null. */
    get ackSeq(): number | null;
    /** What was read here and the server does not know. */
    get readToTell(): number | null;
    /**
     * Read up to `seq`, here. Never beyond what was given.
     * @param {number} seq
     * @returns {boolean} whether that moved the cursor
     */
    read(seq: number): boolean;
    /** Another device of this user has read. @param {number} seq */
    readElsewhere(seq: number): boolean;
    /** @param {number} seq */
    _moveRead(seq: number): boolean;
    /** Cursors step over one's own message when everything before it is covered. @param {number} seq */
    _stepOverOwn(seq: number): void;
    /** @param {Message} message */
    _isOwn(message: Message): boolean;
    /**
     * Somebody has got or read what this user wrote.
     * @param {string} userId
     * @param {"delivered" | "read"} type
     * @param {number} seq
     */
    applyReceipt(userId: string, type: "delivered" | "read", seq: number): void;
    /**
     * How far one's own message has come.
     * @param {number} seq
     * @returns {"saved" | "delivered" | "read"}
     */
    stateOf(seq: number): "saved" | "delivered" | "read";
    /** @type {import("./counter.js").Count} */
    _countUnread: import("./counter.js").Count;
    /**
     * A recalled message does not tell any more whom it mentioned, and counts all the same.
     * @type {import("./counter.js").Count}
     */
    _countMentions: import("./counter.js").Count;
}
import type { Message } from "../types.js";
import { Timeline } from "./timeline.js";
import { Window } from "./window.js";
import { Counter } from "./counter.js";
import type { SyncEntry } from "../types.js";
import type { PlacedMessage } from "../types.js";
import type { ListRow } from "../types.js";
import type { Page } from "../types.js";
