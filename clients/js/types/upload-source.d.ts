/**
 * The type of the message that a file is sent as; the server decides by its bytes what it shows of it.
 * @param {string} name
 * @param {string} [mime] of a browser
 */
export function mediaType(name: string, mime?: string): 3 | 4 | 2 | 5;
/**
 * @param {FileLike} file
 * @param {string} [name]
 * @returns {{upload: Upload, blob: Blob | null}} what the outbox keeps of it, and its bytes unless it has a path
 */
export function describeFile(file: FileLike, name?: string): {
    upload: Upload;
    blob: Blob | null;
};
/**
 * What the storage keeps of a blob: itself where the storage can, else text.
 * @param {Storage} storage
 * @param {Blob} blob
 */
export function storedForm(storage: Storage, blob: Blob): Promise<{
    blob: Blob;
    data?: undefined;
} | {
    data: string;
    blob?: undefined;
}>;
/**
 * @param {Upload} upload
 * @param {() => Promise<any>} readStored
 * @returns {Promise<Source>}
 */
export function openSource(upload: Upload, readStored: () => Promise<any>): Promise<Source>;
/**
 * a string is the path of a file, in Node
 */
export type FileLike = Blob | Uint8Array | ArrayBuffer | string;
export type Source = {
    size: number;
    modifiedMs: number;
    read: (start: number, end: number) => Promise<Blob>;
};
import type { Upload } from "./types.js";
import type { Storage } from "./types.js";
