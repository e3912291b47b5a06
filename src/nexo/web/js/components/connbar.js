/** The bar that shows the state of the connection; hidden while all is well. */

import { fill, h, icon } from "../dom.js";
import { clock } from "../format.js";
import { t } from "../i18n.js";

const QUIET_MS = 2000;
const CATCH_UP_MIN = 50;
const CATCH_UP_MS = 1000;
const RESTART_MS = 60_000; // a restart that takes longer is none

export class ConnectionBar {
  #timer = 0;
  #syncSince = 0;
  #most = 0;
  #shown = "";

  /** @param {any} model */
  constructor(model) {
    this.model = model;
    this.element = h("div", { class: "connbar", role: "status" });
    this.element.hidden = true;
    this.ends = [model.on("connection", () => this.update()), model.on("list", () => this.update())];
    for (const name of ["online", "offline"]) {
      const update = () => this.update();
      window.addEventListener(name, update);
      this.ends.push(() => window.removeEventListener(name, update));
    }
    this.update();
  }

  end() {
    clearTimeout(this.#timer);
    for (const end of this.ends) end();
  }

  update() {
    clearTimeout(this.#timer);
    this.#draw(this.#what());
  }

  #again(ms) {
    this.#timer = window.setTimeout(() => this.update(), ms);
  }

  /** @returns {{kind: string, n?: number, m?: number, s?: number, at?: number}} */
  #what() {
    const { model } = this;
    const { state, retryAt } = model.connection;
    const now = Date.now();
    if (state !== "syncing") this.#syncSince = this.#most = 0;
    if (state === "closed") return { kind: "" }; // a dialog shows it
    if (navigator.onLine === false && state !== "online") return { kind: "offline", n: model.waiting, at: model.keptAt };
    if (state === "online") return { kind: "" };
    if (state === "syncing") return this.#catchingUp(now);
    const quietFor = QUIET_MS - (now - model.downSince);
    if (quietFor > 0) {
      this.#again(quietFor);
      return { kind: "" };
    }
    const s = retryAt ? Math.max(0, Math.ceil((retryAt - now) / 1000)) : 0;
    this.#again(1000);
    if (now - model.restartingAt < RESTART_MS) return { kind: "restart", s };
    return { kind: "again", s };
  }

  #catchingUp(now) {
    this.#syncSince ||= now;
    const missing = this.model.missing;
    this.#most = Math.max(this.#most, missing);
    this.#again(200);
    if (this.#most < CATCH_UP_MIN && now - this.#syncSince < CATCH_UP_MS) return { kind: "" };
    return { kind: "catching", n: this.#most - missing, m: this.#most };
  }

  #draw(what) {
    // It is read out when its words change. What counts is not: it is changed in its place.
    const { s, n, ...words } = what;
    const key = JSON.stringify(what.kind === "offline" ? what : words);
    if (key === this.#shown) return this.#count(what);
    this.#shown = key;
    this.element.hidden = what.kind === "";
    const more = (text) => h("span", { class: "more" }, text);
    const strong = (text) => h("span", { class: "what" }, text);
    if (what.kind === "offline") {
      this.element.className = "connbar warn";
      const waits = what.n ? h("span", null, t("offline_waiting", { n: what.n })) : null;
      fill(this.element, icon("offline", "s"), h("span", null, strong(t("offline_what")), more(` ${what.at ? t("offline_kept", { time: clock(what.at) }) : t("offline_more")}`), waits && " ", waits));
    } else if (what.kind === "again" || what.kind === "restart") {
      this.element.className = "connbar";
      const text = what.kind === "restart" ? t("restart_what") : t("again_what");
      const when = h("span", { class: "num", "aria-hidden": "true" });
      const now = h("button", { type: "button", class: "link", onclick: () => this.model.client.connect().catch(() => {}) }, t("try_now"));
      fill(this.element, icon("sync", "s spin"), h("span", null, strong(text), what.kind === "again" && when, more(` ${t("again_more")}`)), now);
    } else if (what.kind === "catching") {
      this.element.className = "connbar good";
      const bar = what.m > 0 && h("progress", { max: what.m, value: what.n, "aria-label": t("catching_what") });
      const counts = what.m > 0 && h("span", { class: "num", "aria-hidden": "true" });
      fill(this.element, icon("sync", "s spin"), h("span", null, strong(t("catching_what")), counts), bar);
    }
    return this.#count(what);
  }

  /** The numbers alone: the button beside them may have the focus. */
  #count({ kind, s, n, m }) {
    const number = this.element.querySelector(".num");
    if (number && kind === "again") number.textContent = s ? ` ${t("again_in", { s })}` : "";
    if (number && kind === "catching") number.textContent = t("catching_counts", { n, m });
    this.element.querySelector("progress")?.setAttribute("value", String(n));
  }
}
