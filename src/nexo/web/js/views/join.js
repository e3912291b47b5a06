/** Joining a group: by an invite link (`/j/<code>`), or at the address of a group one is not in. */

import { avatar } from "../components/avatar.js";
import { busyWhile } from "../components/dialog.js";
import { button, fill, h, icon } from "../dom.js";
import { tellFailure } from "../failures.js";
import { t } from "../i18n.js";
import { errorText } from "../wording.js";

const NAME_MS = 1000;

/**
 * The page of an invite link.
 * @param {any} model @param {string} code @param {(conversationId: string | null) => void} done
 */
export function joinPage(model, code, done) {
  const card = h("main", { class: "ringcard" });
  const later = button(t("not_now"), { class: "block quiet", onclick: () => done(null) });
  const failed = (text) => fill(card, h("span", { class: "badge-i" }, icon("useradd")), h("h2", null, text), later);
  const load = async () => {
    try {
      const group = await model.client.groups.linkInfo(code);
      await model.people.whenKnown(model.userId, NAME_MS);
      const open = () => done(model.client.group(group.groupId).id);
      const join = button(t(group.isMember ? "open_word" : "join_the_group"), { class: "primary block" });
      join.addEventListener("click", () =>
        busyWhile(join, async () => {
          if (group.isMember) return open();
          try {
            await model.client.groups.joinByCode(code);
            await model.groups.loadMine().catch(() => {});
            open();
          } catch (error) {
            failed(reason(error));
          }
        }),
      );
      fill(
        card,
        avatar({ id: group.groupId, name: group.name, avatar: group.avatar, isGroup: true }, "s96"),
        h("h2", { dir: "auto" }, group.name),
        h("p", null, t("n_members", { n: group.memberCount }), group.isMember && [h("br"), t("join_already")]),
        join,
        later,
        h("p", { class: "fine" }, t("join_fine", { name: model.me.nickname || model.userId })),
      );
      join.focus();
    } catch (error) {
      failed(reason(error));
    }
  };
  load();
  return h("div", { class: "joinpage" }, card);
}

function reason(error) {
  if (error?.reason === "link_expired") return t("join_expired");
  if (error?.reason === "group_full") return t("join_full");
  return errorText(error);
}

/** In the place of a chat. @param {any} model @param {string} groupId @param {() => void} joined */
export function joinCard(model, groupId, joined) {
  const info = model.groups.info(groupId);
  const name = info?.name || groupId;
  const policy = info?.joinPolicy ?? "";
  const isOver = info?.status > 0;
  const note = h("p", { role: "status" });
  const join = button(t(policy === "approval" ? "ask_to_join" : "join_the_group"), { class: "primary block" });
  join.addEventListener("click", () =>
    busyWhile(join, async () => {
      try {
        const { status } = await model.client.groups.join(groupId);
        if (status === "pending") {
          fill(note, t("join_pending"));
          join.remove();
          return;
        }
        await model.groups.loadMine().catch(() => {});
        joined();
      } catch (error) {
        if (error?.reason === "no_permission") fill(note, t("join_only_invited"));
        else tellFailure(error);
      }
    }),
  );
  const may = !isOver && (policy === "open" || policy === "approval");
  const about = [info?.memberCount && t("n_members", { n: info.memberCount }), info?.introduction].filter(Boolean).flatMap((text, at) => [at > 0 && h("br"), text]);
  return h(
    "main",
    { class: "chat joining", "aria-label": name },
    h("header", { class: "bar" }, h("span", { class: "narrow-only" }, h("a", { class: "iconbtn", href: "#/", "aria-label": t("back_to_list") }, icon("back"))), h("h1", { class: "t ell", tabindex: "-1" }, name)),
    h("div", { class: "joinpage" }, h("div", { class: "ringcard" }, avatar({ id: groupId, name, avatar: info?.avatar, isGroup: true }, "s96"), h("h2", { dir: "auto" }, name), h("p", null, about), note, may ? join : h("p", null, t(isOver ? "dismissed" : info ? "join_only_invited" : "err_group_not_found")))),
  );
}
