// Goes on in memory when a storage fails: private windows and full disks must not keep people from chatting.

import { MemoryStorage } from "./memory.js";

/** @import { Storage } from "../types.js" */

/** A `Storage` of types.js. */
export class FallbackStorage {
  /**
   * @param {Storage} storage
   * @param {(error: unknown) => void} failed told once
   */
  constructor(storage, failed) {
    /** @type {Storage} */
    this._storage = storage;
    this._failed = failed;
    this._hasFailed = false;
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
