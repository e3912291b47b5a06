/** The pinned messages of a conversation, above its log: one at a time, the next older with each press. */

import { openDialog } from "../components/dialog.js";
import { fill, h, iconButton } from "../dom.js";
import { clock, dayName } from "../format.js";
import { t } from "../i18n.js";
import { remember, remembered } from "../prefs.js";
import { contentLine, PIN_EVENT, whoIs } from "../wording.js";

const SEGMENTS = 4;

export class PinBar {
  /** @type {any[]} newest first */
  #pins = [];
  #at = 0;
  #seen = "";
  #isAsking = false;

  /** @param {any} chat */
  constructor(chat) {
    this.chat = chat;
    this.element = h("aside", { class: "pinbar", "aria-label": t("pinned_messages") });
    this.element.hidden = true;
  }

  get #hiddenKey() {
    return `pins.${this.chat.model.userId}.${this.chat.conversation.id}`;
  }

  /** @param {string} serverMsgId */
  has(serverMsgId) {
    return this.#pins.some((one) => one.serverMsgId === serverMsgId);
  }

  /** Asks again when a message was pinned, edited or recalled since. */
  update() {
    const { conversation, model } = this.chat;
    if (conversation.headSeq === 0 || !model.isConnected) return;
    const events = conversation.messages.filter((one) => one.msgType === PIN_EVENT);
    const changed = this.#pins.map((pin) => conversation.messages.find((one) => one.serverMsgId === pin.serverMsgId)).map((one) => (one ? `${one.status} ${one.editedAt}` : ""));
    const key = JSON.stringify([events.at(-1)?.seq ?? 0, changed, "asked"]);
    if (key === this.#seen || this.#isAsking) return;
    this.#seen = key;
    this.load();
  }

  async load() {
    this.#isAsking = true;
    try {
      const found = await this.chat.conversation.pins();
      this.#pins = found.filter((one) => one.status === 0).sort((a, b) => b.seq - a.seq);
    } catch {
      return; // the next change asks again
    } finally {
      this.#isAsking = false;
    }
    this.#at = Math.min(this.#at, Math.max(0, this.#pins.length - 1));
    this.#draw();
  }

  #draw() {
    const newest = this.#pins[0]?.serverMsgId;
    this.element.hidden = this.#pins.length === 0 || remembered(this.#hiddenKey) === newest;
    if (this.element.hidden) return;
    const pin = this.#pins[this.#at];
    const count = this.#pins.length;
    const shown = Math.min(count, SEGMENTS);
    const on = Math.min(shown - 1, Math.floor((this.#at * shown) / count));
    const segments = Array.from({ length: shown }, (_, at) => h("i", { class: shown - 1 - at === on ? "on" : null }));
    const jump = h("button", { type: "button", onclick: () => this.#jump() }, h("b", null, count > 1 ? t("pinned_n", { i: this.#at + 1, n: count }) : t("pinned_one")), h("span", { dir: "auto" }, contentLine(pin)));
    const all = count > 1 && iconButton("list", t("all_pinned"), { onclick: () => this.#openAll() });
    const hide = iconButton("close", t("hide_pins"), {
      onclick: () => {
        remember(this.#hiddenKey, newest);
        this.#draw();
        this.chat.composer.focus();
      },
    });
    fill(this.element, h("span", { class: "seg4", "aria-hidden": "true" }, segments), jump, all, hide);
  }

  #jump() {
    const pin = this.#pins[this.#at];
    this.#at = (this.#at + 1) % this.#pins.length;
    this.chat.jumpTo(pin.seq, pin.serverMsgId);
    this.#draw();
    /** @type {HTMLElement | null} */ (this.element.querySelector("button"))?.focus();
  }

  #openAll() {
    const { chat } = this;
    const line = (pin) =>
      h(
        "li",
        null,
        h(
          "button",
          {
            type: "button",
            class: "pinline",
            onclick: () => {
              dialog.close();
              chat.jumpTo(pin.seq, pin.serverMsgId);
            },
          },
          h("b", { dir: "auto" }, whoIs(chat.model, pin.senderId)),
          h("time", null, `${dayName(pin.sendAt)} ${clock(pin.sendAt)}`),
          h("span", { dir: "auto" }, contentLine(pin)),
        ),
      );
    const dialog = openDialog({ title: t("pinned_messages"), body: [h("ul", { class: "pinlist" }, this.#pins.map(line))] });
  }
}
