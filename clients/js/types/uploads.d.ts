/** @typedef {(method: string, path: string, headers: Record<string, string>, body?: Blob) => Promise<Headers>} RawCall */
/**
 * @typedef {object} UploadHost
 * @property {() => Engine} engine
 * @property {RawCall} call signed in; rejects with a NexoError
 * @property {(item: OutboxItem) => void} changed it is to be stored
 * @property {(item: OutboxItem) => void} moved
 * @property {(item: OutboxItem) => void} complete it is to be stored, and then sent
 * @property {(error: unknown) => void} failed
 */
export class Uploads {
    /**
     * @param {UploadHost} host
     * @param {Storage} storage
     * @param {string} userId
     * @param {Options} options
     */
    constructor(host: UploadHost, storage: Storage, userId: string, options: Options);
    _host: UploadHost;
    _storage: Storage;
    _userId: string;
    _options: Options;
    /** @type {Map<string, AbortController>} */
    _running: Map<string, AbortController>;
    _isOn: boolean;
    /** @param {string} clientMsgId */
    key(clientMsgId: string): string;
    start(): void;
    /** What is under way stops; the next start continues. */
    stop(): void;
    /** Starts what may start, and stops what was removed from the outbox. */
    look(): void;
    /** Deletes what is stored of a file, here and on the server. @param {OutboxItem} item */
    abandon(item: OutboxItem): Promise<void>;
    /** @param {string} clientMsgId @param {AbortSignal} signal */
    _run(clientMsgId: string, signal: AbortSignal): Promise<void>;
    /** @param {string} clientMsgId */
    _item(clientMsgId: string): OutboxItem | undefined;
    /** @param {string} clientMsgId @param {Partial<Upload>} changes */
    _note(clientMsgId: string, changes: Partial<Upload>): void;
    /** @param {string} clientMsgId @param {number} bytes */
    _moved(clientMsgId: string, bytes: number): void;
    /**
     * @param {string} clientMsgId
     * @param {AbortSignal} signal
     * @returns {Promise<string>} the id of the file
     */
    _upload(clientMsgId: string, signal: AbortSignal): Promise<string>;
    /** @param {string} address @param {Record<string, string>} headers @param {Blob} piece */
    _add(address: string, headers: Record<string, string>, piece: Blob): Promise<Headers>;
    /**
     * @param {string} clientMsgId
     * @param {Upload} upload
     * @param {number} size
     * @returns {Promise<{address: string, offset: number}>} how much of it the server has, and where
     */
    _place(clientMsgId: string, upload: Upload, size: number): Promise<{
        address: string;
        offset: number;
    }>;
}
export type RawCall = (method: string, path: string, headers: Record<string, string>, body?: Blob) => Promise<Headers>;
export type UploadHost = {
    engine: () => Engine;
    /**
     * signed in; rejects with a NexoError
     */
    call: RawCall;
    /**
     * it is to be stored
     */
    changed: (item: OutboxItem) => void;
    moved: (item: OutboxItem) => void;
    /**
     * it is to be stored, and then sent
     */
    complete: (item: OutboxItem) => void;
    failed: (error: unknown) => void;
};
import type { Storage } from "./types.js";
import type { Options } from "./core/options.js";
import type { OutboxItem } from "./types.js";
import type { Upload } from "./types.js";
import type { Engine } from "./core/engine.js";
