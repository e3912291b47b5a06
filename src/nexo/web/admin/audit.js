/** The audit log: what administrators and keys have done. It cannot be changed here. */

import { button, fill, h } from "../js/dom.js";
import { card, failure, searchField, table, when } from "./parts.js";
import { t } from "./texts.js";

/** @param {{call: any, header: HTMLElement, body: HTMLElement}} section */
export function auditSection({ call, header, body }) {
  let entries = [];
  let target = "";
  const load = async (before) => {
    try {
      const page = await call("GET", `/server/audit?limit=50${before ? `&before=${before}` : ""}${target ? `&target=${encodeURIComponent(target)}` : ""}`);
      entries = before ? [...entries, ...page.entries] : page.entries;
      const rows = entries.map((entry) => [when(entry.at), entry.actor, entry.act, h("span", { class: "mono" }, entry.target), h("span", { class: "whytext" }, detailOf(entry.detail))]);
      fill(body, card(t("section_audit"), table([t("time"), t("actor"), t("act"), t("target"), t("detail")], rows), page.has_more && button(t("more"), { class: "small", onclick: () => load(page.next_before) })));
    } catch (error) {
      fill(body, failure(error));
    }
  };
  header.append(searchField(t("find_target"), (text) => ((target = text), load(0))));
  load(0);
}

const detailOf = (detail) => (typeof detail === "string" ? detail : Object.entries(detail ?? {}).map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`).join(", "));
