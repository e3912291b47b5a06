/** The emoji and their names in both languages, loaded when they are first needed. */

import { currentLanguage } from "./i18n.js";
import { remember, remembered } from "./prefs.js";

const RECENT_MAX = 24;
const TONES = ["", "🏻", "🏼", "🏽", "🏾", "🏿"];

/** @typedef {{sign: string, hasTones: boolean, names: string[], zh: string}} Emoji */

/** @type {Promise<Map<string, Emoji[]>> | null} */
let loading = null;

/** @returns {Promise<Map<string, Emoji[]>>} by group */
export function loadEmoji() {
  loading ??= import("../data/emoji.js").then(({ default: groups }) => read(groups));
  loading.catch(() => (loading = null));
  return loading;
}

function read(groups) {
  const canDraw = drawing();
  const found = new Map();
  for (const [group, text] of Object.entries(groups)) {
    const emoji = text.split("|").map((entry) => {
      const [sign, english, zh] = entry.split(";");
      return { sign: sign.replace("+", ""), hasTones: sign.endsWith("+"), names: english.split(","), zh };
    });
    found.set(group, emoji.filter(({ sign }) => canDraw(sign)));
  }
  return found;
}

/** What the font does not know as one sign comes out as several. */
function drawing() {
  const context = document.createElement("canvas").getContext("2d");
  if (!context) return () => true;
  context.font = '20px "Apple Color Emoji", "Segoe UI Emoji", "Noto Color Emoji", sans-serif';
  const one = context.measureText("😀").width;
  return (sign) => sign.length <= 3 || context.measureText(sign).width < one * 1.5;
}

/** @param {Emoji} emoji */
export const nameOf = (emoji) => (currentLanguage() === "zh" && emoji.zh ? emoji.zh : emoji.names[0].replaceAll("_", " "));

/** @param {Map<string, Emoji[]>} groups @param {string} query @param {number} most @returns {Emoji[]} those that begin with it first */
export function findEmoji(groups, query, most) {
  const wanted = query.trim().toLowerCase().replaceAll(/[\s-]+/g, "_");
  if (!wanted) return [];
  const begins = [];
  const inside = [];
  for (const list of groups.values())
    for (const emoji of list) {
      if (emoji.names.some((name) => name.startsWith(wanted)) || emoji.zh.startsWith(wanted)) begins.push(emoji);
      else if (emoji.names.some((name) => name.includes(wanted)) || emoji.zh.includes(wanted)) inside.push(emoji);
      if (begins.length >= most) return begins;
    }
  return [...begins, ...inside].slice(0, most);
}

// -- what this browser remembers ---------------------------------------------------------------------------

/** @returns {string[]} */
export function recentEmoji() {
  const known = remembered("emoji");
  return Array.isArray(known) ? known.filter((one) => typeof one === "string").slice(0, RECENT_MAX) : [];
}

/** @param {string} sign */
export function useEmoji(sign) {
  remember("emoji", [...new Set([sign, ...recentEmoji()])].slice(0, RECENT_MAX));
}

export const tones = () => TONES;
export const chosenTone = () => TONES[remembered("tone")] ?? "";
/** @param {number} at */
export const chooseTone = (at) => remember("tone", at);

/** @param {Emoji} emoji @param {string} [tone] */
export function withTone(emoji, tone = chosenTone()) {
  if (!emoji.hasTones || !tone) return emoji.sign;
  const [first, ...rest] = [...emoji.sign];
  return first + tone + rest.filter((char, at) => !(at === 0 && char === "\uFE0F")).join("");
}
