/** What this browser remembers: settings of the page, drafts, known names. Storage may be closed or full: then it forgets. */

const PREFIX = "nexo.";

/** @param {string} key @returns {any} */
export function remembered(key) {
  try {
    const text = localStorage.getItem(PREFIX + key);
    return text === null ? null : JSON.parse(text);
  } catch {
    return null;
  }
}

/** @param {string} key @param {any} value null forgets */
export function remember(key, value) {
  try {
    if (value === null) localStorage.removeItem(PREFIX + key);
    else localStorage.setItem(PREFIX + key, JSON.stringify(value));
  } catch {
    // nothing depends on it
  }
}

/** @param {string} prefix */
export function forgetAll(prefix) {
  try {
    for (const key of Object.keys(localStorage)) if (key.startsWith(PREFIX + prefix)) localStorage.removeItem(key);
  } catch {
    // nothing depends on it
  }
}

/** @returns {"system" | "light" | "dark"} */
export function theme() {
  const chosen = document.documentElement.dataset.theme;
  return chosen === "light" || chosen === "dark" ? chosen : "system";
}

/** @param {"system" | "light" | "dark"} chosen */
export function setTheme(chosen) {
  const root = document.documentElement;
  try {
    if (chosen === "system") localStorage.removeItem(PREFIX + "theme");
    else localStorage.setItem(PREFIX + "theme", chosen); // as it is: theme.js reads it before anything else runs
  } catch {
    // for this page only, then
  }
  if (chosen === "system") delete root.dataset.theme;
  else root.dataset.theme = chosen;
}

/** The unsent text of each conversation, and what it answers: both survive reloads, and other tabs see them when they open the conversation. */
export class Drafts {
  #user;

  /** @param {string} userId */
  constructor(userId) {
    this.#user = userId;
  }

  /** @param {string} conversationId @returns {string} */
  text(conversationId) {
    return remembered(this.#key(conversationId)) ?? "";
  }

  /** @param {string} conversationId @param {string} text */
  setText(conversationId, text) {
    remember(this.#key(conversationId), text.trim() ? text : null);
  }

  /** What the draft answers: as much of that message as a quote needs. @param {string} conversationId */
  reply(conversationId) {
    return remembered(this.#replyKey(conversationId));
  }

  /** @param {string} conversationId @param {any} message */
  setReply(conversationId, message) {
    const kept = message && {
      serverMsgId: message.serverMsgId,
      senderId: message.senderId,
      msgType: message.msgType,
      content: typeof message.content === "string" ? message.content.slice(0, 200) : { name: message.content?.name, text: message.content?.text?.slice(0, 200) },
    };
    remember(this.#replyKey(conversationId), kept ?? null);
  }

  forget() {
    forgetAll(`draft.${this.#user}.`);
    forgetAll(`reply.${this.#user}.`);
  }

  #replyKey(conversationId) {
    return `reply.${this.#user}.${conversationId}`;
  }

  #key(conversationId) {
    return `draft.${this.#user}.${conversationId}`;
  }
}
