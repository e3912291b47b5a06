/** The address says what is shown: `#/`, `#/c/<id>`, `#/c/<id>/details`. Back and forward work by themselves. */

/** @returns {{conversationId: string | null, details: boolean}} */
export function currentRoute() {
  const [, kind, id, more] = location.hash.split("/");
  if (kind !== "c" || !id) return { conversationId: null, details: false };
  try {
    return { conversationId: decodeURIComponent(id), details: more === "details" };
  } catch {
    return { conversationId: null, details: false };
  }
}

/** @param {string | null} conversationId @param {boolean} [details] */
export function addressOf(conversationId, details = false) {
  if (!conversationId) return "#/";
  return `#/c/${encodeURIComponent(conversationId)}${details ? "/details" : ""}`;
}

/** @param {string | null} conversationId @param {boolean} [details] */
export function go(conversationId, details = false) {
  location.hash = addressOf(conversationId, details);
}
