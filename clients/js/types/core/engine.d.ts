/**
 * @typedef {object} EngineHost
 * @property {() => void} open
 * @property {(code: number) => void} drop
 * @property {(isExpired: boolean) => void} needToken
 * @property {() => {token: string, deviceId: string}} credentials
 * @property {(frame: object) => void} send
 * @property {(name: string, payload: any) => void} emit
 * @property {(chat: Chat) => void} changed
 * @property {(item: OutboxItem) => void} itemChanged its state or error is another; it is to be stored
 * @property {(item: OutboxItem, message: PlacedMessage) => void} itemSaved
 * @property {(clientMsgId: string) => void} itemGiven its message is among those of the conversation
 * @property {(baselines: Map<string, number>) => void} storeBaselines
 * @property {(reason: string, forgetSession: boolean) => void} ended
 * @property {() => void} loadList
 */
export class Engine {
    /**
     * @param {string} userId
     * @param {EngineHost} host
     * @param {EngineOptions} options
     * @param {() => number} clock
     */
    constructor(userId: string, host: EngineHost, options: EngineOptions, clock: () => number);
    userId: string;
    _host: EngineHost;
    _options: EngineOptions;
    _clock: () => number;
    _timers: Timers;
    /** @type {Map<string, Chat>} */
    chats: Map<string, Chat>;
    /** Saved, but above a hole: still shown as pending. @type {Map<string, OutboxItem>} */
    savedAhead: Map<string, OutboxItem>;
    /** Conversations with messages in memory, least recently used first. @type {Set<Chat>} */
    _inMemory: Set<Chat>;
    _isFirstSync: boolean;
    _rank: number;
    _isOnline: boolean;
    /** @type {string[]} */
    _presence: string[];
    baselines: Baselines;
    typists: Typists;
    _acks: Acknowledging;
    outbox: Outbox;
    catchUp: CatchUp;
    link: Link;
    /** @type {import("../types.js").StateChange} */
    _told: import("../types.js").StateChange;
    /** @returns {State} */
    get state(): State;
    get stateChange(): {
        state: State;
        reason: string | null;
        retryAt: number | null;
    };
    /** When `tick` wants to be called. */
    get deadline(): number;
    tick(): void;
    start(): void;
    /** Say what is still to be said, and go. */
    stop(): void;
    _linkChanged(): void;
    _tellState(): void;
    /** @param {boolean} isOnline */
    _setOnline(isOnline: boolean): void;
    _disconnected(): void;
    _authFrame(): {
        baselines?: Record<string, number> | undefined;
        type: string;
        token: string;
        deviceId: string;
    };
    /** @param {any} frame */
    receive(frame: any): void;
    /** @param {number} now @param {any} frame */
    _signedIn(now: number, frame: any): void;
    /** @param {number} now @param {any} frame */
    _synced(now: number, frame: any): void;
    /** @param {number} now @param {any} frame */
    _resync(now: number, frame: any): void;
    /** @param {number} now @param {Message} message */
    _message(now: number, message: Message): void;
    /** @param {number} now @param {Chat} chat @param {PlacedMessage} message */
    _placed(now: number, chat: Chat, message: PlacedMessage): void;
    /** One's own message, seen on the server: that is as good as its ACK. @param {PlacedMessage} message */
    _confirm(message: PlacedMessage): void;
    /** @param {OutboxItem} item @param {PlacedMessage} message */
    _itemSaved(item: OutboxItem, message: PlacedMessage): void;
    /** It is among the messages, and no longer pending. @param {string} clientMsgId */
    _itemGiven(clientMsgId: string): void;
    /**
     * Messages whose turn it is.
     * @param {Chat} chat
     * @param {readonly PlacedMessage[]} given
     */
    _give(chat: Chat, given: readonly PlacedMessage[]): void;
    /** @param {number} now @param {any} frame */
    _pulled(now: number, frame: any): void;
    /** @param {any} frame */
    _withdrawn(frame: any): void;
    /** @param {number} now @param {string} conversationId @param {number} headSeq */
    _headGrew(now: number, conversationId: string, headSeq: number): void;
    /** @param {string} conversationId */
    _pullFrom(conversationId: string): number | null;
    /** @param {string} conversationId */
    _abandon(conversationId: string): void;
    /** @param {string} conversationId */
    _isUnclear(conversationId: string): boolean;
    /** @param {number} now @param {any} frame */
    _ack(now: number, frame: any): void;
    /** @param {number} now @param {any} frame */
    _saved(now: number, frame: any): void;
    /** @param {Chat} chat @param {number} seq */
    markRead(chat: Chat, seq: number): void;
    /** @param {number} now @param {Chat} chat @param {boolean} hasMoved */
    _readMoved(now: number, chat: Chat, hasMoved: boolean): void;
    /**
     * Before the first message to somebody: SYNC told of all conversations, so this one does not exist yet, and
     * begins with whatever comes. (Else, if the answer to that message were lost, it would pass for history.)
     * @param {Chat} chat
     */
    beginIfNew(chat: Chat): void;
    /** Put on the wire what may go. */
    pump(): void;
    /** @param {object} frame */
    _ask(frame: object): void;
    /** @param {number} now @param {any} frame */
    _error(now: number, frame: any): void;
    /** @param {string} conversationId @param {string} userId @param {boolean} on */
    _typingChanged(conversationId: string, userId: string, on: boolean): void;
    /** @param {string[]} userIds */
    watchPresence(userIds: string[]): void;
    /**
     * Rows of the list.
     * @param {readonly ListRow[]} rows
     */
    applyRows(rows: readonly ListRow[]): void;
    /**
     * The list is complete: what is not in it was hidden, unless something came since.
     * @param {ReadonlySet<string>} listed
     * @param {number} since
     */
    hideUnlisted(listed: ReadonlySet<string>, since: number): void;
    /** @param {string} conversationId */
    chat(conversationId: string): Chat;
    /** Its messages are in use. @param {Chat} chat */
    touch(chat: Chat): void;
}
export type EngineHost = {
    open: () => void;
    drop: (code: number) => void;
    needToken: (isExpired: boolean) => void;
    credentials: () => {
        token: string;
        deviceId: string;
    };
    send: (frame: object) => void;
    emit: (name: string, payload: any) => void;
    changed: (chat: Chat) => void;
    /**
     * its state or error is another; it is to be stored
     */
    itemChanged: (item: OutboxItem) => void;
    itemSaved: (item: OutboxItem, message: PlacedMessage) => void;
    /**
     * its message is among those of the conversation
     */
    itemGiven: (clientMsgId: string) => void;
    storeBaselines: (baselines: Map<string, number>) => void;
    ended: (reason: string, forgetSession: boolean) => void;
    loadList: () => void;
};
import type { EngineOptions } from "./options.js";
import { Timers } from "./timers.js";
import { Chat } from "./chat.js";
import type { OutboxItem } from "../types.js";
import { Baselines } from "./baselines.js";
import { Typists } from "./typists.js";
import { Acknowledging } from "./acknowledging.js";
import { Outbox } from "./outbox.js";
import { CatchUp } from "./catchup.js";
import { Link } from "./link.js";
import type { State } from "../types.js";
import type { Message } from "../types.js";
import type { PlacedMessage } from "../types.js";
import type { ListRow } from "../types.js";
