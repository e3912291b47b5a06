/**
 * @typedef {object} DriverHost
 * @property {(name: string, payload: any) => void} emit
 * @property {(conversation: ConversationState) => void} changed
 * @property {(item: OutboxItem, isAccepted: boolean) => void} itemChanged
 * @property {(item: OutboxItem, message: PlacedMessage) => void} itemSaved
 * @property {(clientMsgId: string) => void} itemGiven
 * @property {() => Session | null} session
 * @property {(isExpired: boolean) => Promise<void>} prepareToken throws a NexoError
 * @property {(reason: string, forgetSession: boolean) => void} ended
 * @property {() => void} loadList
 * @property {(conversation: ConversationState) => void} loadDeleted
 * @property {import("./uploads.js").RawCall} callRaw signed in
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
export class Driver {
    /**
     * @param {string} userId
     * @param {DriverHost} host
     * @param {Surroundings} around
     * @param {Options} options
     */
    constructor(userId: string, host: DriverHost, around: Surroundings, options: Options);
    userId: string;
    _host: DriverHost;
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
    uploads: Uploads;
    /** Resolves when the storage was read. */
    loaded: Promise<void>;
    /**
     * Every call of the engine goes through here, so that the timer is set for its next deadline.
     * @param {(engine: Engine) => void} input
     */
    drive(input: (engine: Engine) => void): void;
    start(): Promise<void>;
    /** Disconnects. It can be started again. */
    stop(): Promise<void>;
    /** Drops the socket; nothing more is done or stored. */
    abandon(): void;
    _schedule(): void;
    /** @param {number} at when it should have been */
    _wake(at: number): void;
    /** Sends a frame that is not one of the engine's. @param {object} frame */
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
    /** Shows other tabs that this one is open. */
    _hold(): Promise<void>;
    _load(): Promise<void>;
    /** Takes over the outbox of tabs that were closed. */
    _adopt(): Promise<void>;
    /**
     * Stores it, and then sends it, or uploads its file first.
     * @param {OutboxItem} item
     * @param {Blob | null} [blob] of its file, unless that has a path
     */
    enqueue(item: OutboxItem, blob?: Blob | null): {
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
        expiresS?: number | undefined;
        createdAt: number;
        /**
         * it may have reached the server
         */
        wasSent: boolean;
        error: import("./types.js").Failure | null;
        /**
         * of its file, until that is complete
         */
        upload?: import("./types.js").Upload | undefined;
        /**
         * of its file, in this process
         */
        uploadedBytes?: number | undefined;
    };
    /** @param {string} clientMsgId */
    _stored(clientMsgId: string): void;
    /** @param {OutboxItem} item */
    _uploaded(item: OutboxItem): void;
    /** @param {string} clientMsgId */
    retry(clientMsgId: string): boolean;
    /** @param {string} clientMsgId */
    cancel(clientMsgId: string): boolean;
    /** @param {OutboxItem} item */
    _itemChanged(item: OutboxItem): void;
    /** @param {OutboxItem} item @param {PlacedMessage} message */
    _itemSaved(item: OutboxItem, message: PlacedMessage): void;
    /** Stores how far the application has a conversation. @param {string} conversationId */
    keepBaseline(conversationId: string): Promise<void>;
    storeBaselines(): Promise<void>;
    /** @param {Map<string, number>} baselines */
    _storeBaselines(baselines: Map<string, number>): void;
    /** Deletes everything stored of the user. */
    wipe(): Promise<void>;
    /**
     * Messages are sent also when the storage fails.
     * @param {() => Promise<void>} write
     * @param {() => void} [then]
     */
    _write(write: () => Promise<void>, then?: () => void): void;
}
export type DriverHost = {
    emit: (name: string, payload: any) => void;
    changed: (conversation: ConversationState) => void;
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
    loadDeleted: (conversation: ConversationState) => void;
    /**
     * signed in
     */
    callRaw: import("./uploads.js").RawCall;
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
import { Socket } from "./websocket.js";
import { Engine } from "./core/engine.js";
import { Uploads } from "./uploads.js";
import type { OutboxItem } from "./types.js";
import type { PlacedMessage } from "./types.js";
import type { Options } from "./core/options.js";
import type { ConversationState } from "./core/conversation-state.js";
import type { Session } from "./types.js";
import type { Storage } from "./types.js";
import type { Locks } from "./locks.js";
