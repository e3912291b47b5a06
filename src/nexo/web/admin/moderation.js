/** Reports of users, and the originals of messages that were recalled or edited. Opening either is written to the audit log. */

import { button, fill, h } from "../js/dom.js";
import { askReason, card, factList, failure, searchField, table, when } from "./parts.js";
import { t } from "./texts.js";

const path = encodeURIComponent;
const text = (content) => (typeof content === "string" ? content : JSON.stringify(content));

/** @param {{call: any, header: HTMLElement, body: HTMLElement}} section */
export function moderationSection({ call, header, body }) {
  const list = h("div");
  const side = h("div", { "aria-live": "polite" });
  let state = "open";
  const load = async () => {
    try {
      const { reports } = await call("GET", `/server/reports?state=${state}`);
      const rows = reports.map((report) => [when(report.created_at), h("span", null, report.reason, h("span", { class: "sub" }, t("by_about", { by: report.reporter_id, about: report.sender_id })))]);
      fill(list, chooser(), reports.length > 0 ? table([t("time"), t("reason")], rows, (at) => fill(side, reportCard(call, reports[at], load))) : h("p", { class: "help" }, t("no_reports")));
    } catch (error) {
      fill(list, chooser(), failure(error));
    }
  };
  const chooser = () =>
    h("div", { class: "buttons" }, ["open", "resolved"].map((name) => button(t(`reports_${name}`), { class: "small", "aria-pressed": String(name === state), onclick: () => ((state = name), load()) })));
  header.append(searchField(t("find_message"), (id) => id && original(call, id, side)));
  fill(body, h("div", { class: "cols" }, card(t("reports"), list), side));
  load();
}

function reportCard(call, report, again) {
  const done = h("div");
  const resolve = () => askReason({ title: t("resolve"), text: t("resolve_text"), action: t("resolve"), act: async (resolution) => again(await call("POST", `/server/reports/${path(report.report_id)}/resolve`, { resolution })) });
  const recall = () => askReason({ title: t("recall_x"), text: t("recall_text"), action: t("recall"), reason: false, act: async () => again(await call("POST", `/server/messages/${path(report.server_msg_id)}/recall`, {})) });
  return card(
    t("report"),
    factList([[t("reason"), report.reason], [t("reporter"), report.reporter_id], [t("author"), report.sender_id], [t("conversation"), h("span", { class: "mono" }, report.conversation_id)], [t("message"), h("span", { class: "mono" }, report.server_msg_id)], [t("resolved"), report.resolved_at ? `${when(report.resolved_at)}, ${report.resolved_by}: ${report.resolution}` : null]]),
    report.message && h("p", { class: "orig" }, text(report.message.content)),
    report.context?.length > 0 && h("details", null, h("summary", null, t("context")), report.context.map((message) => h("p", { class: "orig" }, h("b", null, `${message.sender_id}: `), text(message.content)))),
    h("div", { class: "buttons" }, !report.resolved_at && button(t("resolve"), { class: "primary", onclick: resolve }), button(t("recall"), { class: "danger", onclick: recall }), button(t("show_original"), { onclick: () => original(call, report.server_msg_id, done) })),
    h("p", { class: "help" }, t("originals_logged")),
    done,
  );
}

async function original(call, id, place) {
  try {
    const { message, versions } = await call("GET", `/server/messages/${path(id)}`);
    fill(
      place,
      card(
        t("original"),
        factList([[t("author"), message.sender_id], [t("time"), when(message.send_at)], [t("conversation"), h("span", { class: "mono" }, message.conversation_id)], [t("seq"), message.seq]]),
        versions.map((version) => [h("p", { class: "help" }, `${t(`cause_${version.cause}`)} · ${when(version.replaced_at)} · ${version.replaced_by}`), h("p", { class: "orig" }, h("del", null, text(version.content)))]),
        h("p", { class: "orig" }, message.status === 0 ? h("ins", null, text(message.content)) : t("blank")),
        h("p", { class: "help" }, t("originals_logged")),
      ),
    );
  } catch (error) {
    fill(place, card(id, failure(error)));
  }
}
