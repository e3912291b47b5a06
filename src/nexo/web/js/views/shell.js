/** The whole page of somebody signed in: bar, list, conversation, details; what is shown follows the address. */

import { closePopover } from "../components/menu.js";
import { ConnectionBar } from "../components/connbar.js";
import { openElsewhere } from "../dialogs/account.js";
import { openShortcuts } from "../dialogs/shortcuts.js";
import { h, isNarrow, isTextField } from "../dom.js";
import { Endings } from "../emitter.js";
import { clock } from "../format.js";
import { t } from "../i18n.js";
import { startNotifying } from "../notify.js";
import { currentRoute, go } from "../router.js";
import { blankView, isFresh, nameOf } from "./blank.js";
import { ChatView } from "./chat.js";
import { Panel } from "./panel.js";
import { Sidebar } from "./sidebar.js";

export class Shell {
  #ends = new Endings();
  /** @type {ChatView | null} */
  #chat = null;
  /** @type {Panel | null} */
  #panel = null;
  #blank = null;
  #elsewhere = null;

  /** @param {any} model */
  constructor(model) {
    this.model = model;
    this.bar = new ConnectionBar(model);
    this.sidebar = new Sidebar(model);
    const skip = h("button", { type: "button", class: "skip", onclick: () => this.#chat?.composer.focus() }, t("skip_to_message"));
    this.element = h("div", { class: "app" }, skip, this.bar.element, this.sidebar.element);
    model.shownPeople = () => this.#chat?.shownPeople ?? [];
    const onroute = () => this.#route();
    const onkey = (event) => this.#key(event);
    window.addEventListener("hashchange", onroute);
    document.addEventListener("keydown", onkey);
    this.#ends.add(
      () => window.removeEventListener("hashchange", onroute),
      () => document.removeEventListener("keydown", onkey),
      model.on("list", () => this.#listChanged()),
      model.on("connection", (state) => this.#connection(state)),
      startNotifying(model, (id) => go(id)),
      () => this.bar.end(),
      () => this.sidebar.end(),
    );
    this.#route();
  }

  end() {
    this.#ends.run();
    this.#chat?.end();
    this.#panel?.end();
    this.#elsewhere?.remove();
  }

  // -- what is shown -------------------------------------------------------------------------------------

  #route() {
    closePopover();
    const { conversationId, details } = currentRoute();
    const conversation = conversationId ? this.#find(conversationId) : null;
    if (conversation?.id !== this.#chat?.conversation.id) this.#open(conversation);
    this.#showPanel(details ? conversation : null);
    this.#showBlank(conversation === null);
    if (conversation) this.element.dataset.view = details ? "panel" : "chat";
    this.#chat?.headerChanged();
    this.sidebar.update();
    this.model.emit("opened");
  }

  /** An address may have been typed, or be of somebody else. */
  #find(id) {
    const peers = /^si_([A-Za-z0-9._@-]+):([A-Za-z0-9._@-]+)$/.exec(id)?.slice(1) ?? [];
    const isMine = peers.includes(this.model.userId) && peers[0] !== peers[1];
    return isMine || /^sg_g_[A-Za-z0-9]{12}$/.test(id) ? this.model.client.conversation(id) : null;
  }

  #open(conversation) {
    this.#chat?.end();
    this.#chat?.element.remove();
    this.#chat = null;
    this.model.openId = conversation?.id ?? null;
    if (!conversation) return;
    this.#chat = new ChatView(this.model, conversation);
    this.element.append(this.#chat.element);
    this.#chat.focus();
  }

  #showPanel(conversation) {
    if (this.#panel?.conversation === conversation) return;
    this.#panel?.end();
    this.#panel?.element.remove();
    this.#panel = conversation ? new Panel(this.model, conversation) : null;
    if (this.#panel) this.element.append(this.#panel.element);
    if (this.#panel && isNarrow()) this.#panel.element.querySelector("a")?.focus();
  }

  #showBlank(isWanted) {
    this.#blank?.remove();
    this.#blank = isWanted ? blankView(this.model) : null;
    if (!this.#blank) return;
    this.element.append(this.#blank);
    this.element.dataset.view = isFresh(this.model) ? "blank" : "list";
  }

  /** The first conversation ends the first steps, and the other way round. */
  #listChanged() {
    if (!this.#blank) return;
    const { fresh, name } = this.#blank.dataset;
    if ((fresh === "yes") !== isFresh(this.model) || (fresh === "yes" && name !== nameOf(this.model))) this.#showBlank(true);
  }

  // -- the session ---------------------------------------------------------------------------------------

  #connection({ state, reason }) {
    if (state !== "closed") {
      this.#elsewhere?.close();
      this.#elsewhere = null;
      return;
    }
    if (reason === "kicked" || reason === "replaced") this.#elsewhere ??= openElsewhere(this.model, { reason, at: clock(Date.now()) });
  }

  // -- keys ----------------------------------------------------------------------------------------------

  #key(event) {
    if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
    const command = event.ctrlKey || event.metaKey;
    if (command && event.key.toLowerCase() === "k") {
      if (isNarrow()) go(null);
      this.sidebar.focusSearch();
    } else if (command && event.key === "." && this.#chat) go(this.#chat.conversation.id, !currentRoute().details);
    else if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) this.sidebar.next(event.key === "ArrowUp" ? -1 : 1, event.shiftKey);
    else if (event.key === "?" && !isTextField(event.target)) openShortcuts();
    else if (event.key === "Escape") {
      if (closePopover()) return;
      if (currentRoute().details && this.#chat) go(this.#chat.conversation.id);
      this.#chat?.composer.focus();
    } else return;
    event.preventDefault();
  }
}
