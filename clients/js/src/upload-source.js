// Where the bytes of an upload are read from: a blob, the storage after a restart, or a file of Node.

import { NexoError } from "./errors.js";

/** @import { Storage, Upload } from "./types.js" */

/** @typedef {Blob | Uint8Array | ArrayBuffer | string} FileLike a string is the path of a file, in Node */

/**
 * @typedef {object} Source
 * @property {number} size
 * @property {number} modifiedMs
 * @property {(start: number, end: number) => Promise<Blob>} read
 */

const NODE_FILES = "node:fs/promises"; // in a variable: a bundler for browsers must not look for it
const STEP_BYTES = 32_768;
const TYPES = {
  image: /\.(jpe?g|png|gif|webp|avif|bmp|tiff?|heic|heif)$/i,
  video: /\.(mp4|m4v|mov|webm|mkv|avi|3gp|ogv|mpe?g)$/i,
  audio: /\.(mp3|m4a|aac|wav|ogg|oga|opus|flac|amr)$/i,
};

/**
 * The type of the message that a file is sent as; the server decides by its bytes what it shows of it.
 * @param {string} name
 * @param {string} [mime] of a browser
 */
export function mediaType(name, mime = "") {
  if (mime.endsWith("+xml")) return 5;
  if (mime.startsWith("image/") || (!mime && TYPES.image.test(name))) return 2;
  if (mime.startsWith("video/") || (!mime && TYPES.video.test(name))) return 3;
  if (mime.startsWith("audio/") || (!mime && TYPES.audio.test(name))) return 4;
  return 5;
}

/**
 * @param {FileLike} file
 * @param {string} [name]
 * @returns {{upload: Upload, blob: Blob | null}} what the outbox keeps of it, and its bytes unless it has a path
 */
export function describeFile(file, name) {
  if (typeof file === "string") {
    const last = file.split(/[\\/]/).pop() || "file";
    return { upload: { name: name ?? last, size: null, path: file, modifiedMs: 0, address: "" }, blob: null };
  }
  const blob = file instanceof Blob ? file : new Blob([/** @type {BlobPart} */ (file)]);
  if (blob.size === 0) throw new NexoError("bad_file", "The file is empty");
  const given = /** @type {any} */ (file).name;
  const shown = name ?? (typeof given === "string" && given ? given : "file");
  return { upload: { name: shown, size: blob.size, path: "", modifiedMs: 0, address: "" }, blob };
}

/**
 * What the storage keeps of a blob: itself where the storage can, else text.
 * @param {Storage} storage
 * @param {Blob} blob
 */
export async function storedForm(storage, blob) {
  if (storage.keepsBlobs) return { blob };
  const bytes = new Uint8Array(await blob.arrayBuffer());
  let text = "";
  for (let at = 0; at < bytes.length; at += STEP_BYTES) text += String.fromCharCode(...bytes.subarray(at, at + STEP_BYTES));
  return { data: btoa(text) };
}

/**
 * @param {Upload} upload
 * @param {() => Promise<any>} readStored
 * @returns {Promise<Source>}
 */
export async function openSource(upload, readStored) {
  if (upload.path) return openPath(upload);
  const stored = await readStored();
  if (!stored) throw new NexoError("file_changed", "The bytes of the file are not in the storage");
  /** @type {Blob} */
  const blob = stored.blob ?? new Blob([Uint8Array.from(atob(stored.data), (char) => char.charCodeAt(0))]);
  const read = async (/** @type {number} */ start, /** @type {number} */ end) => {
    const piece = blob.slice(start, end);
    // a file that was changed or removed can be sliced, and not be read
    await piece.slice(0, 1).arrayBuffer().catch((error) => {
      throw new NexoError("file_changed", String(error));
    });
    return piece;
  };
  return { size: blob.size, modifiedMs: 0, read };
}

/** @param {Upload} upload @returns {Promise<Source>} */
async function openPath(upload) {
  const { open } = /** @type {typeof import("node:fs/promises")} */ (await import(NODE_FILES));
  const changed = (/** @type {unknown} */ error) => {
    throw error instanceof NexoError ? error : new NexoError("file_changed", String(error));
  };
  /** @template T @param {(file: import("node:fs/promises").FileHandle) => Promise<T>} work */
  const withFile = async (work) => {
    const file = await open(upload.path, "r").catch(changed);
    try {
      return await work(file).catch(changed);
    } finally {
      await file.close();
    }
  };
  const { size, mtimeMs } = await withFile((file) => file.stat());
  if (size === 0) throw new NexoError("bad_file", "The file is empty");
  if (upload.size !== null && (size !== upload.size || mtimeMs !== upload.modifiedMs)) throw new NexoError("file_changed");
  const read = (/** @type {number} */ start, /** @type {number} */ end) =>
    withFile(async (file) => {
      const state = await file.stat();
      if (state.size !== size || state.mtimeMs !== mtimeMs) throw new NexoError("file_changed");
      const bytes = new Uint8Array(end - start);
      for (let at = 0; at < bytes.length; ) {
        const { bytesRead } = await file.read(bytes, at, bytes.length - at, start + at);
        if (bytesRead === 0) throw new NexoError("file_changed");
        at += bytesRead;
      }
      return new Blob([bytes]);
    });
  return { size, modifiedMs: mtimeMs, read };
}
