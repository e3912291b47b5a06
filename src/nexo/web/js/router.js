/**
 * The address decides what is shown: `#/`, `#/archive`, `#/contacts`, `#/settings/<section>`, `#/c/<id>`, `#/c/<id>/details`,
 * and `#/c/<id>/m/<seq>` for a message. Back and forward work by themselves.
 */

import { goTo } from "./layers.js";

const PAGES = new Set(["archive", "contacts", "settings"]);

/**
 * @typedef {{conversationId: string | null, details: boolean, seq: number, page: string, section: string}} Route
 * @returns {Route}
 */
export function currentRoute() {
  const [, kind, id = "", more, seq] = location.hash.split("/");
  const route = { conversationId: null, details: false, seq: 0, page: "", section: "" };
  if (PAGES.has(kind)) return { ...route, page: kind, section: id };
  if (kind !== "c" || !id) return route;
  try {
    return { ...route, conversationId: decodeURIComponent(id), details: more === "details", seq: more === "m" ? Number(seq) || 0 : 0 };
  } catch {
    return route;
  }
}

/** @param {string | null} conversationId @param {boolean} [details] */
export function addressOf(conversationId, details = false) {
  if (!conversationId) return "#/";
  return `#/c/${encodeURIComponent(conversationId)}${details ? "/details" : ""}`;
}

/** @param {string} conversationId @param {number} seq */
export const messageAddress = (conversationId, seq) => `${addressOf(conversationId)}/m/${seq}`;

/** @param {string | null} conversationId @param {boolean} [details] */
export function go(conversationId, details = false) {
  goTo(addressOf(conversationId, details));
}

/** @param {string} page @param {string} [section] */
export function goPage(page, section = "") {
  goTo(section ? `#/${page}/${section}` : `#/${page}`);
}
