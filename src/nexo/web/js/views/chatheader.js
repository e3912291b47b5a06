/** The head of a conversation: who it is and how they are; while messages are selected, how many. */

import { avatar } from "../components/avatar.js";
import { openMenu } from "../components/menu.js";
import { conversationMenu, openFind } from "../dialogs/conversation.js";
import { button, fill, h, icon, iconButton } from "../dom.js";
import { t } from "../i18n.js";
import { addressOf, currentRoute, go } from "../router.js";

export class ChatHeader {
  #key = "";

  /** @param {any} chat */
  constructor(chat) {
    this.chat = chat;
    this.element = h("header", { class: "bar" });
  }

  update() {
    const { model, conversation, selection } = this.chat;
    const face = model.face(conversation);
    const details = currentRoute().details;
    const status = this.#status(face);
    const key = JSON.stringify([face, details, status, selection.isOn, selection.isOn && selection.size]);
    if (key === this.#key) return;
    this.#key = key;
    this.chat.element.setAttribute("aria-label", face.name);
    const active = /** @type {HTMLElement | null} */ (document.activeElement);
    const had = this.element.contains(active) ? (active?.dataset?.part ?? "title") : null;
    fill(this.element, selection.isOn ? this.#selecting() : this.#usual(face, status, details));
    if (had) (this.element.querySelector(`[data-part=${had}]`) ?? this.element.querySelector("h1, button"))?.focus();
  }

  #usual(face, status, details) {
    const { model, conversation } = this.chat;
    const toggle = () => go(conversation.id, !currentRoute().details);
    const more = iconButton("more", t("more"), {
      "aria-haspopup": "menu",
      "aria-expanded": "false",
      dataset: { part: "more" },
      onclick: () => openMenu(more, face.name, conversationMenu(model, conversation)),
    });
    const who = h(
      "button",
      { type: "button", class: "who-head", dataset: { part: "who" }, onclick: () => go(conversation.id, true) },
      avatar(face, "s40"),
      h("span", { class: "ell" }, h("span", { class: "t ell", dir: "auto" }, face.name), h("br"), h("span", { class: `st ${status.kind}` }, status.text)),
    );
    return [
      h("span", { class: "narrow-only" }, h("a", { class: "iconbtn", href: addressOf(null), "aria-label": t("back_to_list") }, icon("back"))),
      h("h1", { class: "head", tabindex: "-1", dataset: { part: "title" } }, who),
      ...this.#calling(),
      iconButton("search", t("find_label"), { class: "mouse-only", dataset: { part: "find" }, onclick: () => openFind(model, conversation) }),
      iconButton("info", t("details"), { "aria-pressed": String(details), dataset: { part: "details" }, onclick: toggle }),
      more,
    ];
  }

  #calling() {
    const { model, conversation } = this.chat;
    if (conversation.type !== "single" || !model.mayCall) return [];
    const call = (kind) => () => model.emit("call", { userId: conversation.peerId, kind });
    return [iconButton("phone", t("voice_call"), { dataset: { part: "phone" }, onclick: call("audio") }), iconButton("video", t("start_video"), { dataset: { part: "video" }, onclick: call("video") })];
  }

  #selecting() {
    const { selection } = this.chat;
    return [
      iconButton("close", t("leave_selection"), { dataset: { part: "leave" }, onclick: () => selection.stop() }),
      h("h1", { class: "head", tabindex: "-1", dataset: { part: "title" } }, h("span", { class: "who-head" }, h("span", { class: "t", role: "status" }, t("n_selected", { n: selection.size })))),
      button(t("clear"), { class: "quiet small", dataset: { part: "clear" }, onclick: () => selection.clear() }),
    ];
  }

  #status(face) {
    const { model, conversation } = this.chat;
    if (!model.isConnected) return { kind: "", text: t("waiting_for_connection") };
    if (conversation.type === "single") {
      if (conversation.typists.length > 0) return { kind: "typing", text: t("typing") };
      return { kind: face.online ? "on" : "", text: model.presenceText(conversation.peerId) };
    }
    const info = model.groups.info(conversation.groupId);
    if (!info) return { kind: "", text: "" };
    if (info.status === 1) return { kind: "", text: t("dismissed") };
    const members = t("n_members", { n: info.memberCount });
    const known = model.groups.members(conversation.groupId);
    // A user that has left does not know the members.
    if (!known || known.nextCursor || known.list.length > 100 || model.groups.hasLeft(conversation.groupId)) return { kind: "", text: members };
    const online = known.list.filter(({ userId }) => model.isOnline(userId)).length;
    return { kind: "", text: t("members_online", { members, n: Math.min(online, info.memberCount) }) };
  }
}
