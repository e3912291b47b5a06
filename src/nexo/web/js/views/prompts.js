/** One question at a time above the list: notifications after the first own message, installing from the third day on. */

import { button, fill, h, icon } from "../dom.js";
import { t } from "../i18n.js";
import { notificationState, setNotifications } from "../notify.js";
import { remember, remembered } from "../prefs.js";

const LONG_MS = 60_000;
const DAY_MS = 86_400_000;
const NOT_NOW_MS = 30 * DAY_MS;
const INSTALL_DAYS = 3;

/** What the browser offered, until it is used. @type {any} */
let offer = null;
window.addEventListener("beforeinstallprompt", (event) => {
  event.preventDefault();
  offer = event;
});

export const canInstall = () => offer !== null;

export async function install() {
  const asked = offer;
  offer = null;
  await asked?.prompt();
}

export class Prompts {
  #since = Date.now();

  /** @param {any} model */
  constructor(model) {
    this.model = model;
    this.element = h("div");
    this.ends = [model.client.on("sent", ({ conversation }) => this.#sent(conversation))];
    this.#noteDay();
    if (this.#isDue("install") && canInstall() && (remembered("days") ?? []).length >= INSTALL_DAYS) this.#askInstall();
  }

  end() {
    for (const end of this.ends) end();
  }

  #noteDay() {
    const today = Math.floor(Date.now() / DAY_MS);
    const days = remembered("days") ?? [];
    if (!days.includes(today)) remember("days", [...days, today].slice(-INSTALL_DAYS));
  }

  #isDue(name) {
    return (remembered(`not_now.${name}`) ?? 0) < Date.now();
  }

  #sent(conversation) {
    if (this.element.childElementCount > 0 || Date.now() - this.#since < LONG_MS) return;
    if (notificationState() !== "off" || Notification.permission !== "default" || !this.#isDue("notify")) return;
    const { name } = this.model.face(conversation);
    this.#show("notify", "bell", t("ask_notify", { name }), t("ask_notify_text"), t("turn_on"), () => setNotifications(true, this.model));
  }

  #askInstall() {
    this.#show("install", "install", t("ask_install"), t("ask_install_text"), t("install"), install);
  }

  #show(name, iconName, title, text, action, act) {
    const close = () => fill(this.element);
    const later = () => {
      remember(`not_now.${name}`, Date.now() + NOT_NOW_MS);
      close();
    };
    const yes = () => {
      close();
      act();
    };
    fill(
      this.element,
      h("section", { class: "strip", "aria-label": title }, icon(iconName), h("div", null, h("b", null, title), h("p", null, text), h("div", { class: "row" }, button(action, { class: "quiet small", onclick: yes }), button(t("not_now"), { class: "quiet small", onclick: later })))),
    );
  }
}
