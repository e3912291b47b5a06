/** A `Storage` of types.js. */
export class MemoryStorage {
    /** @type {Map<string, any>} */
    _values: Map<string, any>;
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
}
