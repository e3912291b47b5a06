// The default storage of a client, and one that continues in memory when another fails (private windows, full disks).

import { IndexedDbStorage } from "./indexeddb.js";
import { MemoryStorage } from "./memory.js";

/** @import { Storage } from "../types.js" */

/**
 * IndexedDB where it exists, else memory.
 * @param {string} url of the server: each has a database of its own
 * @param {(error: unknown) => void} failed called once, when the storage is replaced by memory
 * @returns {Storage}
 */
export function defaultStorage(url, failed) {
  if (!globalThis.indexedDB) return new MemoryStorage();
  const name = `nexo ${new URL(url, globalThis.location?.href).href}`;
  return new FallbackStorage(new IndexedDbStorage(name), failed);
}

/** A `Storage` of types.js. */
export class FallbackStorage {
  /**
   * @param {Storage} storage
   * @param {(error: unknown) => void} failed called once
   */
  constructor(storage, failed) {
    /** @type {Storage} */
    this._storage = storage;
    this._failed = failed;
    this._hasFailed = false;
  }

  get keepsBlobs() {
    return this._storage.keepsBlobs === true;
  }

  /** @param {string} key @returns {Promise<any>} */
  get(key) {
    return this._try((storage) => storage.get(key));
  }

  /** @param {string} key @param {any} value @returns {Promise<void>} */
  set(key, value) {
    return this._try((storage) => storage.set(key, value));
  }

  /** @param {string} key @returns {Promise<void>} */
  delete(key) {
    return this._try((storage) => storage.delete(key));
  }

  /** @param {string} prefix @returns {Promise<[string, any][]>} */
  entries(prefix) {
    return this._try((storage) => storage.entries(prefix));
  }

  /**
   * @template T
   * @param {(storage: Storage) => Promise<T>} work
   * @returns {Promise<T>}
   */
  async _try(work) {
    try {
      return await work(this._storage);
    } catch (error) {
      if (!this._hasFailed) {
        this._hasFailed = true;
        this._storage = new MemoryStorage();
        this._failed(error);
      }
      return work(this._storage);
    }
  }
}
