/** Where the page starts: language, server settings, the session of before or the door. */

import { NexoClient } from "../sdk/index.js";
import { fill, h } from "./dom.js";
import { tellFailure } from "./failures.js";
import { chooseLanguage, preferredLanguage, t, useLanguage } from "./i18n.js";
import { Model } from "./model.js";
import { forgetAll, remember, remembered } from "./prefs.js";
import { doorView } from "./views/door.js";
import { Shell } from "./views/shell.js";

const RETRY_MAX_MS = 15_000; // somebody is looking at it
const SETTINGS = new URL("../settings.json", import.meta.url);

class App {
  #root = /** @type {HTMLElement} */ (document.getElementById("root"));
  /** @type {any} */
  #client = null;
  /** @type {Model | null} */
  #model = null;
  /** @type {Shell | null} */
  #shell = null;

  async start() {
    useLanguage(preferredLanguage());
    this.settings = await (await fetch(SETTINGS)).json();
    this.#client = new NexoClient({ url: location.origin, backoffMaxMs: RETRY_MAX_MS });
    this.#client.on("session", (session) => this.#sessionChanged(session));
    // Signing in or out in one tab is for all tabs of this browser.
    window.addEventListener("storage", (event) => {
      if (event.key === "nexo.signed_in" && (remembered("signed_in") ?? "") !== (this.#model?.userId ?? "")) location.reload();
    });
    const hasSession = await this.#client.restore();
    if (hasSession) this.#enter();
    else this.#showDoor();
  }

  #showDoor(notice = "") {
    this.#leave();
    fill(this.#root, doorView({ client: this.#client, settings: this.settings, notice, signedIn: () => this.#enter() }));
  }

  #enter() {
    this.#leave();
    this.#model = new Model(this.#client, this.settings);
    remember("signed_in", this.#model.userId);
    this.#model.on("language", (code) => this.#speak(code));
    this.#model.on("signout", () => this.#signOut());
    this.#shell = new Shell(this.#model);
    fill(this.#root, this.#shell.element);
    this.#model.start();
  }

  #leave() {
    this.#shell?.end();
    this.#model?.stop();
    this.#shell = this.#model = null;
  }

  /** Everything is drawn again in the other language. */
  #speak(code) {
    chooseLanguage(code);
    if (!this.#model) return;
    this.#shell?.end();
    this.#shell = new Shell(this.#model);
    fill(this.#root, this.#shell.element);
  }

  /** The server ended it, here or by another device's new password. */
  #sessionChanged(session) {
    if (session || !this.#model) return;
    remember("signed_in", null);
    this.#showDoor(t("session_ended"));
  }

  async #signOut() {
    const { userId } = this.#model ?? {};
    this.#model?.drafts.forget();
    forgetAll(`people.${userId}`);
    this.#leave();
    location.hash = "#/";
    try {
      await this.#client.logout();
    } catch (error) {
      tellFailure(error);
    }
    remember("signed_in", null); // now that there is no session left: other tabs start anew
    this.#showDoor();
  }
}

new App().start().catch((error) => {
  console.error(error);
  const again = h("button", { type: "button", class: "btn", onclick: () => location.reload() }, t("try_again"));
  fill(/** @type {HTMLElement} */ (document.getElementById("root")), h("main", { class: "blank" }, h("div", null, h("h2", null, t("start_failed")), h("p", null, t("err_network")), again)));
});
