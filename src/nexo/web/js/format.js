/** Times, names and colours as people read them. */

import { locale, t } from "./i18n.js";
import { remember, remembered } from "./prefs.js";

const DAY_MS = 86_400_000;
const formats = new Map();

function format(kind, options) {
  const key = `${locale()} ${kind}`;
  if (!formats.has(key)) formats.set(key, new Intl.DateTimeFormat(locale(), options));
  return formats.get(key);
}

/** What was chosen, else the way of the region. @returns {"12" | "24"} */
export const shownHours = () => remembered("hours") ?? (format("cycle", { hour: "numeric" }).resolvedOptions().hour12 ? "12" : "24");

/** @param {"12" | "24"} hours */
export const chooseHours = (hours) => remember("hours", hours);

/** 09:35 or 9:35 AM. */
const hour = (hours) => (hours === "12" ? { hour: "numeric", hour12: true } : { hour: "2-digit", hourCycle: "h23" });

/** @param {number} ms @param {"12" | "24"} [hours] */
export const clock = (ms, hours = shownHours()) => format(`clock ${hours}`, { ...hour(hours), minute: "2-digit" }).format(ms);

/** @param {number} ms */
export const clockSeconds = (ms) =>
  format(`seconds ${shownHours()}`, { ...hour(shownHours()), minute: "2-digit", second: "2-digit" }).format(ms);

/** @param {number} ms */
export const fullTime = (ms) => `${format("full", { dateStyle: "medium" }).format(ms)}, ${clock(ms)}`;

/** The local day as a number that grows by one. @param {number} ms */
export function dayOf(ms) {
  const date = new Date(ms);
  return Math.floor((ms - date.getTimezoneOffset() * 60_000) / DAY_MS);
}

/** Above the messages of one day. @param {number} ms @param {number} [now] */
export function dayName(ms, now = Date.now()) {
  const ago = dayOf(now) - dayOf(ms);
  if (ago === 0) return t("today");
  if (ago === 1) return t("yesterday");
  const sameYear = new Date(ms).getFullYear() === new Date(now).getFullYear();
  if (ago > 1 && ago < 7) return format("weekday", { weekday: "long" }).format(ms);
  if (sameYear) return format("day", { weekday: "long", day: "numeric", month: "long" }).format(ms);
  return format("date", { day: "numeric", month: "long", year: "numeric" }).format(ms);
}

/** In the list of conversations: as short as possible. @param {number} ms @param {number} [now] */
export function shortTime(ms, now = Date.now()) {
  const ago = dayOf(now) - dayOf(ms);
  if (ago <= 0) return clock(ms);
  if (ago < 7) return format("short weekday", { weekday: "short" }).format(ms);
  if (new Date(ms).getFullYear() === new Date(now).getFullYear())
    return format("short day", { day: "numeric", month: "short" }).format(ms);
  return format("short date", { day: "numeric", month: "numeric", year: "2-digit" }).format(ms);
}

/** 102 s as 1:42. @param {number} ms */
export function countdown(ms) {
  const s = Math.max(0, Math.ceil(ms / 1000));
  return `${Math.floor(s / 60)}:${String(s % 60).padStart(2, "0")}`;
}

/** What is left of a time, in its largest unit. @param {number} ms */
export function restText(ms) {
  const minutes = Math.max(1, Math.ceil(ms / 60_000));
  if (minutes < 60) return t("short_minutes", { n: minutes });
  if (minutes < 60 * 24) return t("short_hours", { n: Math.ceil(minutes / 60) });
  return t("short_days", { n: Math.ceil(minutes / 1440) });
}

/** A time that is given in seconds, in whole units. @param {number} s */
export function lastingText(s) {
  if (s < 3600) return t("n_minutes", { n: Math.max(1, Math.round(s / 60)) });
  return s < 86_400 ? t("n_hours", { n: Math.round(s / 3600) }) : t("n_days", { n: Math.round(s / 86_400) });
}

const JUST_NOW_MS = 120_000;

/** When someone was here last. @param {number} ms @param {number} [now] */
export function lastSeenText(ms, now = Date.now()) {
  const ago = dayOf(now) - dayOf(ms);
  if (now - ms < JUST_NOW_MS) return t("last_seen_now");
  if (ago <= 0) return t("last_seen_at", { t: clock(ms) });
  return ago === 1 ? t("last_seen_yesterday") : t("last_seen_on", { d: shortDay(ms, now) });
}

const shortDay = (ms, now) => (new Date(ms).getFullYear() === new Date(now).getFullYear() ? format("short day", { day: "numeric", month: "short" }) : format("date", { day: "numeric", month: "long", year: "numeric" })).format(ms);

/** @param {number} count */
export const counted = (count) => (count > 999 ? "999+" : String(count));

const IDEOGRAPH = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u;

/** Two letters for an avatar. @param {string} name @param {boolean} isGroup */
export function initials(name, isGroup) {
  const letters = [...name.trim()];
  if (letters.some((letter) => IDEOGRAPH.test(letter))) {
    const signs = letters.filter((letter) => IDEOGRAPH.test(letter));
    return (isGroup ? signs.slice(0, 2) : signs.slice(-2)).join("");
  }
  const words = name.match(/[\p{L}\p{N}]+/gu) ?? [];
  if (words.length === 0) return letters[0] ?? "?";
  if (words.length === 1) return [...words[0]].slice(0, 2).join("").toUpperCase();
  return words.slice(0, 2).map((word) => [...word][0]).join("").toUpperCase();
}

/** One of twelve colours, the same for the same id everywhere. @param {string} id */
export function hue(id) {
  let hash = 241;
  for (const byte of new TextEncoder().encode(id)) hash = (Math.imul(hash, 31) + byte) >>> 0;
  return (Math.imul(hash, 2654435761) >>> 16) % 12;
}

/** The first name, where there is room for no more. @param {string} name */
export function shortName(name) {
  return IDEOGRAPH.test(name) ? name : (name.trim().split(/\s+/)[0] ?? name);
}
