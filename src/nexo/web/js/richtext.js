/** Text with its links and mentions. Everything becomes elements and text; nothing is parsed as markup. */

import { h } from "./dom.js";

const LINK = /https?:\/\/[^\s<>"'`，。！？；：、）】》]+/gi;
const TRAILING = /[.,!?;:'"…]+$/;

/**
 * @param {string} text
 * @param {{name: string, isMe: boolean}[]} [mentioned] as they may appear after an @
 * @returns {(Node | string)[]}
 */
export function richText(text, mentioned = []) {
  const parts = [];
  let at = 0;
  for (const match of text.matchAll(LINK)) {
    const address = trimmed(match[0]);
    const link = linkTo(address);
    if (!link) continue;
    parts.push(...withMentions(text.slice(at, match.index), mentioned), link);
    at = match.index + address.length;
  }
  parts.push(...withMentions(text.slice(at), mentioned));
  return parts;
}

/** Punctuation after an address belongs to the sentence, and so does a bracket that the address did not open. */
function trimmed(address) {
  let kept = address.replace(TRAILING, "");
  while (kept.endsWith(")") && kept.split(")").length > kept.split("(").length) kept = kept.slice(0, -1).replace(TRAILING, "");
  return kept;
}

function linkTo(address) {
  let url;
  try {
    url = new URL(address);
  } catch {
    return null;
  }
  if (url.protocol !== "https:" && url.protocol !== "http:") return null;
  const shown = address.replace(/^https?:\/\//i, "").replace(/\/$/, "");
  return h("a", { class: "link", href: url.href, target: "_blank", rel: "noopener noreferrer" }, shown);
}

function withMentions(text, mentioned) {
  if (!text) return [];
  const names = mentioned.filter(({ name }) => name).sort((a, b) => b.name.length - a.name.length);
  if (names.length === 0) return [text];
  const pattern = new RegExp(`@(${names.map(({ name }) => escaped(name)).join("|")})`, "giu");
  const parts = [];
  let at = 0;
  for (const match of text.matchAll(pattern)) {
    const found = names.find(({ name }) => name.toLowerCase() === match[1].toLowerCase());
    parts.push(text.slice(at, match.index), h("span", { class: found?.isMe ? "at self" : "at" }, match[0]));
    at = match.index + match[0].length;
  }
  parts.push(text.slice(at));
  return parts.filter((part) => part !== "");
}

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
