/**
 * What is about to be sent with a text, for each conversation: chosen files are uploaded at once, and kept by this browser
 * until they are sent or taken out, also when another conversation is opened or the page is loaded again.
 */

import { Emitter } from "./emitter.js";
import { abandonUpload, UploadError, uploadFile } from "./tus.js";

const AT_ONCE = 4; // as many as the server allows a user
const TRIES = 4; // while there is a connection; without one it waits for that
const PAUSE_MS = 1000;
const KEPT_BYTES = 50_000_000; // larger ones have to be chosen again after a reload

/**
 * @typedef {"waiting" | "uploading" | "paused" | "failed" | "refused" | "ready" | "missing"} ItemState
 * @typedef {object} Item
 * @property {string} id
 * @property {string} conversationId
 * @property {File | null} file null: it has to be chosen again
 * @property {string} name
 * @property {string} type
 * @property {number} size
 * @property {boolean} isPhoto shown in the chat, not as a file
 * @property {string} url of a picture, to show it here
 * @property {ItemState} state
 * @property {string} refusal why it cannot be sent
 * @property {number} bytes that the server has confirmed
 * @property {string} address where the upload continues
 * @property {string} fileId once it is complete
 * @property {AbortController | null} abort
 * @property {() => void} release other tabs may have it from then on
 * @property {number} [width]
 * @property {number} [height]
 * @property {number} [durationMs]
 */

export class Attachments extends Emitter {
  /** @type {Map<string, Item>} */
  #items = new Map();
  /** @type {Map<string, Promise<void>>} */
  #loaded = new Map();
  /** @type {(() => void)[]} */
  #ends;
  #next = 1;

  /** @param {any} model */
  constructor(model) {
    super();
    this.model = model;
    this.storage = model.client.storage;
    this.prefix = `tray/${model.userId}/`;
    this.#ends = [model.on("connection", () => this.#look())];
  }

  /** @param {string} conversationId @returns {Item[]} */
  of(conversationId) {
    return [...this.#items.values()].filter((item) => item.conversationId === conversationId);
  }

  /** What was chosen before the page was loaded again. @param {string} conversationId */
  load(conversationId) {
    const found = this.#loaded.get(conversationId) ?? this.#load(conversationId);
    this.#loaded.set(conversationId, found);
    return found;
  }

  async #load(conversationId) {
    try {
      for (const [, kept] of await this.storage.entries(`${this.prefix}${conversationId}/`)) {
        const release = this.#items.has(kept.id) ? null : await hold(kept.id);
        if (!release) continue; // it is in another tab
        const file = kept.blob ? new File([kept.blob], kept.name, { type: kept.type }) : null;
        this.#put({ ...kept, file, release }, file ? "waiting" : "missing");
      }
    } catch {
      return; // storage is closed to this page
    }
    this.#look();
    this.emit("change", conversationId);
  }

  /** @param {string} conversationId @param {File} file @param {boolean} isPhoto @param {string} refusal @returns {Item} */
  add(conversationId, file, isPhoto, refusal) {
    const again = this.of(conversationId).find((one) => one.state === "missing" && one.name === file.name && one.size === file.size);
    if (again) {
      again.file = file;
      this.#set(again, "waiting");
      this.#look();
      return again;
    }
    const id = `${Date.now().toString(36)}-${this.#next++}-${Math.random().toString(36).slice(2, 8)}`;
    const { name, type, size } = file;
    const item = this.#put({ id, conversationId, file, name, type, size, isPhoto, address: "", bytes: 0, release: () => {} }, refusal ? "refused" : "waiting");
    item.refusal = refusal;
    if (!refusal) {
      hold(id).then((release) => (item.release = release ?? item.release));
      this.#keep(item);
    }
    this.#look();
    return item;
  }

  #put(given, state) {
    const url = given.isPhoto && given.file ? URL.createObjectURL(given.file) : "";
    const item = /** @type {Item} */ ({ refusal: "", fileId: "", bytes: 0, abort: null, ...given, url, state });
    this.#items.set(item.id, item);
    return item;
  }

  /** Taken out, or on its way as a message. @param {Item} item @param {boolean} isSent */
  remove(item, isSent = false) {
    if (!this.#items.delete(item.id)) return;
    item.abort?.abort();
    if (item.url) URL.revokeObjectURL(item.url);
    if (!isSent) abandonUpload(this.model, item.address);
    item.release();
    this.storage.delete(this.#key(item)).catch(() => {});
    this.#look();
    this.emit("change", item.conversationId);
  }

  /** From where it stopped. @param {Item} item */
  retry(item) {
    this.#set(item, "waiting");
    this.#look();
  }

  /** It turned out to be of no use. @param {Item} item @param {string} reason */
  refuse(item, reason) {
    item.abort?.abort();
    item.refusal = reason;
    abandonUpload(this.model, item.address);
    item.address = "";
    this.storage.delete(this.#key(item)).catch(() => {});
    this.#set(item, "refused");
    this.#look();
  }

  stop() {
    for (const end of this.#ends.splice(0)) end();
    for (const item of this.#items.values()) {
      item.abort?.abort();
      item.release();
    }
  }

  /** Signing out leaves nothing. */
  async forget() {
    try {
      for (const [key, kept] of await this.storage.entries(this.prefix)) {
        abandonUpload(this.model, kept.address);
        await this.storage.delete(key);
      }
    } catch {
      // there was nothing to keep it in
    }
  }

  #key(item) {
    return `${this.prefix}${item.conversationId}/${item.id}`;
  }

  #keep(item) {
    if (!this.#items.has(item.id)) return;
    const { id, conversationId, name, type, size, isPhoto, address, bytes, file } = item;
    const kept = { id, conversationId, name, type, size, isPhoto, address, bytes, blob: size <= KEPT_BYTES ? file : null };
    this.storage.set(this.#key(item), kept).catch(() => {}); // full or closed: it lasts as long as the page
  }

  /** @param {Item} item @param {ItemState} state */
  #set(item, state) {
    item.state = state;
    this.emit("change", item.conversationId);
  }

  /** Starts what may start; without a connection everything stands still. */
  #look() {
    const all = [...this.#items.values()];
    if (!this.model.isConnected) {
      for (const item of all.filter(({ state }) => state === "uploading")) {
        item.abort?.abort();
        this.#set(item, "paused");
      }
      return;
    }
    let free = AT_ONCE - all.filter(({ state }) => state === "uploading").length;
    for (const item of all) {
      if (free <= 0) return;
      if (item.state !== "waiting" && item.state !== "paused") continue;
      free -= 1;
      this.#run(item);
    }
  }

  /** @param {Item} item */
  async #run(item) {
    const abort = new AbortController();
    item.abort = abort;
    this.#set(item, "uploading");
    for (let tries = 1; ; tries += 1) {
      const before = item.bytes;
      try {
        item.fileId = await this.#upload(item, abort.signal);
        this.#keep(item);
        this.#set(item, "ready");
        this.emit("ready", item);
        break;
      } catch (error) {
        if (abort.signal.aborted) return;
        if (error instanceof UploadError && error.isLasting) {
          this.emit("refused", { item, reason: error.reason });
          return;
        }
        if (item.bytes > before) tries = 1;
        if (tries >= TRIES) {
          this.#set(item, "failed");
          break;
        }
        await pause(PAUSE_MS * tries, abort.signal);
        if (abort.signal.aborted) return;
      }
    }
    this.#look();
  }

  #upload(item, signal) {
    return uploadFile(this.model, item.file, {
      name: item.name,
      address: item.address,
      signal,
      onaddress: (address) => {
        item.address = address;
        this.#keep(item);
      },
      onbytes: (bytes) => {
        item.bytes = bytes;
        if (item.size > KEPT_BYTES) this.#keep(item); // without its bytes: only how far it is
        this.emit("change", item.conversationId);
      },
    });
  }
}

/** One tab at a time has it. @param {string} id @returns {Promise<(() => void) | null>} null: another one has it */
function hold(id) {
  if (!navigator.locks) return Promise.resolve(() => {});
  return new Promise((resolve) => {
    const work = (lock) => {
      if (lock) return new Promise((release) => resolve(() => release(undefined)));
      resolve(null);
      return undefined;
    };
    navigator.locks.request(`nexo.tray.${id}`, { ifAvailable: true }, work).catch(() => resolve(null));
  });
}

/** @param {number} ms @param {AbortSignal} signal @returns {Promise<void>} */
function pause(ms, signal) {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
  });
}
