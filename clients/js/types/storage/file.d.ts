/** A `Storage` of types.js. */
export class FileStorage {
    /** @param {string} path */
    constructor(path: string);
    _path: string;
    /** @type {Map<string, any>} */
    _values: Map<string, any>;
    _lines: number;
    /** @type {import("node:fs/promises").FileHandle | null} */
    _file: import("node:fs/promises").FileHandle | null;
    /** Changes that wait for the one write that is under way. @type {{change: any[], resolve: () => void, reject: (error: unknown) => void}[]} */
    _queue: {
        change: any[];
        resolve: () => void;
        reject: (error: unknown) => void;
    }[];
    _isWriting: boolean;
    _loaded: Promise<void>;
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
    /** Waits for what is being written. It opens again when it is needed. */
    close(): Promise<void>;
    _load(): Promise<void>;
    /** @param {any[]} change @returns {Promise<void>} */
    _change(change: any[]): Promise<void>;
    /** Everything that waits goes into one write: syncing a disk takes long, and as long for one as for many. */
    _writeAll(): Promise<void>;
    /** @param {any[][]} changes */
    _append(changes: any[][]): Promise<void>;
    /** @param {any[]} change a key, and its value if it has one */
    _apply(change: any[]): void;
    /** Beside it and then in its place, so that a crash leaves one of the two whole. */
    _rewrite(): Promise<void>;
}
