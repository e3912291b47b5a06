/** The whole page of a signed-in user: bar, list, conversation, details; what is shown follows the address. */

import { closePopover } from "../components/menu.js";
import { ConnectionBar } from "../components/connbar.js";
import { UpdateBar } from "../components/updatebar.js";
import { openElsewhere } from "../dialogs/account.js";
import { openShortcuts } from "../dialogs/shortcuts.js";
import { h, isNarrow, isTextField } from "../dom.js";
import { Endings } from "../emitter.js";
import { clock } from "../format.js";
import { t } from "../i18n.js";
import { startNotifying } from "../notify.js";
import { backTo } from "../layers.js";
import { addressOf, currentRoute, go } from "../router.js";
import { blankView, isFresh, nameOf } from "./blank.js";
import { CallDesk } from "./calldesk.js";
import { ChatView } from "./chat.js";
import { catchDrops } from "./drop.js";
import { FindBar } from "./findbar.js";
import { joinCard } from "./join.js";
import { Panel } from "./panel.js";
import { PeoplePage } from "./people.js";
import { Settings } from "./settings.js";
import { Sidebar } from "./sidebar.js";

const JUMP_TRIES = 100;
const JUMP_LOOK_MS = 50;

export class Shell {
  #ends = new Endings();
  /** @type {ChatView | null} */
  #chat = null;
  /** @type {Panel | null} */
  #panel = null;
  #blank = null;
  #elsewhere = null;
  /** Settings or contacts, in the place of a conversation. @type {any} */
  #page = null;
  /** A group that one is not in. @type {HTMLElement | null} */
  #join = null;
  /** @type {FindBar | null} */
  #find = null;

  /** @param {any} model */
  constructor(model) {
    this.model = model;
    this.bar = new ConnectionBar(model);
    this.update = new UpdateBar();
    this.sidebar = new Sidebar(model);
    const skip = h("button", { type: "button", class: "skip", onclick: () => this.#chat?.composer.focus() }, t("skip_to_message"));
    const bars = h("div", { class: "bars" }, this.update.element, this.bar.element);
    this.element = h("div", { class: "app" }, skip, bars, this.sidebar.element);
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
      model.on("find", () => this.#openFind()),
      model.groups.on("change", () => this.#groupsChanged()),
      startNotifying(model, (id) => go(id)),
      catchDrops((id, files) => this.#attachTo(id, files)),
      () => this.bar.end(),
      () => this.update.end(),
      () => this.sidebar.end(),
    );
    this.element.addEventListener("click", (event) => this.#back(event));
    if (model.mayCall) {
      const desk = new CallDesk(model, bars);
      this.#ends.add(() => desk.end());
    }
    this.#route();
  }

  end() {
    this.#ends.run();
    this.#page?.end();
    this.#chat?.end();
    this.#panel?.end();
    this.#elsewhere?.remove();
  }

  /** After it has been put into the page: before, nothing in it can be focused. */
  focus() {
    if (this.#chat) this.#chat.focus();
    else /** @type {HTMLElement | null} */ (this.element.querySelector("main.set h1"))?.focus();
  }

  // -- what is shown -------------------------------------------------------------------------------------

  #route() {
    closePopover();
    const { conversationId, details, seq, page, section } = currentRoute();
    const conversation = conversationId ? this.#conversation(conversationId) : null;
    const isPage = page === "settings" || page === "contacts";
    this.#showPage(isPage ? page : "", section);
    if (conversation?.id !== this.model.openId || (conversation && !this.#chat && !this.#join)) this.#open(conversation);
    this.#showPanel(details && this.#chat ? conversation : null);
    this.#showBlank(conversation === null && !isPage);
    if (conversation) this.element.dataset.view = details && this.#chat ? "panel" : "chat";
    this.#chat?.headerChanged();
    this.sidebar.update();
    if (seq && conversation) {
      history.replaceState(history.state, "", addressOf(conversation.id)); // the next one may be the same message
      this.#jumpSoon(seq);
    }
    this.model.emit("opened");
  }

  /** @param {string} conversationId @param {File[]} files */
  #attachTo(conversationId, files) {
    if (this.model.openId !== conversationId) {
      go(conversationId);
      this.#route(); // the event of the address comes later
    }
    this.#chat?.composer.attach(files);
  }

  /** A conversation that has just been opened has to have its messages first. */
  #jumpSoon(seq, tries = JUMP_TRIES) {
    const chat = this.#chat;
    if (!chat || (chat.log.rows.length === 0 && tries > 0)) {
      if (chat) setTimeout(() => this.#chat === chat && this.#jumpSoon(seq, tries - 1), JUMP_LOOK_MS);
      return;
    }
    chat.jumpTo(seq);
  }

  /** An address may have been typed, or belong to another user. */
  #conversation(id) {
    const peers = /^si_([A-Za-z0-9._@-]+):([A-Za-z0-9._@-]+)$/.exec(id)?.slice(1) ?? [];
    const isMine = peers.includes(this.model.userId) && peers[0] !== peers[1];
    return isMine || /^sg_g_[A-Za-z0-9]{12}$/.test(id) ? this.model.client.conversation(id) : null;
  }

  #open(conversation) {
    this.#find?.close();
    this.#chat?.end();
    this.#chat?.element.remove();
    this.#join?.remove();
    this.#chat = this.#join = null;
    this.model.openId = conversation?.id ?? null;
    if (!conversation) return;
    if (this.#isStranger(conversation)) {
      this.#join = joinCard(this.model, conversation.groupId, () => this.#open(conversation));
      this.element.append(this.#join);
      return;
    }
    this.#chat = new ChatView(this.model, conversation);
    this.element.append(this.#chat.element);
    this.#chat.focus();
  }

  /** Not in the group, and never was. */
  #isStranger(conversation) {
    return conversation.type === "group" && this.model.groups.hasLeft(conversation.groupId) && conversation.headSeq === 0 && conversation.pending.length === 0;
  }

  /** The open group is known now, or the user was let in. */
  #groupsChanged() {
    const { openId } = this.model;
    if (!openId?.startsWith("sg_")) return;
    const conversation = this.model.client.conversation(openId);
    if (this.#isStranger(conversation) || this.#join) this.#open(conversation);
  }

  #showPage(name, section) {
    if (this.#page?.name !== name) {
      this.#page?.end();
      for (const element of this.#page?.elements ?? []) element.remove();
      this.#page = name === "settings" ? new Settings(this.model) : name === "contacts" ? new PeoplePage(this.model) : null;
      if (this.#page) {
        this.#page.name = name;
        this.element.append(...this.#page.elements);
      }
    }
    this.element.dataset.page = name;
    if (!this.#page) return;
    this.#page.show(section);
    this.element.dataset.view = name === "settings" && !section ? "sections" : "set";
    this.#page.main.querySelector("h1")?.focus({ preventScroll: true });
  }

  #openFind() {
    if (!this.#chat) return;
    this.#find ??= new FindBar(this.model, this.#chat, () => {
      this.#find = null;
      this.#chat?.focus();
    });
    if (!this.#find.element.isConnected) this.#chat.element.querySelector("header.bar")?.after(this.#find.element);
    this.#find.focus();
  }

  /** An arrow back goes back in the history, where that is the same. */
  #back(event) {
    const link = event.target instanceof Element && event.target.closest(".narrow-only > a.iconbtn");
    const address = link && link.getAttribute("href");
    if (!address?.startsWith("#")) return;
    event.preventDefault();
    backTo(address);
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
    else if (command && event.key.toLowerCase() === "f" && this.#chat && !this.#find) this.#openFind();
    else if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) this.sidebar.next(event.key === "ArrowUp" ? -1 : 1, event.shiftKey);
    else if (command && event.key === "/") openShortcuts();
    else if (event.key === "?" && !this.#chat && !isTextField(event.target)) openShortcuts(); // in a chat it is a character
    else if (event.key === "Escape") {
      if (closePopover()) return;
      if (currentRoute().details && this.#chat) go(this.#chat.conversation.id);
      this.#chat?.composer.focus();
    } else return;
    event.preventDefault();
  }
}
