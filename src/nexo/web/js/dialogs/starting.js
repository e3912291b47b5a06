/** Starting a conversation: write to a user, create a group, join one. */

import { busyWhile, openDialog } from "../components/dialog.js";
import { field, segmented } from "../components/field.js";
import { PeoplePicker } from "../components/picker.js";
import { toast } from "../components/toast.js";
import { button, h } from "../dom.js";
import { tellFailure } from "../failures.js";
import { t } from "../i18n.js";
import { go } from "../router.js";
import { errorText } from "../wording.js";

const GROUP_ID = /^g_[A-Za-z0-9]{12}$/;

/** @param {any} model */
export function openNewChat(model) {
  const picker = new PeoplePicker(model, {
    many: false,
    label: t("people"),
    onpick: (userId) => {
      dialog.close();
      go(model.client.chatWith(userId).id);
    },
  });
  const dialog = openDialog({ title: t("new_chat"), body: [picker.element] });
}

export const joinPolicies = () => /** @type {[string, string][]} */ ([
  ["open", t("join_open")],
  ["approval", t("join_approval")],
  ["invite", t("join_invite")],
]);

/** @param {any} model */
export function openCreateGroup(model) {
  const name = field({ label: t("group_name"), attributes: { maxlength: 128, autofocus: true } });
  const policy = segmented({ label: t("who_can_join"), options: joinPolicies(), value: "open" });
  const smallest = model.settings.min_create_members;
  const count = h("span", { class: "count", "aria-live": "polite" });
  const create = button(t("create"), { class: "primary" });
  const check = () => {
    const missing = smallest - 1 - picker.chosen.size;
    count.textContent = missing > 0 ? t("choose_more", { n: missing, m: smallest }) : t("n_chosen", { n: picker.chosen.size });
    const isReady = missing <= 0 && name.input.value.trim() !== "";
    create.setAttribute("aria-disabled", String(!isReady));
    return isReady;
  };
  const picker = new PeoplePicker(model, { many: true, label: t("members"), onchange: check });
  picker.field.removeAttribute("autofocus");
  name.input.addEventListener("input", check);
  create.addEventListener("click", () => {
    if (!check()) {
      if (!name.input.value.trim()) {
        name.setError(t("group_name_missing"));
        name.input.focus();
      }
      return;
    }
    busyWhile(create, async () => {
      try {
        const group = await model.client.groups.create({ name: name.input.value.trim(), memberIds: [...picker.chosen], joinPolicy: policy.value() });
        dialog.close();
        await model.groups.loadMine().catch(() => {});
        go(group.conversationId);
      } catch (error) {
        tellFailure(error);
      }
    });
  });
  check();
  const members = h("div", { class: "fieldset" }, h("span", { class: "lab" }, t("members")), picker.element);
  const dialog = openDialog({ title: t("create_group"), body: [name.element, policy.element, members], footer: [count, create] });
}

/** @param {any} model */
export function openJoinGroup(model) {
  const id = field({ label: t("group_id"), help: t("group_id_help"), attributes: { placeholder: "g_…", autocapitalize: "none", spellcheck: "false", maxlength: 14, autofocus: true } });
  const message = field({ label: t("join_message"), help: t("join_message_help"), attributes: { maxlength: 512 } });
  const join = button(t("join"), { class: "primary", type: "submit", form: "join-form" });
  const submit = (event) => {
    event.preventDefault();
    const groupId = id.input.value.trim();
    if (!GROUP_ID.test(groupId)) {
      id.setError(t("err_bad_group_id"));
      id.input.focus();
      return;
    }
    busyWhile(join, async () => {
      try {
        const { status } = await model.client.groups.join(groupId, message.input.value.trim() || undefined);
        dialog.close();
        if (status === "joined") {
          await model.groups.loadMine().catch(() => {});
          go(model.client.group(groupId).id);
        } else toast(t("join_pending"));
      } catch (error) {
        id.setError(error?.reason === "no_permission" ? t("join_only_invited") : errorText(error));
        id.input.focus();
      }
    });
  };
  const form = h("form", { id: "join-form", novalidate: true, onsubmit: submit }, id.element, message.element);
  const dialog = openDialog({ title: t("join_group"), body: [form], footer: [button(t("cancel"), { onclick: () => dialog.close() }), join] });
}
