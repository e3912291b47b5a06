/** One file to the server in pieces, by the protocol tus: it continues from the bytes that the server has confirmed. */

const PLACE = "/files/tus";
const FIRST_BYTES = 128 * 1024;
const MOST_BYTES = 4 * 1024 * 1024;
const QUICK_MS = 500; // a piece that took less than this is followed by a larger one
const GONE = [404, 410]; // it has expired, or the server does not know it
const DIFFERENT = [409, 423]; // the server has more or less of it, or another request adds to it

/** Why a piece was not taken. `isLasting`: trying again does not help. */
export class UploadError extends Error {
  /** @param {string} reason @param {number} status */
  constructor(reason, status) {
    super(reason);
    this.reason = reason;
    this.status = status;
    this.isLasting = status >= 400 && status < 500 && ![401, 408, 429, ...GONE, ...DIFFERENT].includes(status);
  }
}

/**
 * @param {any} model
 * @param {Blob} file
 * @param {{name: string, address: string, signal: AbortSignal, onaddress: (address: string) => void, onbytes: (bytes: number) => void}} how
 * @returns {Promise<string>} the id of the file
 */
export async function uploadFile(model, file, { name, address, signal, onaddress, onbytes }) {
  let place = address;
  let offset = place ? await confirmed(model, place, signal) : -1;
  if (offset < 0) {
    const headers = { "Upload-Length": String(file.size), "Upload-Metadata": `filename ${base64(name)}` };
    const answer = await ask(model, "POST", PLACE, headers, null, signal);
    place = `${PLACE}/${(answer.headers.get("Location") ?? "").replace(/\/+$/, "").split("/").pop()}`;
    offset = 0;
    onaddress(place);
  }
  onbytes(offset);
  let pieceBytes = FIRST_BYTES;
  while (offset < file.size) {
    const piece = file.slice(offset, offset + pieceBytes);
    const started = Date.now();
    const headers = { "Upload-Offset": String(offset), "Content-Type": "application/offset+octet-stream" };
    const answer = await ask(model, "PATCH", place, headers, piece, signal);
    offset = Number(answer.headers.get("Upload-Offset") ?? Number.NaN);
    if (!Number.isSafeInteger(offset)) throw new UploadError("bad_reply", 0);
    pieceBytes = Date.now() - started < QUICK_MS ? Math.min(pieceBytes * 2, MOST_BYTES) : Math.max(pieceBytes / 2, FIRST_BYTES);
    onbytes(offset);
  }
  return /** @type {string} */ (place.split("/").pop());
}

/** What the server has of it is of no use any more; if this does not reach it, it expires. @param {any} model @param {string} address */
export function abandonUpload(model, address) {
  if (address) ask(model, "DELETE", address, {}, null, null).catch(() => {});
}

/** How many bytes the server has; -1: it does not know the upload. */
async function confirmed(model, address, signal) {
  try {
    const answer = await ask(model, "HEAD", address, {}, null, signal);
    return Number(answer.headers.get("Upload-Offset") ?? -1);
  } catch (error) {
    if (error instanceof UploadError && GONE.includes(error.status)) return -1;
    throw error;
  }
}

async function ask(model, method, path, headers, body, signal, isAgain = false) {
  const authorization = `Bearer ${model.client.session?.accessToken}`;
  let answer;
  try {
    answer = await fetch(path, { method, headers: { "Tus-Resumable": "1.0.0", authorization, ...headers }, body, signal });
  } catch (error) {
    throw signal?.aborted ? error : new UploadError("network", 0);
  }
  if (answer.ok) return answer;
  if (answer.status === 401 && !isAgain) {
    await model.client.users.info(model.userId); // renews what has expired
    return ask(model, method, path, headers, body, signal, true);
  }
  const body_ = await answer.json().catch(() => null);
  throw new UploadError(body_?.err_msg || "err_other", answer.status);
}

/** @param {string} text */
const base64 = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));
