/** The menu of the person who is signed in: profile, password, how the page looks and speaks, signing out. */

import { avatar } from "../components/avatar.js";
import { busyWhile, confirmDialog, openDialog } from "../components/dialog.js";
import { field } from "../components/field.js";
import { toast } from "../components/toast.js";
import { button, fill, h, icon, isNarrow } from "../dom.js";
import { tellFailure, trying } from "../failures.js";
import { currentLanguage, t } from "../i18n.js";
import { goPage } from "../router.js";
import { errorText } from "../wording.js";
import { openShortcuts } from "./shortcuts.js";

/** @param {any} model @returns {import("../components/menu.js").MenuItem[]} */
export function accountMenu(model) {
  const other = currentLanguage() === "zh" ? "en" : "zh";
  const asked = model.contacts.received.length;
  return [
    { icon: "user", text: t("profile"), end: model.userId, act: () => goPage("settings", "account") },
    { icon: "users", text: t("contacts"), end: asked > 0 ? String(asked) : "", act: () => goPage("contacts") },
    { icon: "settings", text: t("settings"), act: () => goPage("settings", isNarrow() ? "" : "appearance") },
    "line",
    { icon: "globe", text: other === "zh" ? "中文" : "English", act: () => model.emit("language", other) },
    { icon: "keyboard", text: t("shortcuts"), keys: "?", act: () => openShortcuts() },
    "line",
    { icon: "leave", text: t("sign_out"), act: () => askSignOut(model) },
  ];
}

/** @param {any} model */
export function openProfile(model) {
  const me = model.me;
  const name = field({ label: t("name"), help: t("name_help"), value: me.nickname, attributes: { maxlength: 128, autofocus: true } });
  const save = button(t("save"), { class: "primary" });
  save.addEventListener("click", () =>
    busyWhile(save, async () => {
      const ok = await trying(async () => {
        const user = await model.client.users.update({ nickname: name.input.value.trim() });
        model.people.learn(user);
      });
      if (ok) {
        dialog.close();
        toast(t("profile_saved"));
      }
    }),
  );
  const dialog = openDialog({ title: t("profile"), body: [name.element], footer: [button(t("cancel"), { onclick: () => dialog.close() }), save] });
}

/** @param {any} model */
export function openPassword(model) {
  const shortest = model.settings.min_password_length;
  const old = field({ label: t("password_now"), type: "password", attributes: { autocomplete: "current-password", autofocus: true } });
  const fresh = field({ label: t("password_new"), type: "password", help: t("password_help", { n: shortest }), attributes: { autocomplete: "new-password", maxlength: 128 } });
  const save = button(t("change_password"), { class: "primary", type: "submit", form: "password-form" });
  const submit = (event) => {
    event.preventDefault();
    if ([...fresh.input.value].length < shortest) {
      fresh.setError(t("password_help", { n: shortest }));
      fresh.input.focus();
      return;
    }
    busyWhile(save, async () => {
      try {
        await model.client.changePassword({ oldPassword: old.input.value, newPassword: fresh.input.value });
        dialog.close();
        toast(t("password_changed"));
      } catch (error) {
        if (error?.reason === "invalid_credentials") {
          old.setError(t("password_wrong"));
          old.input.focus();
        } else fresh.setError(errorText(error));
      }
    });
  };
  const user = h("input", { type: "text", name: "username", autocomplete: "username", value: model.userId, hidden: true });
  const form = h("form", { id: "password-form", novalidate: true, onsubmit: submit }, user, old.element, fresh.element);
  const dialog = openDialog({ title: t("change_password"), body: [form, h("p", { class: "small" }, t("password_note"))], footer: [button(t("cancel"), { onclick: () => dialog.close() }), save] });
}

/** @param {any} model */
export function openBlocked(model) {
  const list = h("ul", { class: "requests" });
  const draw = () => {
    const ids = [...model.blocked];
    fill(
      list,
      ids.length === 0 && h("li", { class: "dim" }, t("nobody_blocked")),
      ids.map((userId) => {
        const name = model.people.name(userId);
        const undo = button(t("unblock"), { class: "small", "aria-label": t("unblock_x", { name }), onclick: () => trying(() => model.block(userId, false)) });
        return h("li", { class: "request" }, avatar(model.personFace(userId), "s36"), h("span", { class: "ell" }, h("span", { class: "name" }, name), h("span", { class: "sub" }, userId)), undo);
      }),
    );
  };
  const ends = [model.on("blocked", draw), model.people.on("change", draw)];
  draw();
  openDialog({ title: t("blocked_people"), body: [list], onclose: () => ends.forEach((end) => end()) });
}

/** @param {any} model */
export function askSignOut(model) {
  const waiting = model.waiting;
  const signOut = () => model.emit("signout");
  if (waiting === 0) return signOut();
  return confirmDialog({ icon: "leave", title: t("sign_out_title"), text: t("sign_out_text", { n: waiting }), action: t("sign_out"), danger: true, act: signOut });
}

/** The window lost its place to another one. @param {any} model @param {{reason: string, at: string}} what */
export function openElsewhere(model, what) {
  const n = model.waiting;
  const isTab = what.reason === "replaced";
  const text = [t(isTab ? "elsewhere_tab" : "elsewhere_text", { time: what.at }), n > 0 && t("unsent_kept", { n })].filter(Boolean).join(" ");
  const useHere = button(t("use_here"), {
    class: "primary block",
    autofocus: true,
    onclick: () => {
      element.close();
      model.client.connect().catch(tellFailure);
    },
  });
  const out = button(t("sign_out"), {
    class: "block",
    onclick: () => {
      element.close();
      askSignOut(model);
    },
  });
  const element = /** @type {HTMLDialogElement} */ (
    h(
      "dialog",
      { class: "dialog alert center", role: "alertdialog", "aria-labelledby": "elsewhere-title", "aria-describedby": "elsewhere-text" },
      h("div", { class: "body" }, h("span", { class: "badge-i" }, icon("devices")), h("h2", { id: "elsewhere-title" }, t(isTab ? "elsewhere_tab_title" : "elsewhere_title")), h("p", { id: "elsewhere-text" }, text)),
      h("footer", null, out, useHere),
    )
  );
  element.addEventListener("cancel", (event) => event.preventDefault()); // there is nothing behind it to go back to
  element.addEventListener("close", () => element.remove());
  document.body.append(element);
  element.showModal();
  return element;
}

