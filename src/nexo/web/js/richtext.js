/**
 * Text with its formatting, links and mentions. Everything becomes elements and text; nothing is parsed as markup.
 *
 * A sender chooses the text and every receiver draws it, so each pass goes over it once: marks keep one open place per
 * kind, addresses are looked for around what they must contain.
 */

import { h } from "./dom.js";
import { addressesIn, linkTo } from "./links.js";

const MARKS = { "**": "strong", _: "em", "~~": "s" };
const WORD = /[\p{L}\p{N}]/u;
const NAMES_MAX = 60;
const NAME_CHARS_MAX = 64;
const NESTED_MAX = 2; // quotes in quotes; deeper ones stay text

/**
 * @param {string} text
 * @param {{name: string, isMe: boolean}[]} [mentioned] as they may appear after an @
 * @returns {(Node | string)[]}
 */
export function richText(text, mentioned = []) {
  return blocks(tamed(text).split("\n"), mentionPattern(mentioned), 0);
}

/** The same without its marks, for one line. @param {string} text */
export const plainText = (text) => richText(text).map(wordsOf).join("").replace(/\s+/g, " ").trim();

const BLOCKS = new Set(["UL", "OL", "LI", "PRE", "BLOCKQUOTE"]);

/** @param {Node | string} part @returns {string} */
function wordsOf(part) {
  if (typeof part === "string") return part;
  if (!(part instanceof Element) || !BLOCKS.has(part.tagName)) return part.textContent ?? "";
  return ` ${[...part.childNodes].map(wordsOf).join("")} `;
}

// -- blocks ------------------------------------------------------------------------------------------------

const LIST = { ul: /^- +(?=\S)/, ol: /^\d{1,3}\. +(?=\S)/ };

function blocks(lines, names, depth) {
  const parts = [];
  const plain = [];
  const flush = () => {
    if (plain.length) parts.push(...inline(plain.join("\n"), names));
    plain.length = 0;
  };
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at];
    if (line.startsWith("```")) {
      const end = fenceEnd(lines, at);
      if (end > at) {
        flush();
        parts.push(h("pre", null, h("code", null, lines.slice(at + 1, end).join("\n"))));
        at = end;
        continue;
      }
    }
    const kind = line.startsWith("> ") && depth < NESTED_MAX ? "blockquote" : LIST.ul.test(line) ? "ul" : LIST.ol.test(line) ? "ol" : "";
    if (!kind) {
      plain.push(line);
      continue;
    }
    flush();
    let end = at;
    const belongs = (one) => (kind === "blockquote" ? one.startsWith("> ") : LIST[kind].test(one));
    while (end < lines.length && belongs(lines[end])) end += 1;
    parts.push(kind === "blockquote" ? h("blockquote", null, blocks(lines.slice(at, end).map((one) => one.slice(2)), names, depth + 1)) : list(kind, lines.slice(at, end), names));
    at = end - 1;
  }
  flush();
  return parts;
}

/** Where the block of code ends; `at` when it does not. Only the last fence of a text can be one without an end. */
function fenceEnd(lines, at) {
  const end = lines.indexOf("```", at + 1);
  return end < 0 ? at : end;
}

function list(kind, lines, names) {
  const start = kind === "ol" ? Number.parseInt(lines[0], 10) : null;
  return h(kind, { class: "md", start }, lines.map((line) => h("li", null, inline(line.replace(LIST[kind], ""), names))));
}

// -- inside a line -----------------------------------------------------------------------------------------

function inline(text, names) {
  /** @type {any[]} */
  const parts = [];
  /** Marks that are open, outermost first: each kind at most once. @type {{mark: string, at: number}[]} */
  const open = [];
  const addresses = addressesIn(text);
  const lastTick = text.lastIndexOf("`");
  let next = 0;
  let from = 0;
  const flush = (to) => {
    if (to > from) parts.push(...withMentions(text.slice(from, to), names));
  };
  const put = (part, at, length) => {
    flush(at);
    parts.push(part);
    from = at + length;
    return from;
  };
  for (let at = 0; at < text.length; ) {
    while (next < addresses.length && addresses[next].at < at) next += 1;
    const address = addresses[next];
    if (address?.at === at) {
      at = put(address.make(), at, address.length);
      continue;
    }
    const char = text[at];
    if (char === "`" && at < lastTick) {
      const end = text.indexOf("`", at + 1);
      const code = text.slice(at + 1, end);
      if (code && !code.includes("\n")) at = put(h("code", null, code), at, code.length + 2);
      else at += 1;
      continue;
    }
    const link = char === "[" ? namedLink(text, at) : null;
    if (link) {
      at = put(link.element, at, link.length);
      continue;
    }
    const mark = markAt(text, at);
    if (!mark) {
      at += 1;
      continue;
    }
    const [before, after] = [text[at - 1] ?? " ", text[at + mark.length] ?? " "];
    const opener = open.findIndex((one) => one.mark === mark);
    const isEmpty = opener >= 0 && parts.length === open[opener].at + 1 && from === at;
    if (opener >= 0 && !isEmpty && !isSpace(before) && !WORD.test(after)) {
      flush(at);
      const place = open[opener].at;
      parts[place] = h(MARKS[mark], null, parts.splice(place + 1));
      open.length = opener;
      at = from = at + mark.length;
    } else if (opener < 0 && !isSpace(after) && !WORD.test(before)) {
      flush(at);
      open.push({ mark, at: parts.length });
      parts.push(mark); // stays text unless it is closed
      at = from = at + mark.length;
    } else at += mark.length;
  }
  flush(text.length);
  return parts;
}

const isSpace = (char) => /\s/.test(char);

/** `**` and `~~` are marks, and `_`; inside words they are not. */
function markAt(text, at) {
  const char = text[at];
  if (char === "_") return text[at + 1] === "_" || text[at - 1] === "_" ? "" : "_";
  return (char === "*" || char === "~") && text[at + 1] === char ? char + char : "";
}

const LABEL_MAX = 200;
const TARGET_MAX = 2048;

/** `[words](https://…)`. What reads like another address than it leads to is shown as what it is. */
function namedLink(text, at) {
  const middle = text.slice(at, at + LABEL_MAX + 2).indexOf("](");
  if (middle < 2) return null;
  const start = at + middle + 2;
  const end = text.slice(start, start + TARGET_MAX).search(/[)\s]/);
  if (end < 1 || text[start + end] !== ")") return null;
  const label = text.slice(at + 1, at + middle);
  if (label.includes("[") || label.includes("\n")) return null;
  const element = linkTo(text.slice(start, start + end), label);
  return element && { element, length: middle + 2 + end + 1 };
}

// -- mentions ----------------------------------------------------------------------------------------------

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");

function mentionPattern(mentioned) {
  const names = mentioned.filter(({ name }) => name && name.length <= NAME_CHARS_MAX).slice(0, NAMES_MAX);
  if (names.length === 0) return null;
  names.sort((a, b) => b.name.length - a.name.length);
  return { names, pattern: new RegExp(`@(${names.map(({ name }) => escaped(name)).join("|")})`, "giu") };
}

function withMentions(text, known) {
  if (!known || !text.includes("@")) return [text];
  const parts = [];
  let at = 0;
  for (const match of text.matchAll(known.pattern)) {
    const found = known.names.find(({ name }) => name.toLowerCase() === match[1].toLowerCase());
    parts.push(text.slice(at, match.index), h("span", { class: found?.isMe ? "at self" : "at" }, match[0]));
    at = match.index + match[0].length;
  }
  parts.push(text.slice(at));
  return parts.filter((part) => part !== "");
}

// -- what a text is ----------------------------------------------------------------------------------------

const EMOJI = String.raw`(?:\p{Regional_Indicator}{2}|[0-9#*]\uFE0F?\u20E3|(?:\p{Emoji_Presentation}|\p{Extended_Pictographic})\uFE0F?\p{Emoji_Modifier}?(?:\u200D\p{Extended_Pictographic}\uFE0F?\p{Emoji_Modifier}?){0,4})`;
const BIG = new RegExp(`^${EMOJI}(?:\\s?${EMOJI}){0,2}$`, "u");
const BIG_CHARS_MAX = 60;

/** One to three emoji and nothing else. @param {string} text */
export const isBigEmoji = (text) => text.length <= BIG_CHARS_MAX && BIG.test(text.trim());

const LONG_CHARS = 1000;
const LONG_LINES = 15;

const SHOWN_CHARS = 900;
const FLOOD = /((?:[\p{M}\p{Emoji_Modifier}\u200D\uFE0F]){8})(?=[\p{M}\p{Emoji_Modifier}\u200D\uFE0F])/gu;

/** Without endless signs on one letter: browsers take seconds to draw thousands of them. @param {string} text */
export const tamed = (text) => text.replace(FLOOD, "$1\u200B");

/** As much of a long text as is seen while it is folded. @param {string} text */
export const beginning = (text) => text.split("\n", LONG_LINES).join("\n").slice(0, SHOWN_CHARS);

/** So long that only its beginning is shown at first. @param {string} text */
export const isLongText = (text) => text.length > LONG_CHARS || text.split("\n", LONG_LINES + 1).length > LONG_LINES;
