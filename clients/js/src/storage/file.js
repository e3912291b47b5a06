// A storage in one file, for Node: a log of changes, rewritten when it has grown. One process at a time.

import { open, readFile, rename } from "node:fs/promises";

const REWRITE_MIN_LINES = 1000;

/** A `Storage` of types.js. */
export class FileStorage {
  /** @param {string} path */
  constructor(path) {
    this._path = path;
    /** @type {Map<string, any>} */
    this._values = new Map();
    this._lines = 0;
    /** @type {import("node:fs/promises").FileHandle | null} */
    this._file = null;
    /** Changes that wait for the one write that is under way. @type {{change: any[], resolve: () => void, reject: (error: unknown) => void}[]} */
    this._queue = [];
    this._isWriting = false;
    this._loaded = this._load();
    this._loaded.catch(() => {}); // every call rejects with it
  }

  /** @param {string} key */
  async get(key) {
    await this._loaded;
    return this._values.get(key);
  }

  /** @param {string} key @param {any} value */
  async set(key, value) {
    await this._change([key, value]);
  }

  /** @param {string} key */
  async delete(key) {
    await this._change([key]);
  }

  /**
   * @param {string} prefix
   * @returns {Promise<[string, any][]>}
   */
  async entries(prefix) {
    await this._loaded;
    return [...this._values].filter(([key]) => key.startsWith(prefix)).sort(([one], [other]) => (one < other ? -1 : 1));
  }

  /** Waits for what is being written. It opens again when it is needed. */
  async close() {
    await this._loaded;
    while (this._isWriting) await new Promise((resolve) => setTimeout(resolve, 1));
    await this._file?.close();
    this._file = null;
  }

  async _load() {
    const text = await readFile(this._path, "utf8").catch((error) => {
      if (error.code === "ENOENT") return "";
      throw error;
    });
    for (const line of text.split("\n")) {
      const change = parse(line);
      if (change !== null) this._apply(change);
    }
    await this._rewrite();
  }

  /** @param {any[]} change @returns {Promise<void>} */
  _change(change) {
    return new Promise((resolve, reject) => {
      this._queue.push({ change, resolve, reject });
      if (!this._isWriting) void this._writeAll();
    });
  }

  /** Everything that waits goes into one write: syncing a disk takes long, and as long for one as for many. */
  async _writeAll() {
    this._isWriting = true;
    while (this._queue.length > 0) {
      const batch = this._queue.splice(0);
      try {
        await this._append(batch.map(({ change }) => change));
        for (const { resolve } of batch) resolve();
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this._isWriting = false;
  }

  /** @param {any[][]} changes */
  async _append(changes) {
    await this._loaded;
    this._file ??= await open(this._path, "a", 0o600);
    await this._file.appendFile(changes.map((change) => `${JSON.stringify(change)}\n`).join(""));
    await this._file.datasync(); // a message in the outbox survives the machine
    for (const change of changes) this._apply(change);
    this._lines += changes.length;
    if (this._lines > REWRITE_MIN_LINES && this._lines > 4 * this._values.size) await this._rewrite();
  }

  /** @param {any[]} change a key, and its value if it has one */
  _apply(change) {
    if (change.length === 2) this._values.set(change[0], change[1]);
    else this._values.delete(change[0]);
  }

  /** Beside it and then in its place, so that a crash leaves one of the two whole. */
  async _rewrite() {
    const temporary = `${this._path}.new`;
    const file = await open(temporary, "w", 0o600);
    try {
      await file.writeFile([...this._values].map((entry) => `${JSON.stringify(entry)}\n`).join(""));
      await file.datasync();
    } finally {
      await file.close();
    }
    await this._file?.close();
    this._file = null;
    await rename(temporary, this._path);
    this._lines = this._values.size;
  }
}

/** @param {string} line @returns {any[] | null} null for the torn last line of a crash */
function parse(line) {
  try {
    const change = JSON.parse(line);
    return Array.isArray(change) ? change : null;
  } catch {
    return null;
  }
}
