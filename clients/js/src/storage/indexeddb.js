// The storage of browsers: one object store, shared by all tabs of the origin.

const STORE = "values";

/** A `Storage` of types.js. */
export class IndexedDbStorage {
  /**
   * @param {string} name of the database: one per server
   * @param {IDBFactory} [factory]
   */
  constructor(name, factory = globalThis.indexedDB) {
    this._name = name;
    this._factory = factory;
    /** @type {Promise<IDBDatabase> | null} */
    this._opening = null;
    this.keepsBlobs = true;
  }

  /** @param {string} key */
  get(key) {
    return this._run("readonly", (store) => store.get(key));
  }

  /** @param {string} key @param {any} value */
  async set(key, value) {
    await this._run("readwrite", (store) => store.put(value, key));
  }

  /** @param {string} key */
  async delete(key) {
    await this._run("readwrite", (store) => store.delete(key));
  }

  /**
   * @param {string} prefix
   * @returns {Promise<[string, any][]>}
   */
  async entries(prefix) {
    const range = IDBKeyRange.bound(prefix, `${prefix}\uffff`);
    const [keys, values] = await this._readBoth(range);
    return keys.map((key, index) => [String(key), values[index]]);
  }

  /** @param {IDBKeyRange} range @returns {Promise<[IDBValidKey[], any[]]>} */
  async _readBoth(range) {
    const database = await this._open();
    const store = database.transaction(STORE, "readonly").objectStore(STORE);
    return Promise.all([promised(store.getAllKeys(range)), promised(store.getAll(range))]);
  }

  /**
   * Done when it is committed, not when it is asked for.
   * @template T
   * @param {IDBTransactionMode} mode
   * @param {(store: IDBObjectStore) => IDBRequest<T>} work
   * @returns {Promise<T>}
   */
  async _run(mode, work) {
    const database = await this._open();
    return new Promise((resolve, reject) => {
      const transaction = database.transaction(STORE, mode);
      const request = work(transaction.objectStore(STORE));
      transaction.oncomplete = () => resolve(request.result);
      transaction.onabort = () => reject(transaction.error ?? new Error("aborted"));
      transaction.onerror = () => reject(transaction.error);
    });
  }

  _open() {
    this._opening ??= new Promise((resolve, reject) => {
      const request = this._factory.open(this._name, 1);
      request.onupgradeneeded = () => request.result.createObjectStore(STORE);
      request.onsuccess = () => {
        const database = request.result;
        // closed by the browser, or because the database is deleted: it is opened again at the next call
        database.onclose = () => (this._opening = null);
        database.onversionchange = () => {
          database.close();
          this._opening = null;
        };
        resolve(database);
      };
      request.onerror = () => {
        this._opening = null;
        reject(request.error);
      };
    });
    return this._opening;
  }
}

/**
 * @template T
 * @param {IDBRequest<T>} request
 * @returns {Promise<T>}
 */
function promised(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
