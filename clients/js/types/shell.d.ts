/**
 * @typedef {object} ShellHost
 * @property {(name: string, payload: any) => void} emit
 * @property {(chat: Chat) => void} changed
 * @property {(item: OutboxItem, isAccepted: boolean) => void} itemChanged
 * @property {(item: OutboxItem, message: PlacedMessage) => void} itemSaved
 * @property {(clientMsgId: string) => void} itemGiven
 * @property {() => Session | null} session
 * @property {(isExpired: boolean) => Promise<void>} prepareToken throws a NexoError
 * @property {(reason: string, forgetSession: boolean) => void} ended
 * @property {() => void} loadList
 * @property {(error: unknown) => void} failed something in the background
 */
/**
 * @typedef {object} Surroundings
 * @property {Storage} storage
 * @property {Locks} locks
 * @property {string} socketUrl
 * @property {typeof WebSocket} WebSocket
 * @property {() => number} clock
 * @property {string} instanceId
 */
export class Shell {
    /**
     * @param {string} userId
     * @param {ShellHost} host
     * @param {Surroundings} around
     * @param {EngineOptions} options
     */
    constructor(userId: string, host: ShellHost, around: Surroundings, options: EngineOptions);
    userId: string;
    _host: ShellHost;
    _around: Surroundings;
    /** @type {Socket | null} */
    _socket: Socket | null;
    /** @type {ReturnType<typeof setTimeout> | null} */
    _timer: ReturnType<typeof setTimeout> | null;
    _timerAt: number;
    _isShut: boolean;
    /** @type {Promise<any>} */
    _writes: Promise<any>;
    /** @type {(() => void) | null} */
    _release: (() => void) | null;
    _adoptAt: number;
    engine: Engine;
    /** What an earlier life left in the storage is known. */
    loaded: Promise<void>;
    /**
     * Every input comes through here, so that the timer is right afterwards.
     * @param {(engine: Engine) => void} input
     */
    drive(input: (engine: Engine) => void): void;
    start(): Promise<void>;
    /** Disconnect. It can be started again. */
    stop(): Promise<void>;
    /** Without a word, and for good: nothing more is done or stored. */
    abandon(): void;
    _schedule(): void;
    /** @param {number} at when it should have been */
    _wake(at: number): void;
    /** Outside of the engine's own frames. @param {object} frame */
    sendNow(frame: object): void;
    _open(): void;
    /** @param {number} code */
    _drop(code: number): void;
    /** @param {boolean} isExpired */
    _needToken(isExpired: boolean): Promise<void>;
    _credentials(): {
        token: string;
        deviceId: string;
    };
    /** @param {any} frame */
    _frame(frame: any): void;
    _signedIn(): void;
    _adoptSoon(): void;
    /** @param {string} clientMsgId */
    _key(clientMsgId: string): string;
    /** @param {string} instanceId */
    _lockName(instanceId: string): string;
    /** Tell other tabs that this one lives. */
    _hold(): Promise<void>;
    _load(): Promise<void>;
    /** Take over what clients that are gone have left. */
    _adopt(): Promise<void>;
    /** Store it, then let it go out. @param {OutboxItem} item */
    enqueue(item: OutboxItem): {
        owner: string;
        clientMsgId: string;
        /**
         * sorts by when it was made
         */
        order: string;
        conversationId: string;
        recvId: string | null;
        groupId: string | null;
        msgType: number;
        content: any;
        mentions: readonly string[];
        replyTo: string | null;
        extra: any;
        createdAt: number;
        /**
         * it may have reached the server
         */
        wasSent: boolean;
        error: import("./types.js").Failure | null;
    };
    /** @param {string} clientMsgId */
    retry(clientMsgId: string): boolean;
    /** @param {string} clientMsgId */
    cancel(clientMsgId: string): boolean;
    /** @param {OutboxItem} item */
    _itemChanged(item: OutboxItem): void;
    /** @param {OutboxItem} item @param {PlacedMessage} message */
    _itemSaved(item: OutboxItem, message: PlacedMessage): void;
    /** @param {Map<string, number>} baselines */
    _storeBaselines(baselines: Map<string, number>): void;
    /** The user signs out: nothing of theirs stays. */
    wipe(): Promise<void>;
    /**
     * A storage that fails costs what it is for, not the sending.
     * @param {() => Promise<void>} write
     * @param {() => void} [then]
     */
    _write(write: () => Promise<void>, then?: () => void): void;
}
export type ShellHost = {
    emit: (name: string, payload: any) => void;
    changed: (chat: Chat) => void;
    itemChanged: (item: OutboxItem, isAccepted: boolean) => void;
    itemSaved: (item: OutboxItem, message: PlacedMessage) => void;
    itemGiven: (clientMsgId: string) => void;
    session: () => Session | null;
    /**
     * throws a NexoError
     */
    prepareToken: (isExpired: boolean) => Promise<void>;
    ended: (reason: string, forgetSession: boolean) => void;
    loadList: () => void;
    /**
     * something in the background
     */
    failed: (error: unknown) => void;
};
export type Surroundings = {
    storage: Storage;
    locks: Locks;
    socketUrl: string;
    WebSocket: typeof WebSocket;
    clock: () => number;
    instanceId: string;
};
import { Socket } from "./socket.js";
import { Engine } from "./core/engine.js";
import type { OutboxItem } from "./types.js";
import type { PlacedMessage } from "./types.js";
import type { EngineOptions } from "./core/options.js";
import type { Chat } from "./core/chat.js";
import type { Session } from "./types.js";
import type { Storage } from "./types.js";
import type { Locks } from "./locks.js";
