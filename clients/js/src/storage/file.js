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
    /** Changes are written one after the other. @type {Promise<any>} */
    this._last = this._load();
    this._last.catch(() => {});
  }

  /** @param {string} key */
  async get(key) {
    await this._last;
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
    await this._last;
    return [...this._values].filter(([key]) => key.startsWith(prefix)).sort(([one], [other]) => (one < other ? -1 : 1));
  }

  /** Waits for what is being written. */
  async close() {
    await this._last;
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

  /** @param {any[]} change */
  _change(change) {
    const done = this._last.then(async () => {
      this._file ??= await open(this._path, "a", 0o600);
      await this._file.appendFile(`${JSON.stringify(change)}\n`);
      await this._file.datasync(); // a message in the outbox survives the machine
      this._apply(change);
      this._lines += 1;
      if (this._lines > REWRITE_MIN_LINES && this._lines > 4 * this._values.size) await this._rewrite();
    });
    this._last = done.catch(() => {}); // the next change is its own matter
    return done;
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
