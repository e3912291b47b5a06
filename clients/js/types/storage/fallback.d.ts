/** @import { Storage } from "../types.js" */
/**
 * IndexedDB where it exists, else memory.
 * @param {string} url of the server: each has a database of its own
 * @param {(error: unknown) => void} failed called once, when the storage is replaced by memory
 * @returns {Storage}
 */
export function defaultStorage(url: string, failed: (error: unknown) => void): Storage;
/** A `Storage` of types.js. */
export class FallbackStorage {
    /**
     * @param {Storage} storage
     * @param {(error: unknown) => void} failed called once
     */
    constructor(storage: Storage, failed: (error: unknown) => void);
    /** @type {Storage} */
    _storage: Storage;
    _failed: (error: unknown) => void;
    _hasFailed: boolean;
    get keepsBlobs(): boolean;
    /** @param {string} key @returns {Promise<any>} */
    get(key: string): Promise<any>;
    /** @param {string} key @param {any} value @returns {Promise<void>} */
    set(key: string, value: any): Promise<void>;
    /** @param {string} key @returns {Promise<void>} */
    delete(key: string): Promise<void>;
    /** @param {string} prefix @returns {Promise<[string, any][]>} */
    entries(prefix: string): Promise<[string, any][]>;
    /**
     * @template T
     * @param {(storage: Storage) => Promise<T>} work
     * @returns {Promise<T>}
     */
    _try<T>(work: (storage: Storage) => Promise<T>): Promise<T>;
}
import type { Storage } from "../types.js";
