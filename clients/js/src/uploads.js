// Uploads the files of messages in the outbox, by the protocol tus: after a lost connection or a restart an upload
// continues where the server has it.

import { Backoff } from "./core/backoff.js";
import { NexoError } from "./errors.js";
import { openSource } from "./upload-source.js";

/** @import { Engine } from "./core/engine.js" */
/** @import { Options } from "./core/options.js" */
/** @import { OutboxItem, Storage, Upload } from "./types.js" */

const AT_A_TIME = 2; // the server allows a user a few
const FIRST_BYTES = 128 * 1024;
const MOST_BYTES = 4 * 1024 * 1024;
const QUICK_MS = 500; // a request that took less than this is followed by a larger one
const PLACE = "/files/tus";
const AGAIN = [404, 410]; // of an upload: it has expired, or the server does not know it
const ELSE = [409, 423]; // the server has more or less of it, or another request adds to it

/** @typedef {(method: string, path: string, headers: Record<string, string>, body?: Blob) => Promise<Headers>} RawCall */

/**
 * @typedef {object} UploadHost
 * @property {() => Engine} engine
 * @property {RawCall} call signed in; rejects with a NexoError
 * @property {(item: OutboxItem) => void} changed it is to be stored
 * @property {(item: OutboxItem) => void} moved
 * @property {(item: OutboxItem) => void} complete it is to be stored, and then sent
 * @property {(error: unknown) => void} failed
 */

export class Uploads {
  /**
   * @param {UploadHost} host
   * @param {Storage} storage
   * @param {string} userId
   * @param {Options} options
   */
  constructor(host, storage, userId, options) {
    this._host = host;
    this._storage = storage;
    this._userId = userId;
    this._options = options;
    /** @type {Map<string, AbortController>} */
    this._running = new Map();
    this._isOn = false;
  }

  /** @param {string} clientMsgId */
  key(clientMsgId) {
    return `uploads/${this._userId}/${clientMsgId}`;
  }

  start() {
    this._isOn = true;
    this.look();
  }

  /** What is under way stops; the next start continues. */
  stop() {
    this._isOn = false;
    for (const abort of this._running.values()) abort.abort();
  }

  /** Starts what may start, and stops what was removed from the outbox. */
  look() {
    const waiting = new Set(this._host.engine().outbox.uploading());
    for (const [clientMsgId, abort] of this._running) if (!waiting.has(clientMsgId)) abort.abort();
    if (!this._isOn) return;
    for (const clientMsgId of waiting) {
      if (this._running.size >= AT_A_TIME) return;
      if (this._running.has(clientMsgId)) continue;
      const abort = new AbortController();
      this._running.set(clientMsgId, abort);
      void this._run(clientMsgId, abort.signal)
        .catch((error) => {
          if (!abort.signal.aborted) this._host.failed(error);
        })
        .then(() => {
          this._running.delete(clientMsgId);
          this.look();
        });
    }
  }

  /** Deletes what is stored of a file, here and on the server. @param {OutboxItem} item */
  async abandon(item) {
    this._running.get(item.clientMsgId)?.abort();
    await this._storage.delete(this.key(item.clientMsgId));
    if (item.upload?.address) await this._host.call("DELETE", item.upload.address, {}).catch(() => {}); // it expires
  }

  /** @param {string} clientMsgId @param {AbortSignal} signal */
  async _run(clientMsgId, signal) {
    const { backoffMinMs, backoffMaxMs } = this._options;
    const backoff = new Backoff(backoffMinMs, backoffMaxMs, Math.random);
    for (;;) {
      const before = this._item(clientMsgId)?.uploadedBytes ?? 0;
      try {
        const fileId = await this._upload(clientMsgId, signal);
        if (signal.aborted) return;
        const item = this._host.engine().outbox.uploaded(clientMsgId, fileId);
        if (item) this._host.complete(item);
        await this._storage.delete(this.key(clientMsgId));
        return;
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof NexoError)) throw error;
        if (!error.isTransient && error.status < 500) {
          const item = this._host.engine().outbox.uploadFailed(clientMsgId, { reason: error.reason, detail: error.detail });
          if (item) this._host.changed(item);
          return;
        }
        if ((this._item(clientMsgId)?.uploadedBytes ?? 0) > before) backoff.reset();
        await pause(backoff.next(error.retryAfterMs), signal);
        if (signal.aborted) return;
      }
    }
  }

  /** @param {string} clientMsgId */
  _item(clientMsgId) {
    return this._host.engine().outbox.get(clientMsgId)?.item;
  }

  /** @param {string} clientMsgId @param {Partial<Upload>} changes */
  _note(clientMsgId, changes) {
    const item = this._host.engine().outbox.uploadChanged(clientMsgId, changes);
    if (item) this._host.changed(item);
  }

  /** @param {string} clientMsgId @param {number} bytes */
  _moved(clientMsgId, bytes) {
    const item = this._host.engine().outbox.uploadMoved(clientMsgId, bytes);
    if (item) this._host.moved(item);
  }

  /**
   * @param {string} clientMsgId
   * @param {AbortSignal} signal
   * @returns {Promise<string>} the id of the file
   */
  async _upload(clientMsgId, signal) {
    const upload = this._item(clientMsgId)?.upload;
    if (!upload) throw new NexoError("cancelled");
    const source = await openSource(upload, () => this._storage.get(this.key(clientMsgId)));
    if (upload.size === null) this._note(clientMsgId, { size: source.size, modifiedMs: source.modifiedMs });
    let { address, offset } = await this._place(clientMsgId, upload, source.size);
    let pieceBytes = FIRST_BYTES;
    this._moved(clientMsgId, offset);
    while (offset < source.size) {
      const piece = await source.read(offset, Math.min(offset + pieceBytes, source.size));
      if (signal.aborted) throw new NexoError("cancelled");
      const started = Date.now();
      const headers = { "Upload-Offset": String(offset), "Content-Type": "application/offset+octet-stream" };
      offset = number(await this._add(address, headers, piece), "Upload-Offset");
      if (signal.aborted) throw new NexoError("cancelled");
      pieceBytes = Date.now() - started < QUICK_MS ? Math.min(pieceBytes * 2, MOST_BYTES) : Math.max(pieceBytes / 2, FIRST_BYTES);
      this._moved(clientMsgId, offset);
    }
    return address.slice(address.lastIndexOf("/") + 1);
  }

  /** @param {string} address @param {Record<string, string>} headers @param {Blob} piece */
  async _add(address, headers, piece) {
    try {
      return await this._host.call("PATCH", address, headers, piece);
    } catch (error) {
      if (!(error instanceof NexoError) || ![...AGAIN, ...ELSE].includes(error.status)) throw error;
      // the server is at another place, or has forgotten the upload: the next attempt asks where it is
      throw new NexoError("server_busy", error.detail, { retryAfterMs: error.retryAfterMs });
    }
  }

  /**
   * @param {string} clientMsgId
   * @param {Upload} upload
   * @param {number} size
   * @returns {Promise<{address: string, offset: number}>} how much of it the server has, and where
   */
  async _place(clientMsgId, upload, size) {
    if (upload.address) {
      try {
        return { address: upload.address, offset: number(await this._host.call("HEAD", upload.address, {}), "Upload-Offset") };
      } catch (error) {
        if (!(error instanceof NexoError) || !AGAIN.includes(error.status)) throw error;
      }
    }
    const headers = { "Upload-Length": String(size), "Upload-Metadata": `filename ${base64(upload.name)}` };
    const place = (await this._host.call("POST", PLACE, headers)).get("Location") ?? "";
    const fileId = place.replace(/\/+$/, "").split("/").pop();
    if (!fileId) throw new NexoError("bad_reply", "The server gave no address for the upload");
    const address = `${PLACE}/${fileId}`;
    this._note(clientMsgId, { address });
    return { address, offset: 0 };
  }
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

/** @param {Headers} headers @param {string} name */
function number(headers, name) {
  const value = Number(headers.get(name) ?? "x");
  if (!Number.isSafeInteger(value)) throw new NexoError("bad_reply", `The server gave no ${name}`);
  return value;
}

/** @param {string} text */
function base64(text) {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}
