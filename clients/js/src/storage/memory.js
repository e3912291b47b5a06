// A storage that ends with the process.

/** A `Storage` of types.js. */
export class MemoryStorage {
  constructor() {
    /** @type {Map<string, any>} */
    this._values = new Map();
    this.keepsBlobs = true;
  }

  /** @param {string} key */
  async get(key) {
    return this._values.get(key);
  }

  /** @param {string} key @param {any} value */
  async set(key, value) {
    this._values.set(key, value);
  }

  /** @param {string} key */
  async delete(key) {
    this._values.delete(key);
  }

  /**
   * @param {string} prefix
   * @returns {Promise<[string, any][]>}
   */
  async entries(prefix) {
    return [...this._values].filter(([key]) => key.startsWith(prefix)).sort(([one], [other]) => (one < other ? -1 : 1));
  }
}
