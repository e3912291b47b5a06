/** Texts in the language of the page. A text may depend on a number `n` (`{one, other}`) and has `{names}` for values. */

import appEn from "../i18n/app-en.js";
import appZh from "../i18n/app-zh.js";
import chatEn from "../i18n/chat-en.js";
import chatZh from "../i18n/chat-zh.js";
import en from "../i18n/en.js";
import zh from "../i18n/zh.js";
import { remember, remembered } from "./prefs.js";

const TEXTS = { en: { ...en, ...appEn, ...chatEn }, zh: { ...zh, ...appZh, ...chatZh } };

/** @type {keyof TEXTS} */
let language = "en";
let plurals = new Intl.PluralRules("en");

/** The language chosen here, else the first of the browser's that there is. @returns {keyof TEXTS} */
export function preferredLanguage() {
  const chosen = remembered("language");
  if (chosen in TEXTS) return chosen;
  for (const code of navigator.languages ?? []) {
    const base = code.toLowerCase().split("-")[0];
    if (base in TEXTS) return /** @type {keyof TEXTS} */ (base);
  }
  return "en";
}

/** @param {keyof TEXTS} code */
export function useLanguage(code) {
  language = code;
  plurals = new Intl.PluralRules(code);
  document.documentElement.lang = code === "zh" ? "zh-Hans" : code;
}

/** @param {keyof TEXTS} code */
export function chooseLanguage(code) {
  remember("language", code);
  useLanguage(code);
}

export const currentLanguage = () => language;

/** For dates and numbers: the browser's own region where its language is the page's. */
export function locale() {
  return (navigator.languages ?? []).find((code) => code.toLowerCase().startsWith(language)) ?? language;
}

function pattern(key, values) {
  const found = TEXTS[language][key] ?? TEXTS.en[key];
  if (found === undefined) throw new Error(`no text ${key}`);
  if (typeof found === "string") return found;
  return found[plurals.select(values?.n ?? 0)] ?? found.other;
}

/** @param {string} key @param {Record<string, string | number>} [values] @returns {string} */
export function t(key, values) {
  return pattern(key, values).replace(/\{(\w+)\}/g, (whole, name) => (values && name in values ? String(values[name]) : whole));
}

/** The same with elements among the values. @param {string} key @param {Record<string, any>} values @returns {any[]} */
export function rich(key, values) {
  return pattern(key, values)
    .split(/(\{\w+\})/)
    .filter(Boolean)
    .map((part) => {
      const name = /^\{(\w+)\}$/.exec(part)?.[1];
      return name && name in values ? values[name] : part;
    });
}

/** Is there such a text? @param {string} key */
export const hasText = (key) => key in TEXTS.en;
