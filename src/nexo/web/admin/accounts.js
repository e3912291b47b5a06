/** Users and groups: found, looked at, disabled and enabled, signed out, given a new password. */

import { button, fill, h } from "../js/dom.js";
import { askReason, card, factList, failure, searchField, table, when } from "./parts.js";
import { t } from "./texts.js";

const path = encodeURIComponent;

/** @param {{call: any, header: HTMLElement, body: HTMLElement}} section */
export function userSection({ call, header, body }) {
  const list = h("div");
  const side = h("div", { "aria-live": "polite" });
  const open = async (userId) => {
    try {
      const user = await call("GET", `/server/users/${path(userId)}`);
      fill(side, userCard(call, user, () => open(userId)));
    } catch (error) {
      fill(side, card(userId, failure(error)));
    }
  };
  const search = async (q) => {
    if (!q) return fill(list, h("p", { class: "help" }, t("users_hint")));
    let users = [];
    try {
      ({ users } = await call("GET", `/user/search?q=${path(q)}`));
    } catch {
      // a server without looking around: by the exact id, then
    }
    if (users.length === 0) {
      try {
        users = [await call("GET", `/server/users/${path(q)}`)];
      } catch (error) {
        fill(list, failure(error));
        return;
      }
    }
    const rows = users.map((user) => [h("span", null, user.nickname || user.user_id, h("span", { class: "sub mono" }, user.user_id)), when(user.created_at)]);
    fill(list, table([t("user"), t("created")], rows, (at) => open(users[at].user_id)));
  };
  header.append(searchField(t("find_user"), search));
  fill(body, h("div", { class: "cols" }, card(t("section_users"), list), side));
  search("");
}

function userCard(call, user, again) {
  const id = user.user_id;
  const name = user.nickname || id;
  const done = h("div", { role: "status" });
  const run = (work) => async () => {
    try {
      await work();
      again();
    } catch (error) {
      fill(done, failure(error));
    }
  };
  const disable = () => askReason({ title: t("disable_x", { name }), text: t("disable_text"), action: t("disable"), act: async (reason) => again(await call("POST", `/server/users/${path(id)}/disable`, { reason })) });
  const signOut = () => askReason({ title: t("sign_out_x", { name }), text: t("sign_out_text"), action: t("sign_out_everywhere"), reason: false, act: async () => fill(done, t("ended_n", { n: (await call("POST", "/server/sessions/revoke", { user_id: id })).revoked })) });
  const reset = async () => {
    try {
      const { code, expires_at: until } = await call("POST", `/server/users/${path(id)}/password_reset`, {});
      fill(done, h("p", null, t("reset_once")), h("p", { class: "mono" }, code), h("p", { class: "help" }, until ? when(until) : ""));
    } catch (error) {
      fill(done, failure(error));
    }
  };
  const messages = h("div");
  const look = async () => {
    try {
      const found = await call("GET", `/server/users/${path(id)}/messages?limit=20`);
      const rows = found.messages.map((message) => [when(message.send_at), h("span", { class: "mono" }, message.server_msg_id), typeof message.content === "string" ? message.content : JSON.stringify(message.content)]);
      fill(messages, table([t("time"), t("message"), t("content")], rows));
    } catch (error) {
      fill(messages, failure(error));
    }
  };
  return card(
    name,
    factList([[t("user_id"), h("span", { class: "mono" }, id)], [t("created"), when(user.created_at)], [t("last_seen"), user.last_seen_at ? when(user.last_seen_at) : null], [t("state"), user.deleted ? t("deleted") : user.disabled ? t("disabled_because", { reason: user.disabled_reason || "–" }) : t("active")]]),
    h(
      "div",
      { class: "buttons" },
      user.disabled ? button(t("enable"), { onclick: run(() => call("POST", `/server/users/${path(id)}/enable`, {})) }) : button(t("disable"), { class: "danger", onclick: disable }),
      button(t("sign_out_everywhere"), { onclick: signOut }),
      button(t("reset_password"), { onclick: reset }),
      button(t("show_messages"), { onclick: look }),
    ),
    done,
    messages,
    h("p", { class: "help" }, t("logged")),
  );
}

/** @param {{call: any, header: HTMLElement, body: HTMLElement}} section */
export function groupSection({ call, header, body }) {
  const place = h("div");
  const search = async (id, status) => {
    if (!id) return fill(place, h("p", { class: "help" }, t("groups_hint")));
    try {
      const group = await call("GET", `/group/info?group_id=${path(id)}`);
      fill(place, groupCard(call, { ...group, status: status ?? group.status }, (changed) => search(id, changed)));
    } catch (error) {
      fill(place, failure(error));
    }
  };
  header.append(searchField(t("find_group"), search));
  fill(body, place);
  search("");
}

/** Who is not in a group does not see its state: it is known after something was done here. */
function groupCard(call, group, again) {
  const name = group.name || group.group_id;
  const change = async (act, body, status) => {
    await call("POST", `/server/groups/${path(group.group_id)}/${act}`, body);
    again(status);
  };
  const disable = () => askReason({ title: t("disable_x", { name }), text: t("disable_group_text"), action: t("disable"), act: (reason) => change("disable", { reason }, 2) });
  const enable = () => askReason({ title: t("enable_x", { name }), text: t("enable_group_text"), action: t("enable"), reason: false, act: () => change("enable", {}, 0) });
  return card(
    name,
    factList([[t("group_id"), h("span", { class: "mono" }, group.group_id)], [t("owner"), group.owner_id], [t("members"), group.member_count], [t("created"), group.created_at ? when(group.created_at) : null], [t("state"), group.status === undefined ? null : t(`group_state_${group.status}`)]]),
    h("div", { class: "buttons" }, group.status !== 2 && button(t("disable"), { class: "danger", onclick: disable }), group.status !== 0 && button(t("enable"), { onclick: enable })),
    h("p", { class: "help" }, t("logged")),
  );
}
