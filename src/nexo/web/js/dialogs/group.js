/** Managing a group: inviting, requests, roles, muting, its texts, its end. */

import { avatar } from "../components/avatar.js";
import { busyWhile, confirmDialog, openDialog } from "../components/dialog.js";
import { field, segmented } from "../components/field.js";
import { openMenu } from "../components/menu.js";
import { PeoplePicker } from "../components/picker.js";
import { toast } from "../components/toast.js";
import { button, fill, h } from "../dom.js";
import { tellFailure, trying } from "../failures.js";
import { fullTime, shortName } from "../format.js";
import { t } from "../i18n.js";
import { go } from "../router.js";
import { joinPolicies } from "./starting.js";

/** @param {any} model @param {string} groupId */
export function openInvite(model, groupId) {
  const members = model.groups.members(groupId)?.byId ?? new Map();
  const count = h("span", { class: "count num", "aria-live": "polite" });
  const invite = button(t("invite"), { class: "primary" });
  const check = () => {
    count.textContent = t("n_chosen", { n: picker.chosen.size });
    invite.setAttribute("aria-disabled", String(picker.chosen.size === 0));
  };
  const picker = new PeoplePicker(model, { many: true, label: t("people"), tags: (id) => (members.has(id) ? t("role_member") : ""), onchange: check });
  invite.addEventListener("click", () => {
    if (picker.chosen.size === 0) return;
    busyWhile(invite, async () => {
      try {
        const { added, skipped } = await model.client.groups.invite(groupId, [...picker.chosen]);
        dialog.close();
        toast(skipped.length ? t("invited_some", { n: added.length, m: skipped.length }) : t("invited", { n: added.length }));
        model.groups.look(groupId);
      } catch (error) {
        tellFailure(error);
      }
    });
  });
  check();
  const dialog = openDialog({
    title: t("invite_to", { name: model.groups.name(groupId) }),
    body: [picker.element, h("p", { class: "small" }, t("invite_note"))],
    footer: [count, button(t("cancel"), { onclick: () => dialog.close() }), invite],
  });
}

/** @param {any} model @param {string} groupId */
export function openRequests(model, groupId) {
  const list = h("ul", { class: "requests" });
  const draw = () => {
    const requests = model.groups.requests(groupId);
    fill(list, requests.length === 0 && h("li", { class: "dim" }, t("no_requests")), requests.map((request) => row(request)));
  };
  const decide = async (userId, accept) => {
    if (await trying(() => model.client.groups.decideJoin(groupId, userId, accept))) {
      await model.groups.loadRequests(groupId).catch(() => {});
      if (accept) model.groups.look(groupId);
    }
    draw();
  };
  const row = (request) => {
    const name = model.people.name(request.userId);
    return h(
      "li",
      { class: "request" },
      avatar(model.personFace(request.userId), "s36"),
      h("span", { class: "ell" }, h("span", { class: "name" }, name), h("span", { class: "sub" }, request.message || fullTime(request.createdAt))),
      button(t("refuse"), { class: "small", "aria-label": t("refuse_x", { name }), onclick: () => decide(request.userId, false) }),
      button(t("accept"), { class: "small primary", "aria-label": t("accept_x", { name }), onclick: () => decide(request.userId, true) }),
    );
  };
  const end = model.groups.on("change", draw);
  draw();
  openDialog({ title: t("join_requests"), body: [list], onclose: end });
  model.groups.loadRequests(groupId).catch(tellFailure);
}

/** @param {any} model @param {string} groupId */
export function openEditGroup(model, groupId) {
  const info = model.groups.info(groupId);
  const name = field({ label: t("group_name"), value: info.name, attributes: { maxlength: 128, autofocus: true } });
  const introduction = field({ label: t("introduction"), value: info.introduction, multiline: true, attributes: { maxlength: 512 } });
  const announcement = field({ label: t("announcement"), value: info.announcement, multiline: true, attributes: { maxlength: 4096 } });
  const picture = field({ label: t("picture_address"), value: info.avatar, attributes: { type: "url", maxlength: 512, placeholder: "https://" } });
  const policy = segmented({ label: t("who_can_join"), options: joinPolicies(), value: info.joinPolicy });
  const save = button(t("save"), { class: "primary" });
  save.addEventListener("click", () => {
    const given = { name: name.input.value.trim(), introduction: introduction.input.value.trim(), announcement: announcement.input.value.trim(), avatar: picture.input.value.trim(), joinPolicy: policy.value() };
    if (!given.name) {
      name.setError(t("group_name_missing"));
      name.input.focus();
      return;
    }
    const changes = Object.fromEntries(Object.entries(given).filter(([key, value]) => value !== info[key]));
    busyWhile(save, async () => {
      if (Object.keys(changes).length > 0 && !(await trying(() => model.client.groups.update(groupId, changes)))) return;
      dialog.close();
      model.groups.look(groupId);
    });
  });
  const dialog = openDialog({
    title: t("edit_group"),
    body: [name.element, introduction.element, announcement.element, picture.element, policy.element],
    footer: [button(t("cancel"), { onclick: () => dialog.close() }), save],
  });
}

/** What the viewer may do with a member. @param {any} model @param {string} groupId @param {any} member @param {HTMLElement} anchor */
export function openMemberMenu(model, groupId, member, anchor) {
  const { userId } = member;
  const info = model.groups.info(groupId);
  const isOwner = info?.ownerId === model.userId;
  const mayManage = isOwner || (model.groups.me(groupId)?.role === "admin" && member.role === "member");
  const isAlive = info?.status === 0;
  const name = model.people.name(userId);
  const isMuted = member.mutedUntil === -1 || member.mutedUntil > model.now();
  const { groups } = model.client;
  const run = async (work) => {
    await trying(work);
    model.groups.look(groupId);
  };
  const mute = (durationS) => run(() => groups.mute(groupId, { userId, durationS }));
  openMenu(anchor, name, [
    { icon: "chat", text: t("message"), act: () => go(model.client.chatWith(userId).id) },
    isOwner && isAlive && member.role === "member" && { icon: "shield", text: t("make_admin"), act: () => run(() => groups.setMemberRole(groupId, userId, "admin")) },
    isOwner && isAlive && member.role === "admin" && { icon: "shield", text: t("unmake_admin"), act: () => run(() => groups.setMemberRole(groupId, userId, "member")) },
    mayManage && isAlive && isMuted && { icon: "bell", text: t("unmute_member"), act: () => mute(0) },
    mayManage && isAlive && !isMuted && { icon: "speakoff", text: t("mute_member"), act: () => openMuteMember(model, name, mute) },
    isOwner && isAlive && { icon: "crown", text: t("transfer"), act: () => askTransfer(model, groupId, userId) },
    mayManage && isAlive && "line",
    mayManage && isAlive && { icon: "userremove", text: t("remove_member"), danger: true, act: () => askRemove(model, groupId, userId) },
  ]);
}

function openMuteMember(model, name, mute) {
  const times = /** @type {[string, string][]} */ ([["600", t("mute_10m")], ["3600", t("mute_1h")], ["86400", t("mute_1d")], ["-1", t("mute_forever")]]);
  const choice = segmented({ label: t("how_long"), options: times, value: "3600" });
  const go_ = button(t("mute_action"), { class: "primary" });
  go_.addEventListener("click", () => {
    dialog.close();
    mute(Number(choice.value()));
  });
  const dialog = openDialog({
    title: t("mute_title", { name }),
    body: [h("p", { class: "gap" }, t("mute_text", { name: shortName(name) })), choice.element],
    footer: [button(t("cancel"), { onclick: () => dialog.close() }), go_],
  });
}

/** @param {any} model @param {string} groupId @param {string} userId */
export function askTransfer(model, groupId, userId) {
  const name = model.people.name(userId);
  confirmDialog({
    icon: "crown",
    title: t("transfer_title", { name: shortName(name) }),
    text: t("transfer_text", { name, short: shortName(name), group: model.groups.name(groupId) }),
    action: t("transfer_action"),
    act: async () => {
      await trying(() => model.client.groups.transferOwner(groupId, userId));
      model.groups.look(groupId);
    },
  });
}

function askRemove(model, groupId, userId) {
  const name = model.people.name(userId);
  confirmDialog({
    icon: "userremove",
    title: t("remove_title", { name: shortName(name) }),
    text: t("remove_text", { name, group: model.groups.name(groupId) }),
    action: t("remove"),
    danger: true,
    act: async () => {
      await trying(() => model.client.groups.removeMember(groupId, userId));
      model.groups.look(groupId);
    },
  });
}

/** @param {any} model @param {string} groupId */
export function askLeave(model, groupId) {
  confirmDialog({
    icon: "leave",
    title: t("leave_title", { name: model.groups.name(groupId) }),
    text: t("leave_text"),
    action: t("leave"),
    danger: true,
    act: async () => {
      await trying(() => model.client.groups.quit(groupId));
      await model.groups.loadMine().catch(() => {});
    },
  });
}

/** @param {any} model @param {string} groupId */
export function askDismiss(model, groupId) {
  confirmDialog({
    icon: "leave",
    title: t("dismiss_title", { name: model.groups.name(groupId) }),
    text: t("dismiss_text"),
    action: t("dismiss"),
    danger: true,
    act: async () => {
      await trying(() => model.client.groups.dismiss(groupId));
      await model.groups.loadMine().catch(() => {});
      await model.groups.refresh(groupId).catch(() => {});
    },
  });
}

/** @param {any} model @param {string} groupId @param {boolean} on */
export async function muteAll(model, groupId, on) {
  await trying(() => model.client.groups.mute(groupId, { durationS: on ? -1 : 0 }));
  await model.groups.refresh(groupId).catch(() => {});
}
