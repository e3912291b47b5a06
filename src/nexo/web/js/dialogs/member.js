/** One member of a group: who it is there, and how one is called there oneself. */

import { avatar } from "../components/avatar.js";
import { busyWhile, openDialog } from "../components/dialog.js";
import { field } from "../components/field.js";
import { button, h, icon } from "../dom.js";
import { trying } from "../failures.js";
import { fullTime } from "../format.js";
import { t } from "../i18n.js";
import { go } from "../router.js";

/** @param {any} model @param {string} groupId @param {any} member */
export function openMember(model, groupId, member) {
  const { userId, groupNickname, role, inviterId, joinedAt } = member;
  const face = model.personFace(userId);
  const isMe = userId === model.userId;
  const row = (sign, label, value) => value && h("div", { class: "prow" }, icon(sign), h("span", null, label), h("span", { class: "end", dir: "auto" }, value));
  const write = () => {
    dialog.close();
    go(model.client.chatWith(userId).id);
  };
  const change = () => {
    dialog.close();
    openGroupNickname(model, groupId);
  };
  const dialog = openDialog({
    title: t("member_profile"),
    body: [
      h("div", { class: "pgroup" }, avatar(face, "s72"), h("h3", { class: "big", dir: "auto" }, face.name), h("p", null, model.presenceText(userId))),
      h(
        "div",
        { class: "cardlist" },
        row("edit", t("group_nickname"), groupNickname),
        row("shield", t("role_word"), t(`role_${role}`)),
        row("useradd", t("invited_by"), inviterId && inviterId !== userId ? model.people.name(inviterId) : ""),
        row("clock", t("member_since"), joinedAt > 0 ? fullTime(joinedAt) : ""),
        row("at", t("user_id"), h("code", null, userId)),
      ),
    ],
    footer: [button(t("close"), { onclick: () => dialog.close() }), isMe ? button(t("change_word"), { class: "primary", onclick: change }) : button(t("message"), { class: "primary", onclick: write })],
  });
}

/** @param {any} model @param {string} groupId */
export function openGroupNickname(model, groupId) {
  const name = field({ label: t("my_group_name"), help: t("my_group_name_help"), value: model.groups.me(groupId)?.groupNickname ?? "", attributes: { name: "group_nickname", maxlength: 64, autofocus: true, dir: "auto" } });
  const save = button(t("save"), { class: "primary" });
  save.addEventListener("click", () =>
    busyWhile(save, async () => {
      if (!(await trying(() => model.client.groups.updateMember(groupId, { groupNickname: name.input.value.trim() })))) return;
      dialog.close();
      model.groups.look(groupId);
    }),
  );
  const dialog = openDialog({ title: t("my_group_name"), body: [name.element], footer: [button(t("cancel"), { onclick: () => dialog.close() }), save] });
}
