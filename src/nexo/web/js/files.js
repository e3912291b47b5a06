/** Files of messages: their addresses, and what this page is about to upload. */

import { straight } from "./links.js";

const LOCAL_MAX = 60;
const FRESH_MS = 60_000;

/** What was chosen here, until the page is left. @type {Map<string, {url: string, name: string, size: number, mime: string, width?: number, height?: number}>} */
const chosen = new Map();

/** @param {string} clientMsgId @param {File | Blob} file @param {{url?: string, name?: string, width?: number, height?: number, duration_ms?: number}} [more] */
export function keepChosen(clientMsgId, file, more = {}) {
  const name = more.name ?? /** @type {any} */ (file).name ?? "";
  chosen.set(clientMsgId, { url: URL.createObjectURL(file), size: file.size, mime: file.type, ...more, name });
  if (chosen.size <= LOCAL_MAX) return;
  const [oldest, { url }] = /** @type {any} */ (chosen.entries().next().value);
  URL.revokeObjectURL(url);
  chosen.delete(oldest);
}

/** The content of a message of a file: what the server has filled in, else what is known here. @param {any} message */
export function fileOf(message) {
  const given = typeof message.content === "object" && message.content !== null ? message.content : {};
  // The length of a recording is known to who made it, also where the server cannot measure it.
  const length = message.extra?.duration_ms;
  const content = given.duration_ms === undefined && length > 0 ? { ...given, duration_ms: length } : given;
  const local = message.clientMsgId ? chosen.get(message.clientMsgId) : undefined;
  if (!local) return content;
  return { ...local, ...content, local: local.url, url: content.url };
}

/** A name as it is, not as it pretends to be. @param {any} content */
export const nameOf = (content) => straight(String(content.name ?? "")).replace(/\s+/g, " ").trim();

/** Only the web's own protocols, and files of this server. @param {any} url */
export const isAddress = (url) => typeof url === "string" && (/^https?:\/\//i.test(url) || url.startsWith("/files/"));

/** @param {any} content @param {"" | "small" | "medium"} [size] of a picture */
export function addressOf(content, size = "") {
  if (content.local && size !== "") return content.local;
  const url = content.url ?? content.local ?? "";
  if (!size || !content.file_id || !url.startsWith("/files/")) return url;
  const [path, query = ""] = url.split("?");
  return `${path}/${size}?${query}`;
}

/** Whether its signature is still good. @param {string} address */
function isFresh(address) {
  const exp = Number(/[?&]exp=(\d+)/.exec(address)?.[1] ?? 0);
  return exp === 0 || exp * 1000 > Date.now() + FRESH_MS;
}

/** An address that works now: the signed one, or the bytes themselves. @param {any} model @param {string} address @returns {Promise<string>} */
export async function openAddress(model, address) {
  if (isFresh(address)) return address;
  const blob = await fetchFile(model, address);
  return URL.createObjectURL(blob);
}

/** @param {any} model @param {string} address @returns {Promise<Blob>} */
export async function fetchFile(model, address) {
  const ask = () => fetch(address.split("?")[0], { headers: { authorization: `Bearer ${model.client.session?.accessToken}` } });
  let answer = await ask();
  if (answer.status === 401) {
    await model.client.users.info(model.userId); // renews what has expired
    answer = await ask();
  }
  if (!answer.ok) throw new Error(String(answer.status));
  return answer.blob();
}

/**
 * Shows it when it is there. @param {any} model @param {HTMLImageElement} image @param {string} address
 * @param {() => void} onload @param {() => void} onerror
 */
export function loadImage(model, image, address, onload, onerror) {
  let isSecond = false;
  image.addEventListener("load", onload);
  image.addEventListener("error", async () => {
    if (isSecond || !address.startsWith("/files/")) return onerror();
    isSecond = true; // the signature may have ended
    try {
      image.src = URL.createObjectURL(await fetchFile(model, address));
    } catch {
      onerror();
    }
    return undefined;
  });
  if (isFresh(address)) image.src = address;
  else image.dispatchEvent(new Event("error"));
}

const UNITS = ["B", "KB", "MB", "GB"];

/** 6.4 MB. @param {number} bytes */
export function sizeText(bytes) {
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit > 0 && value < 100 ? value.toFixed(1).replace(/\.0$/, "") : Math.round(value)} ${UNITS[unit]}`;
}

/** The letters on the sign of a file. @param {string} name */
export const typeLetters = (name) => /\.([a-z0-9]{1,4})$/i.exec(name)?.[1]?.toUpperCase() ?? "";

/** 42 s as 0:42. @param {number} ms */
export function lengthText(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  const minutes = Math.floor(s / 60);
  const rest = String(s % 60).padStart(2, "0");
  return minutes < 60 ? `${minutes}:${rest}` : `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${rest}`;
}
