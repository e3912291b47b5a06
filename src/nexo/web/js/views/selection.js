/** Several messages chosen at once: which, and the bar that acts on them in the composer's place. */

import { confirmDialog } from "../components/dialog.js";
import { toast } from "../components/toast.js";
import { openForward } from "../dialogs/forward.js";
import { button, fill, h } from "../dom.js";
import { tellFailure } from "../failures.js";
import { clock } from "../format.js";
import { t } from "../i18n.js";
import { contentLine, isText, whoIs } from "../wording.js";

const MAX = 100;

export class Selection {
  /** @type {Set<string> | null} */
  keys = null;
  #last = "";

  /** @param {any} chat @param {() => void} onchange */
  constructor(chat, onchange) {
    this.chat = chat;
    this.onchange = onchange;
    this.bar = h("div", { class: "selbar", role: "toolbar", "aria-label": t("message_actions") });
    this.bar.hidden = true;
    const act = (name, text, fn, classes = "") => button(text, { class: `quiet ${classes}`.trim(), onclick: fn }, name);
    fill(this.bar, act("forward", t("forward"), () => this.#forward()), act("copy", t("copy"), () => this.#copy()), act("trash", t("delete"), () => this.#askDelete(), "danger"));
  }

  get isOn() {
    return this.keys !== null;
  }

  get size() {
    return this.keys?.size ?? 0;
  }

  /** @param {string} key */
  start(key) {
    this.keys = new Set([key]);
    this.#last = key;
    this.#changed();
  }

  stop() {
    this.keys = null;
    this.#changed();
  }

  clear() {
    this.keys = new Set();
    this.#changed();
  }

  /** @param {string} key @param {boolean} [isRange] all between the last one and this */
  toggle(key, isRange = false) {
    if (!this.keys) return;
    const rows = this.chat.log.rows.filter(canBeSelected);
    const [from, to] = [rows.findIndex((row) => row.key === this.#last), rows.findIndex((row) => row.key === key)];
    if (to < 0) return;
    if (isRange && from >= 0) for (const row of rows.slice(Math.min(from, to), Math.max(from, to) + 1)) this.#add(row.key);
    else if (this.keys.has(key)) this.keys.delete(key);
    else this.#add(key);
    this.#last = key;
    this.#changed();
  }

  #add(key) {
    if (!this.keys || this.keys.has(key)) return;
    if (this.keys.size < MAX) this.keys.add(key);
    else toast(t("selection_max", { n: MAX }), { bad: true });
  }

  #changed() {
    this.bar.hidden = !this.isOn;
    this.chat.element.classList.toggle("selecting", this.isOn);
    for (const one of this.bar.querySelectorAll("button")) one.disabled = this.size === 0;
    this.onchange();
  }

  /** @returns {any[]} in order */
  get #messages() {
    return this.chat.log.rows.filter((row) => row.kind === "message" && this.keys?.has(row.key)).flatMap((row) => row.messages);
  }

  #forward() {
    openForward(this.chat.model, this.#messages, () => this.stop());
  }

  async #copy() {
    const { model } = this.chat;
    const line = (message) => `[${clock(message.sendAt)}] ${whoIs(model, message.senderId)}: ${isText(message) ? message.content : contentLine(message)}`;
    const messages = this.#messages;
    const text = messages.length === 1 && isText(messages[0]) ? messages[0].content : messages.map(line).join("\n");
    try {
      await navigator.clipboard.writeText(text);
      toast(t("copied"));
      this.stop();
    } catch {
      toast(t("copy_failed"), { bad: true });
    }
  }

  #askDelete() {
    askDeleteForMe(this.chat, this.#messages, () => this.stop());
  }
}

/** @param {any} row */
export const canBeSelected = (row) => row.kind === "message" && row.message.status === 0 && Boolean(row.message.serverMsgId) && !row.message.provisional;

/** @param {any} chat @param {any[]} messages @param {() => void} [ondone] */
export function askDeleteForMe(chat, messages, ondone) {
  const ids = messages.map((message) => message.serverMsgId).filter(Boolean);
  if (ids.length === 0) return;
  confirmDialog({
    icon: "trash",
    title: t("delete_for_you"),
    text: t("delete_for_you_text"),
    action: t("delete"),
    danger: true,
    act: async () => {
      try {
        await chat.conversation.deleteForMe(ids);
        ondone?.();
      } catch (error) {
        tellFailure(error);
      }
    },
  });
}

