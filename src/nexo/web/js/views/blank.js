/** What stands where a conversation would: the first steps on a fresh server, else a hint. */

import { toast } from "../components/toast.js";
import { askSignOut } from "../dialogs/account.js";
import { openCreateGroup, openJoinGroup, openNewChat } from "../dialogs/starting.js";
import { button, h, icon, mark } from "../dom.js";
import { shortName } from "../format.js";
import { rich, t } from "../i18n.js";

/** The page before the first message. @param {any} model */
export const isFresh = (model) => model.listLoaded && model.client.conversations.length === 0;

/** @param {any} model */
export const nameOf = (model) => model.me.nickname || model.userId;

/** @param {any} model */
export function blankView(model) {
  const fresh = isFresh(model);
  return h("main", { class: "blank", "aria-label": "Nexo", dataset: { fresh: fresh ? "yes" : "no", name: nameOf(model) } }, fresh ? firstSteps(model) : hint());
}

function hint() {
  const key = (...names) => h("span", null, names.map((name, at) => [at > 0 && " ", h("kbd", null, name)]));
  return h(
    "div",
    null,
    h("h2", null, t("nothing_open")),
    h("p", null, t("nothing_open_hint")),
    h("div", { class: "keys" }, key("Ctrl K"), h("span", null, t("key_find")), key("Alt ↑", "Alt ↓"), h("span", null, t("key_next")), key("?"), h("span", null, t("shortcuts"))),
  );
}

function firstSteps(model) {
  const name = nameOf(model);
  const address = location.origin;
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(address);
      toast(t("copied"));
    } catch {
      toast(t("copy_failed"), { bad: true });
    }
  };
  const step = (number, title, ...content) => h("li", null, h("span", { class: "n" }, String(number)), h("div", null, h("h2", null, title), content));
  return h(
    "div",
    { class: "steps" },
    mark(),
    h("h1", null, t("fresh_title", { name: shortName(name) })),
    h("p", null, t("fresh_text")),
    h(
      "ol",
      null,
      h("li", { class: "done" }, h("span", { class: "n" }, icon("check", "s")), h("div", null, h("h2", null, t("step_account")), h("p", null, rich("step_account_text", { id: h("strong", null, model.userId) })))),
      step(
        2,
        t("step_people"),
        h("p", null, rich("step_people_text", { command: h("code", null, "nexo user add") })),
        h("div", { class: "copy" }, h("code", null, address), button(t("copy"), { class: "quiet small", onclick: copy }, "copy")),
      ),
      step(
        3,
        t("step_say"),
        h("p", null, t("step_say_text", { n: model.settings.min_create_members })),
        h(
          "div",
          { class: "acts-row" },
          button(t("new_chat"), { class: "primary", onclick: () => openNewChat(model) }, "compose"),
          button(t("create_group"), { onclick: () => openCreateGroup(model) }, "users"),
          button(t("join_group"), { onclick: () => openJoinGroup(model) }, "useradd"),
        ),
      ),
    ),
    h("p", null, `${t("running_this")} `, h("a", { class: "link", href: "/admin" }, t("open_status"))),
    h("p", { class: "narrow-only" }, h("button", { type: "button", class: "link", onclick: () => askSignOut(model) }, t("sign_out"))),
  );
}
