/** Settings, one section at a time: `#/settings/<section>`. Everything is saved at once, except names and passwords. */

import { avatar } from "../components/avatar.js";
import { busyWhile, confirmDialog, openDialog } from "../components/dialog.js";
import { field, segmented } from "../components/field.js";
import { toast } from "../components/toast.js";
import { askSignOut, openBlocked, openPassword, openProfile } from "../dialogs/account.js";
import { button, fill, h, icon, iconButton, pointerIsFine } from "../dom.js";
import { Endings } from "../emitter.js";
import { tellFailure, trying } from "../failures.js";
import { chooseHours, clock, fullTime, shownHours } from "../format.js";
import { currentLanguage, t } from "../i18n.js";
import { backTo } from "../layers.js";
import { notificationState, setNotifications } from "../notify.js";
import { choosePicture } from "../pictures.js";
import { look, remember, remembered, setLook, setTheme, theme } from "../prefs.js";
import { errorText } from "../wording.js";
import { canInstall, install } from "./prompts.js";

const SECTIONS = { account: "user", appearance: "sun", notifications: "bell", devices: "devices", language: "globe", storage: "download", install: "install", about: "info" };
const EXPORT_LOOK_MS = 1000;
const SAMPLE_TIME = new Date(2020, 0, 1, 14, 36).getTime();

export class Settings {
  #ends = new Endings();
  #section = "";

  /** @param {any} model */
  constructor(model) {
    this.model = model;
    this.nav = h("nav", { class: "scroll", "aria-label": t("sections") });
    const back = iconButton("back", t("back_to_list"), { onclick: () => backTo("#/") });
    this.side = h("aside", { class: "side sections", "aria-label": t("settings") }, h("div", { class: "bar" }, back, h("h1", { class: "t" }, t("settings"))), this.nav);
    this.inner = h("div", { class: "inner" });
    this.bar = h("div", { class: "bar" });
    this.main = h("main", { class: "set" }, this.bar, h("div", { class: "scroll" }, this.inner));
    this.elements = [this.side, this.main];
    const again = () => this.#section === "account" && this.#draw();
    this.#ends.add(model.people.on("change", again), model.on("blocked", again));
  }

  end() {
    this.#ends.run();
  }

  /** @param {string} section none: the list of them, and on wide screens the first one */
  show(section) {
    const shown = section in SECTIONS ? section : "account";
    const isNew = shown !== this.#section;
    this.#section = shown;
    fill(
      this.nav,
      Object.entries(SECTIONS).map(([name, sign]) => h("a", { class: "prow", href: `#/settings/${name}`, "aria-current": name === shown ? "page" : null }, icon(sign), h("span", null, t(`set_${name}`)), h("span", { class: "end" }, icon("next", "s")))),
    );
    const title = t(`set_${shown}`);
    this.main.setAttribute("aria-label", title);
    const back = h("a", { class: "iconbtn", href: "#/settings", "aria-label": t("back_to_settings") }, icon("back"));
    fill(this.bar, h("span", { class: "narrow-only" }, back), h("h1", { tabindex: "-1" }, title));
    if (isNew) this.#draw();
    document.title = `${title} · Nexo`;
  }

  #draw() {
    const draw = { account: this.#account, appearance: this.#appearance, notifications: this.#notifications, devices: this.#devices, language: this.#language, storage: this.#storage, install: this.#install, about: this.#about }[this.#section];
    fill(this.inner, draw?.call(this));
  }

  #row(sign, text, end, act, danger = false) {
    return h("button", { type: "button", class: danger ? "prow danger" : "prow", onclick: act }, icon(sign), h("span", null, text), h("span", { class: "end" }, end, !danger && icon("next", "s")));
  }

  #radios(label, options, value, onchange) {
    const choice = segmented({ label, options, value, onchange });
    const [name, group] = choice.element.children;
    return h("div", { class: "prow" }, name, group);
  }

  // -- sections ------------------------------------------------------------------------------------------

  #account() {
    const { model } = this;
    const { me } = model;
    const name = me.nickname || me.userId;
    const change = () => choosePicture(model, async (address) => model.people.learn(await model.client.users.update({ avatar: address })));
    const without = async () => (await trying(async () => model.people.learn(await model.client.users.update({ avatar: "" })))) && this.#draw();
    return [
      h("div", { class: "pgroup" }, h("span", { class: "avedit" }, avatar({ id: me.userId, name, avatar: me.avatar }, "s96"), iconButton("camera", t("change_picture"), { onclick: change })), h("h2", null, name), h("p", { class: "mono" }, me.userId), me.avatar && button(t("remove_picture"), { class: "quiet small", onclick: without })),
      h(
        "div",
        { class: "cardlist" },
        this.#row("user", t("name"), name, () => openProfile(model)),
        this.#row("key", t("change_password"), "", () => openPassword(model)),
        this.#row("ban", t("blocked_people"), String(model.blocked.size), () => openBlocked(model)),
        this.#row("download", t("export_data"), "", () => openExport(model)),
      ),
      h("h2", null, t("privacy")),
      h("div", { class: "cardlist" }, this.#lastSeen()),
      h("h2", null, t("leaving")),
      h("div", { class: "cardlist" }, this.#row("leave", t("sign_out"), "", () => askSignOut(model), true), this.#row("trash", t("delete_account"), "", () => openDeleteAccount(model), true)),
    ];
  }

  #lastSeen() {
    const { model } = this;
    const options = /** @type {[string, string][]} */ (["everybody", "contacts", "nobody"].map((key) => [key, t(`last_seen_${key}`)]));
    const holder = h("div");
    const draw = (value) => fill(holder, this.#radios(t("last_seen_for"), options, value, (key) => trying(() => model.client.users.update({ privacy: { lastSeen: key } }))));
    draw("everybody");
    model.client.users.info().then((user) => draw(user.privacy?.lastSeen ?? "everybody")).catch(() => {});
    return holder;
  }

  #appearance() {
    const now = () => t("theme_now", { now: t(matchMedia("(prefers-color-scheme: dark)").matches ? "theme_dark_word" : "theme_light_word") });
    const options = /** @type {[string, string][]} */ (["system", "light", "dark"].map((key) => [key, t(`theme_is_${key}`)]));
    const sizes = /** @type {[string, string][]} */ (["small", "normal", "large"].map((key) => [key, t(`size_${key}`)]));
    const times = /** @type {[string, string][]} */ (["24", "12"].map((key) => [key, clock(SAMPLE_TIME, key)]));
    const retime = (key) => {
      chooseHours(key);
      this.model.emit("language", currentLanguage()); // everything is drawn again
    };
    return [
      h("h2", null, t("theme")),
      h("div", { class: "cardlist" }, this.#radios(t("theme"), options, theme(), (key) => setTheme(/** @type {any} */ (key)))),
      h("p", { class: "help" }, now()),
      h("h2", null, t("set_text")),
      h("div", { class: "cardlist" }, this.#radios(t("message_size"), sizes, look("size") ?? "normal", (key) => setLook("size", key === "normal" ? null : key)), this.#radios(t("time_format"), times, shownHours(), retime)),
      h("h2", null, t("set_writing")),
      h(
        "div",
        { class: "cardlist" },
        pointerIsFine() && this.#switch("enterSends", t("enter_sends"), t("enter_sends_help"), true),
        this.#switch("formatting", t("show_formatting"), "", false),
        this.#switch("smileys", t("smileys"), "", false),
      ),
      h("h2", null, t("set_motion")),
      h("div", { class: "cardlist" }, this.#toggle(t("less_motion"), t("less_motion_help"), look("motion") === "less", (on) => setLook("motion", on ? "less" : null))),
    ];
  }

  /** Something that this browser remembers. */
  #switch(key, text, help, isDefault) {
    const value = remembered(key) ?? isDefault;
    return this.#toggle(text, help, value, (on) => remember(key, on === isDefault ? null : on));
  }

  #toggle(text, help, value, act) {
    const flip = () => {
      const on = row.getAttribute("aria-checked") !== "true";
      row.setAttribute("aria-checked", String(on));
      act(on);
    };
    const row = h("button", { type: "button", class: "prow", role: "switch", "aria-checked": String(value), onclick: flip }, h("span", { class: "words" }, text, help && h("small", null, help)), h("span", { class: "end" }, h("span", { class: "switch", "aria-hidden": "true" })));
    return row;
  }

  #notifications() {
    const state = notificationState();
    const flip = async () => {
      await setNotifications(notificationState() !== "on", this.model);
      this.#draw();
    };
    const attributes = { type: "button", class: "prow", role: "switch", "aria-checked": String(state === "on"), "aria-disabled": state === "denied" ? "true" : null, onclick: flip };
    return [
      h("div", { class: "cardlist" }, h("button", attributes, icon("bell"), h("span", null, t("notifications")), h("span", { class: "end" }, h("span", { class: "switch", "aria-hidden": "true" })))),
      h("p", { class: "help" }, t(`notify_is_${state}`)),
      h("div", { class: "cardlist" }, this.#switch("sound", t("message_sound"), t("message_sound_help"), true)),
      state === "denied" && h("p", { class: "help" }, t("notify_allow")),
    ];
  }

  #devices() {
    const holder = h("div");
    this.#loadDevices(holder);
    return holder;
  }

  async #loadDevices(holder) {
    const { devices } = this.model.client;
    let list;
    try {
      list = await devices.list();
    } catch (error) {
      fill(holder, h("p", { class: "help" }, errorText(error)), button(t("try_again"), { class: "small", onclick: () => this.#loadDevices(holder) }));
      return;
    }
    const row = (one) => {
      const out = button(t("sign_out"), { class: "quiet small", "aria-label": t("sign_out_x", { name: platformName(one.platformId) }) });
      out.addEventListener("click", () => busyWhile(out, async () => (await trying(() => devices.revoke(one.sessionId))) && this.#loadDevices(holder)));
      const seen = one.current ? t("active_now") : t("last_active", { time: fullTime(one.lastSeenAt) });
      return h("div", { class: "dev" }, icon("devices"), h("span", { class: "ell" }, h("b", null, platformName(one.platformId)), h("small", null, [one.address, seen].filter(Boolean).join(" · "))), h("span", null, !one.current && out));
    };
    const others = list.filter((one) => !one.current);
    const all = button(t("sign_out_others"), { class: "danger" });
    all.addEventListener("click", () => busyWhile(all, async () => (await trying(() => devices.revokeOthers())) && this.#loadDevices(holder)));
    fill(
      holder,
      h("h2", null, t("this_device")),
      h("div", { class: "cardlist" }, list.filter((one) => one.current).map(row)),
      others.length > 0 && [h("h2", null, t("other_devices", { n: others.length })), h("div", { class: "cardlist" }, others.map(row)), h("p", { class: "help" }, t("devices_help")), h("p", null, all)],
    );
  }

  #language() {
    const options = /** @type {[string, string][]} */ ([["en", "English"], ["zh", "中文"]]);
    return h("div", { class: "cardlist" }, this.#radios(t("set_language"), options, currentLanguage(), (code) => this.model.emit("language", code)));
  }

  #storage() {
    const used = h("div", { class: "pad" });
    const look = async () => {
      const { usage = 0, quota = 0 } = (await navigator.storage?.estimate?.()) ?? {};
      const clear = button(t("free_space"));
      clear.addEventListener("click", () =>
        busyWhile(clear, async () => {
          await this.model.emit("forgetRecent");
          await look();
        }),
      );
      fill(used, h("p", null, t("storage_used", { a: sizeText(usage), b: sizeText(quota) })), h("p", null, clear), h("p", { class: "help" }, t("storage_kept")));
    };
    look().catch(() => {});
    return h("div", { class: "cardlist" }, used);
  }

  #install() {
    const isApp = matchMedia("(display-mode: standalone)").matches;
    const go = button(t("install"), { class: "primary", onclick: () => install().then(() => this.#draw()) });
    return [h("p", null, t("ask_install_text")), h("p", null, canInstall() ? go : h("span", { class: "help" }, t(isApp ? "install_done" : "install_by_browser")))];
  }

  #about() {
    const { version } = this.model.settings;
    return h("div", { class: "cardlist" }, h("div", { class: "prow" }, icon("info"), h("span", null, "Nexo"), h("span", { class: "end" }, version)), h("a", { class: "prow", href: "/admin" }, icon("gauge"), h("span", null, t("open_status")), h("span", { class: "end" }, icon("next", "s"))));
  }
}

const platformName = (id) => t(`platform_${id >= 1 && id <= 10 ? id : 5}`);

/** @param {number} bytes */
function sizeText(bytes) {
  const units = ["B", "KB", "MB", "GB"];
  const power = Math.min(units.length - 1, bytes > 0 ? Math.floor(Math.log10(bytes) / 3) : 0);
  return `${(bytes / 1000 ** power).toFixed(power > 1 ? 1 : 0)} ${units[power]}`;
}

function passwordField() {
  return field({ label: t("password"), type: "password", attributes: { autocomplete: "current-password", autofocus: true } });
}

/** @param {any} model */
function openExport(model) {
  const password = passwordField();
  const go = button(t("export_begin"), { class: "primary" });
  const state = h("p", { class: "small", role: "status" });
  const finish = async () => {
    for (;;) {
      const found = await model.client.account.exportStatus();
      state.textContent = t("export_messages", { n: found.messages });
      if (found.status === "too_large") throw Object.assign(new Error(), { reason: "server_busy" });
      if (found.status === "done") break;
      await new Promise((resolve) => setTimeout(resolve, EXPORT_LOOK_MS));
    }
    const address = URL.createObjectURL(await model.client.account.exportFile());
    h("a", { href: address, download: `nexo-${model.userId}.jsonl.gz` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
  };
  go.addEventListener("click", () =>
    busyWhile(go, async () => {
      try {
        await model.client.account.export({ password: password.input.value });
        await finish();
        dialog.close();
        toast(t("export_done"));
      } catch (error) {
        password.setError(error?.reason === "invalid_credentials" ? t("password_wrong") : errorText(error));
      }
    }),
  );
  const dialog = openDialog({ title: t("export_data"), body: [h("p", { class: "gap" }, t("export_text")), password.element, state], footer: [button(t("cancel"), { onclick: () => dialog.close() }), go] });
}

/** @param {any} model */
function openDeleteAccount(model) {
  const password = passwordField();
  const erase = /** @type {HTMLInputElement} */ (h("input", { type: "checkbox" }));
  const next = button(t("delete_account"), { class: "danger" });
  const act = async () => {
    try {
      await model.client.account.close({ password: password.input.value, eraseMessages: erase.checked });
      model.emit("closed");
    } catch (error) {
      if (error?.reason === "invalid_credentials") password.setError(t("password_wrong"));
      else tellFailure(error);
      return;
    }
    dialog.close();
  };
  next.addEventListener("click", () => confirmDialog({ icon: "trash", title: t("delete_account_title"), text: t("delete_account_text"), action: t("delete_account"), danger: true, act }));
  const dialog = openDialog({ title: t("delete_account"), body: [h("p", { class: "gap" }, t("delete_account_text")), password.element, h("label", { class: "check" }, erase, h("span", null, t("erase_messages")))], footer: [button(t("cancel"), { onclick: () => dialog.close() }), next] });
}
