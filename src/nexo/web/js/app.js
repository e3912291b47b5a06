/** Where the page starts: language, server settings, the session of before or the door. */

import { NexoClient } from "../sdk/index.js";
import { fill, h } from "./dom.js";
import { tellFailure } from "./failures.js";
import { chooseLanguage, preferredLanguage, t, useLanguage } from "./i18n.js";
import { Model } from "./model.js";
import { forgetAll, remember, remembered } from "./prefs.js";
import { Recent } from "./recent.js";
import { addressOf } from "./router.js";
import { doorView } from "./views/signin.js";
import { joinPage } from "./views/join.js";
import { Shell } from "./views/shell.js";
import { startWorker } from "./worker.js";

const RETRY_MAX_MS = 15_000; // a user is waiting
const WORKER_AFTER_MS = 1500;
const JOIN = /^\/j\/([^/]+)$/;

class App {
  #root = /** @type {HTMLElement} */ (document.getElementById("root"));
  /** @type {any} */
  #client = null;
  /** @type {Model | null} */
  #model = null;
  /** @type {Shell | null} */
  #shell = null;
  /** @type {Recent | null} */
  #recent = null;

  async start() {
    useLanguage(preferredLanguage());
    this.settings = JSON.parse(/** @type {HTMLMetaElement} */ (document.querySelector("meta[name=nexo-settings]")).content);
    this.#client = new NexoClient({ url: location.origin, backoffMaxMs: RETRY_MAX_MS });
    this.#client.on("session", (session) => this.#sessionChanged(session));
    // Signing in or out in one tab is for all tabs of this browser.
    window.addEventListener("storage", (event) => {
      if (event.key === "nexo.signed_in" && (remembered("signed_in") ?? "") !== (this.#model?.userId ?? "")) location.reload();
    });
    const hasSession = await this.#client.restore();
    if (hasSession) await this.#enter();
    else this.#showDoor();
    // Not before something can be done: it fetches the page once more.
    setTimeout(startWorker, WORKER_AFTER_MS);
  }

  #showDoor(notice = "") {
    this.#leave();
    fill(this.#root, doorView({ client: this.#client, settings: this.settings, notice, signedIn: () => this.#enter() }));
  }

  async #enter() {
    this.#leave();
    const model = new Model(this.#client, this.settings);
    this.#model = model;
    this.#recent = new Recent(model);
    remember("signed_in", model.userId);
    remember("signing_out", null); // until then other tabs may still ask why the session ended
    model.keptAt = await this.#recent.load();
    if (this.#model !== model) return;
    this.#recent.start();
    this.#model.on("language", (code) => this.#speak(code));
    this.#model.on("signout", () => this.#signOut());
    this.#model.on("closed", () => this.#accountClosed());
    this.#model.on("forgetRecent", () => this.#recent?.clear());
    const code = JOIN.exec(location.pathname)?.[1];
    if (code) this.#showJoin(code);
    else this.#show(this.#model);
    this.#model.start();
  }

  #show(model) {
    this.#shell = new Shell(model);
    fill(this.#root, this.#shell.element);
    this.#shell.focus();
  }

  /** By an invite link: the group first, then everything else. */
  #showJoin(code) {
    const model = /** @type {Model} */ (this.#model);
    const done = (conversationId) => {
      history.replaceState(null, "", `/${addressOf(conversationId)}`);
      this.#show(model);
    };
    fill(this.#root, joinPage(model, decodeURIComponent(code), done));
  }

  async #accountClosed() {
    await this.#recent?.forget();
    this.#model?.drafts.forget();
    await this.#model?.attachments.forget();
    forgetAll(`people.${this.#model?.userId}`);
    remember("signed_in", null);
    location.hash = "#/";
    this.#showDoor(t("account_deleted"));
  }

  #leave() {
    this.#shell?.end();
    this.#recent?.stop();
    this.#model?.stop();
    this.#shell = this.#model = this.#recent = null;
  }

  /** Everything is drawn again in the other language. */
  #speak(code) {
    chooseLanguage(code);
    if (!this.#model) return;
    const chosen = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset?.value;
    this.#shell?.end();
    this.#show(this.#model);
    // What was pressed is there again, as another element.
    const again = chosen && /** @type {HTMLElement | null} */ (this.#root.querySelector(`[role="radio"][data-value="${CSS.escape(chosen)}"]`));
    if (again) again.focus();
  }

  /** The server ended it, here or by another device's new password. */
  #sessionChanged(session) {
    if (session || !this.#model) return;
    remember("signed_in", null);
    const userId = this.#model.userId;
    const isSignedOut = remembered("signing_out") === userId; // by the user, in another tab
    this.#showDoor(t(isSignedOut ? "signed_out_tab" : "session_ended"));
    if (isSignedOut) forgetAll(`people.${userId}`);
  }

  async #signOut() {
    const { userId } = this.#model ?? {};
    remember("signing_out", userId ?? null);
    const recent = this.#recent;
    const { drafts, attachments } = this.#model ?? {};
    this.#leave();
    drafts?.forget();
    await attachments?.forget();
    forgetAll(`people.${userId}`);
    await recent?.forget();
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
