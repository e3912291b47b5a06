/** The details of a conversation: the person, or the group with its members and settings. */

import { avatar } from "../components/avatar.js";
import { toast } from "../components/toast.js";
import { archive, askBlock, askDeleteChat, hide, isMuted, mutedUntil, openDisappearing, openFind, openMute, setMuted, setPinned } from "../dialogs/conversation.js";
import { askDismiss, askLeave, muteAll, openEditGroup, openInvite, openMemberMenu, openRequests } from "../dialogs/group.js";
import { openGroupNickname, openMember } from "../dialogs/member.js";
import { openInviteLink } from "../dialogs/link.js";
import { button, fill, h, holdWhilePressed, icon, iconButton } from "../dom.js";
import { Endings, soon } from "../emitter.js";
import { counted, lastingText } from "../format.js";
import { t } from "../i18n.js";
import { addressOf, go } from "../router.js";
import { mediaList } from "./panelmedia.js";
import { openRemark, openRequest } from "./people.js";

const MEMBERS_FIRST = 100;
const TABS = ["info", "media", "files", "links"];

export class Panel {
  #ends = new Endings();
  #shownMembers = MEMBERS_FIRST;
  #tab = "info";
  #isHeld = () => false;
  #update = soon(() => this.#draw());

  /** @param {any} model @param {any} conversation */
  constructor(model, conversation) {
    this.model = model;
    this.conversation = conversation;
    const isGroup = conversation.type === "group";
    this.title = t(isGroup ? "group_details" : "person_details");
    this.bar = h("div", { class: "bar" });
    this.body = h("div", { class: "scroll" });
    this.tabs = h("div", { class: "tabs even", role: "tablist", "aria-label": this.title });
    this.tabs.addEventListener("keydown", (event) => this.#tabKey(event));
    this.element = h("aside", { class: "panel", "aria-label": this.title }, this.bar, this.tabs, this.body);
    this.#drawTabs();
    this.#isHeld = holdWhilePressed(this.element, this.#update);
    this.#ends.add(
      conversation.on("change", this.#update),
      model.groups.on("change", this.#update),
      model.people.on("change", this.#update),
      model.on("presence", this.#update),
      model.on("connection", this.#update),
      model.on("blocked", this.#update),
      model.on("contacts", this.#update),
    );
    if (isGroup) model.groups.look(conversation.groupId);
    else model.people.refresh(conversation.peerId).catch(() => {});
    if (!isGroup) model.contacts.loadOnce();
    this.#draw();
  }

  end() {
    this.#ends.run();
  }

  #drawTabs() {
    fill(this.tabs, TABS.map((tab) => h("button", { type: "button", role: "tab", "aria-selected": String(tab === this.#tab), tabindex: tab === this.#tab ? "0" : "-1", onclick: () => this.#choose(tab) }, t(`panel_${tab}`))));
  }

  #choose(tab) {
    this.#tab = tab;
    this.shownKey = "";
    this.#drawTabs();
    this.#draw();
  }

  #tabKey(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    this.#choose(TABS.at((TABS.indexOf(this.#tab) + step) % TABS.length));
    /** @type {HTMLElement | null} */ (this.tabs.querySelector("[aria-selected=true]"))?.focus();
  }

  #draw() {
    if (this.#isHeld()) return;
    const { conversation, model } = this;
    const key = this.#key();
    if (key === this.shownKey) return;
    this.shownKey = key;
    const focused = this.element.contains(document.activeElement) ? document.activeElement?.dataset?.part : null;
    const scrolled = this.body.scrollTop;
    const mayEdit = conversation.type === "group" && this.#isAlive && model.groups.isManager(conversation.groupId);
    fill(
      this.bar,
      h("span", { class: "narrow-only" }, h("a", { class: "iconbtn", href: addressOf(conversation.id), "aria-label": t("back_to_chat") }, icon("back"))),
      h("h2", { class: "t" }, this.title),
      mayEdit && iconButton("settings", t("edit_group"), { dataset: { part: "edit" }, onclick: () => openEditGroup(model, conversation.groupId) }),
      h("span", { class: "wide-only" }, iconButton("close", t("close_details"), { dataset: { part: "close" }, onclick: () => go(conversation.id) })),
    );
    if (this.#tab === "info") fill(this.body, conversation.type === "group" ? this.#group() : this.#person());
    else fill(this.body, mediaList(model, conversation, /** @type {any} */ (this.#tab)));
    this.body.scrollTop = scrolled;
    if (focused) this.element.querySelector(`[data-part="${CSS.escape(focused)}"]`)?.focus();
  }

  /** What is shown, to leave everything alone while nothing of it changes. */
  #key() {
    const { conversation, model } = this;
    if (this.#tab !== "info") return this.#tab; // loaded once
    const own = [conversation.pinned, conversation.recvMsgOpt, conversation.silentUntil, conversation.archived, this.#shownMembers, model.isConnected];
    if (conversation.type === "single") return JSON.stringify([own, model.face(conversation), model.presenceText(conversation.peerId), conversation.messageTtlS, model.blocked.has(conversation.peerId), model.contacts.relation(conversation.peerId), model.contacts.of(conversation.peerId)?.remark]);
    const { groupId } = conversation;
    const members = this.#members.slice(0, this.#shownMembers).map((member) => [member, model.personFace(member.userId), model.presenceText(member.userId)]);
    return JSON.stringify([own, conversation.messageTtlS, model.groups.info(groupId), members, model.groups.requests(groupId).length, model.groups.hasLeft(groupId)]);
  }

  get #isAlive() {
    const { groupId } = this.conversation;
    return this.model.groups.info(groupId)?.status === 0 && !this.model.groups.hasLeft(groupId);
  }

  /** Owner, admins, then who is online, then by name. */
  get #members() {
    const { model, conversation } = this;
    const rank = { owner: 0, admin: 1, member: 2 };
    const list = [...(model.groups.members(conversation.groupId)?.list ?? [])];
    const online = new Map(list.map((member) => [member.userId, Number(model.isOnline(member.userId))]));
    const name = new Map(list.map((member) => [member.userId, model.people.name(member.userId)]));
    return list.sort(
      (a, b) => rank[a.role] - rank[b.role] || online.get(b.userId) - online.get(a.userId) || name.get(a.userId).localeCompare(name.get(b.userId)),
    );
  }

  #switch(part, iconName, text, on, act) {
    const attributes = { type: "button", class: "prow", role: "switch", "aria-checked": String(on), dataset: { part }, onclick: () => act(!on) };
    return h("button", attributes, icon(iconName), h("span", null, text), h("span", { class: "end" }, h("span", { class: "switch", "aria-hidden": "true" })));
  }

  #row(part, iconName, text, act, { danger = false, end = null } = {}) {
    const attributes = { type: "button", class: danger ? "prow danger" : "prow", dataset: { part }, onclick: act };
    return h("button", attributes, icon(iconName), h("span", null, text), end && h("span", { class: "end" }, end));
  }

  #common() {
    const { conversation } = this;
    return [
      this.#switch("pin", "pin", t("pin_conversation"), Boolean(conversation.pinned), (on) => setPinned(conversation, on)),
      this.#muteRow(),
      this.#ttlRow(),
      this.#row("archive", "archive", t(conversation.archived ? "unarchive" : "archive"), () => archive(this.model, conversation, !conversation.archived)),
      this.#row("hide", "hide", t("hide_conversation"), () => hide(conversation)),
    ];
  }

  #muteRow() {
    const { conversation } = this;
    const muted = isMuted(conversation);
    const act = () => (muted ? setMuted(conversation, false) : openMute(conversation, this.element.querySelector("[data-part=mute]")));
    const end = muted ? [mutedUntil(conversation)] : [icon("next", "s")];
    const row = this.#row("mute", muted ? "bell" : "belloff", t(muted ? "unmute" : "mute_notifications"), act, { end });
    row.setAttribute("aria-haspopup", muted ? "false" : "menu");
    return row;
  }

  /** For both sides; in a group for its managers. */
  #ttlRow() {
    const { model, conversation } = this;
    const isOpen = conversation.type === "single" || (this.#isAlive && model.groups.isManager(conversation.groupId));
    const s = conversation.messageTtlS ?? 0;
    const end = s > 0 ? lastingText(s) : t("off_word");
    if (!isOpen) return s > 0 && h("div", { class: "prow" }, icon("timer"), h("span", null, t("disappearing")), h("span", { class: "end" }, end));
    const row = this.#row("ttl", "timer", t("disappearing"), () => openDisappearing(conversation, row), { end: [end, icon("next", "s")] });
    row.setAttribute("aria-haspopup", "menu");
    return row;
  }

  #actions() {
    const { model, conversation } = this;
    const act = (sign, text, go) => h("button", { type: "button", onclick: go }, icon(sign), text);
    const mayCall = conversation.type === "single" && model.mayCall;
    return h(
      "div",
      { class: "bigacts" },
      mayCall && act("phone", t("call"), () => model.emit("call", { userId: conversation.peerId, kind: "audio" })),
      mayCall && act("video", t("video_call"), () => model.emit("call", { userId: conversation.peerId, kind: "video" })),
      act("search", t("find_word"), () => openFind(model, conversation)),
    );
  }

  #contactRow() {
    const { model, conversation } = this;
    const id = conversation.peerId;
    const relation = model.contacts.relation(id);
    if (relation === "contact") return this.#row("remark", "edit", t("your_name_for_them"), () => openRemark(model, id), { end: [model.contacts.of(id)?.remark || t("none_word"), icon("next", "s")] });
    if (relation === "asked") return h("div", { class: "prow" }, icon("useradd"), h("span", null, t("you_asked")), h("span", { class: "end" }, t("waiting_word")));
    return this.#row("contact", "useradd", t("add_to_contacts"), () => openRequest(model, id), { end: icon("next", "s") });
  }

  #person() {
    const { model, conversation } = this;
    const face = model.face(conversation);
    const isBlocked = model.blocked.has(conversation.peerId);
    return [
      h("div", { class: "pgroup" }, avatar({ ...face, online: false }, "s72"), h("h3", { class: "big" }, face.name), h("p", null, model.presenceText(conversation.peerId))),
      this.#actions(),
      h("section", { class: "psec" }, this.#contactRow()),
      h("section", { class: "psec" }, h("h3", null, t("user_id")), this.#copyLine(conversation.peerId)),
      h("section", { class: "psec" }, this.#common()),
      h("section", { class: "psec" }, this.#row("delete", "trash", t("delete_chat"), () => askDeleteChat(conversation), { danger: true }), this.#row("block", "ban", t(isBlocked ? "unblock" : "block"), () => askBlock(model, conversation.peerId, !isBlocked), { danger: !isBlocked })),
    ];
  }

  #copyLine(text) {
    const copy = async () => {
      try {
        await navigator.clipboard.writeText(text);
        toast(t("copied"));
      } catch {
        toast(t("copy_failed"), { bad: true });
      }
    };
    return h("p", { class: "copyline" }, h("code", { class: "ell" }, text), iconButton("copy", t("copy"), { dataset: { part: "copy" }, onclick: copy }, "s"));
  }

  #group() {
    const { model, conversation } = this;
    const { groupId } = conversation;
    const info = model.groups.info(groupId);
    const face = model.face(conversation);
    const head = h("div", { class: "pgroup" }, avatar(face, "s72"), h("h3", { class: "big" }, face.name), info?.introduction && h("p", null, info.introduction));
    if (!info) return [head];
    const isManager = model.groups.isManager(groupId);
    const requests = model.groups.requests(groupId).length;
    return [
      head,
      this.#actions(),
      info.announcement && h("section", { class: "psec" }, h("h3", null, t("announcement")), h("p", { class: "pre" }, info.announcement)),
      h("section", { class: "psec" }, h("h3", null, t("group_id")), this.#copyLine(groupId)),
      this.#isAlive &&
        isManager &&
        requests > 0 &&
        h("section", { class: "psec" }, this.#row("requests", "useradd", t("join_requests"), () => openRequests(model, groupId), { end: [h("span", { class: "badge" }, counted(requests)), icon("next", "s")] })),
      this.#isAlive && this.#memberSection(info, isManager),
      this.#isAlive && h("section", { class: "psec" }, this.#row("nickname", "edit", t("my_group_name"), () => openGroupNickname(model, groupId), { end: [h("span", { dir: "auto" }, model.groups.me(groupId)?.groupNickname || t("none_word")), icon("next", "s")] })),
      h("section", { class: "psec" }, this.#common(), this.#isAlive && isManager && this.#managing(info)),
      h("section", { class: "psec" }, this.#row("delete", "trash", t("delete_chat"), () => askDeleteChat(conversation), { danger: true }), this.#isAlive && this.#ending(info)),
    ];
  }

  #managing(info) {
    const { model } = this;
    const isOn = info.muteUntil === -1 || info.muteUntil > model.now();
    return [
      this.#switch("muteall", "speakoff", t("only_admins_write"), isOn, (on) => muteAll(model, info.groupId, on)),
      this.#row("link", "link", t("invite_link"), () => openInviteLink(model, info.groupId), { end: icon("next", "s") }),
      this.#row("policy", "useradd", t("who_can_join"), () => openEditGroup(model, info.groupId), { end: [t(`join_${info.joinPolicy}`), icon("next", "s")] }),
    ];
  }

  #ending(info) {
    const { model } = this;
    if (info.ownerId === model.userId) return this.#row("dismiss", "leave", t("dismiss_group"), () => askDismiss(model, info.groupId), { danger: true });
    return this.#row("leave", "leave", t("leave_group"), () => askLeave(model, info.groupId), { danger: true });
  }

  #memberSection(info, isManager) {
    const { model } = this;
    const members = this.#members;
    const known = model.groups.members(info.groupId);
    const online = members.filter(({ userId }) => model.isOnline(userId)).length;
    const all = t("n_members", { n: info.memberCount });
    const text = model.isConnected && known && !known.nextCursor && members.length <= 100 ? t("members_online", { members: all, n: online }) : all;
    const mayInvite = info.joinPolicy !== "invite" || isManager;
    const invite = mayInvite && button(t("invite"), { class: "quiet small", dataset: { part: "invite" }, onclick: () => openInvite(model, info.groupId) }, "useradd");
    const rows = members.slice(0, this.#shownMembers).map((member) => this.#member(info, member));
    const hasMore = members.length > this.#shownMembers || known?.nextCursor;
    const more = hasMore && button(t("show_more"), { class: "quiet small", dataset: { part: "more" }, onclick: () => this.#moreMembers(info.groupId) });
    return h("section", { class: "psec" }, h("h3", null, text, invite), h("ul", null, rows), more);
  }

  async #moreMembers(groupId) {
    this.#shownMembers += MEMBERS_FIRST;
    if (this.#shownMembers > this.#members.length) await this.model.groups.loadMoreMembers(groupId).catch(() => {});
    this.#draw();
  }

  #member(info, member) {
    const { model } = this;
    const face = model.personFace(member.userId);
    const isMe = member.userId === model.userId;
    const isMuted = member.mutedUntil === -1 || member.mutedUntil > model.now();
    const state = model.presenceText(member.userId);
    const known = model.nameIn(info.groupId, member.userId);
    const sub = isMuted ? [icon("speakoff", "xs"), t("muted_member")] : [known !== face.name && `${face.name} · `, state];
    const tag = member.role === "owner" ? h("span", { class: "tag own" }, t("role_owner")) : member.role === "admin" ? h("span", { class: "tag" }, t("role_admin")) : h("span");
    const manage = iconButton("more", t("manage_x", { name: face.name }), { "aria-haspopup": "menu", "aria-expanded": "false", dataset: { part: `member ${member.userId}` } }, "s");
    manage.addEventListener("click", () => openMemberMenu(model, info.groupId, member, manage));
    const name = isMe ? t("name_you", { name: known }) : known;
    const open = () => openMember(model, info.groupId, member);
    const who = h("button", { type: "button", class: "who", dataset: { part: `profile ${member.userId}` }, onclick: open }, avatar(face, "s36"), h("span", { class: "ell" }, h("span", { class: "name ell", dir: "auto" }, name), h("span", { class: "sub ell" }, sub)));
    return h("li", { class: "member" }, who, tag, isMe ? h("span") : manage);
  }
}
