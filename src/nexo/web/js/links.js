/** Addresses in a text: of the web, with or without the protocol, and of mail. What is shown is where it leads. */

import { h } from "./dom.js";

const WEB = /(?:https?:\/\/|(?<![\p{L}\p{N}@._-])www\.(?=[^\s.]))[^\s<>"'`，。！？；：、）】》]+/giu;
const TRAILING = new Set(".,!?;:'\"…*_~");
const BIDI = /[\u200E\u200F\u061C\u202A-\u202E\u2066-\u2069]/g;
const MAIL_CHAR = /[A-Za-z0-9._%+-]/;
const HOST_CHAR = /[A-Za-z0-9.-]/;
const MAIL_PART_MAX = 64;

/** Without signs that turn the direction of what follows. @param {string} text */
export const straight = (text) => text.replace(BIDI, "");

/**
 * @param {string} text
 * @returns {{at: number, length: number, make: () => Node | string}[]} in order, none over another
 */
export function addressesIn(text) {
  const found = [];
  for (const match of text.matchAll(WEB)) {
    const address = trimmed(match[0]);
    if (!urlOf(address)) continue;
    found.push({ at: match.index, length: address.length, make: () => linkTo(address) ?? address });
  }
  return text.includes("@") ? withMail(text, found) : found;
}

/**
 * Punctuation after an address belongs to the sentence, and so does a bracket that the address did not open. One pass
 * from the end: a sender chooses the text, and every receiver draws it.
 * @param {string} address
 */
export function trimmed(address) {
  let unopened = 0;
  for (const char of address) {
    if (char === ")") unopened += 1;
    else if (char === "(") unopened -= 1;
  }
  let end = address.length;
  for (; end > 0; end -= 1) {
    const char = address[end - 1];
    if (char === ")" && unopened > 0) unopened -= 1;
    else if (!TRAILING.has(char)) break;
  }
  return address.slice(0, end);
}

/** @param {string} address @returns {URL | null} */
function urlOf(address) {
  try {
    const url = new URL(/^www\./i.test(address) ? `https://${address}` : address);
    return url.protocol === "https:" || url.protocol === "http:" ? url : null;
  } catch {
    return null;
  }
}

/**
 * @param {string} address @param {string} [label] other words for it
 * @returns {HTMLElement | null} null: it is none
 */
export function linkTo(address, label) {
  const url = urlOf(address);
  if (!url) return null;
  const shown = shownAs(url, address);
  const isOdd = label !== undefined && /[\w-]\.[a-z]{2,}/i.test(label) && !shown.includes(straight(label).replace(/^https?:\/\//i, ""));
  const text = label === undefined || isOdd ? shown : label;
  return h("a", { class: "link", href: url.href, title: text === shown ? null : url.href, target: "_blank", rel: "noopener noreferrer" }, text);
}

/** As it was written, but a host with letters that look like others is shown in its plain form. */
function shownAs(url, address) {
  const plain = straight(address).replace(/^https?:\/\//i, "").replace(/\/$/, "");
  if (!url.hostname.includes("xn--") && !url.username) return plain;
  return (url.host + url.pathname + url.search).replace(/\/$/, "");
}

// -- mail --------------------------------------------------------------------------------------------------

/** Looks around each @ for so many characters at most: a pattern would go over the text again for each letter. */
function withMail(text, found) {
  const all = [...found];
  let next = 0;
  for (let at = text.indexOf("@"); at >= 0; at = text.indexOf("@", at + 1)) {
    while (next < found.length && found[next].at + found[next].length <= at) next += 1;
    if (found[next] && found[next].at <= at) continue; // part of an address of the web
    let start = at;
    while (start > 0 && at - start < MAIL_PART_MAX && MAIL_CHAR.test(text[start - 1])) start -= 1;
    let end = at + 1;
    while (end < text.length && end - at <= MAIL_PART_MAX * 4 && HOST_CHAR.test(text[end])) end += 1;
    const host = text.slice(at + 1, end).replace(/[.-]+$/, "");
    const last = all.at(-1);
    if (start === at || !/^[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,24}$/i.test(host) || (last && last.at < at && last.at + last.length > start)) continue;
    const address = text.slice(start, at + 1) + host;
    all.push({ at: start, length: address.length, make: () => h("a", { class: "link", href: `mailto:${address}`, rel: "noopener" }, address) });
  }
  return all.sort((a, b) => a.at - b.at);
}
