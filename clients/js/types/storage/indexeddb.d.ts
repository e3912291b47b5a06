/** A `Storage` of types.js. */
export class IndexedDbStorage {
    /**
     * @param {string} name of the database: one per server
     * @param {IDBFactory} [factory]
     */
    constructor(name: string, factory?: IDBFactory);
    _name: string;
    _factory: IDBFactory;
    /** @type {Promise<IDBDatabase> | null} */
    _opening: Promise<IDBDatabase> | null;
    keepsBlobs: boolean;
    /** @param {string} key */
    get(key: string): Promise<any>;
    /** @param {string} key @param {any} value */
    set(key: string, value: any): Promise<void>;
    /** @param {string} key */
    delete(key: string): Promise<void>;
    /**
     * @param {string} prefix
     * @returns {Promise<[string, any][]>}
     */
    entries(prefix: string): Promise<[string, any][]>;
    /** @param {IDBKeyRange} range @returns {Promise<[IDBValidKey[], any[]]>} */
    _readBoth(range: IDBKeyRange): Promise<[IDBValidKey[], any[]]>;
    /**
     * Done when it is committed, not when it is asked for.
     * @template T
     * @param {IDBTransactionMode} mode
     * @param {(store: IDBObjectStore) => IDBRequest<T>} work
     * @returns {Promise<T>}
     */
    _run<T>(mode: IDBTransactionMode, work: (store: IDBObjectStore) => IDBRequest<T>): Promise<T>;
    _open(): Promise<IDBDatabase>;
}
