/** Where a message is: accepted, saved, pushed, delivered, read; and for each receiver where it stopped, and why. Never its text. */

import { fill, h, icon } from "../js/dom.js";
import { card, factList, failure, searchField, table, when } from "./parts.js";
import { t } from "./texts.js";

const STEPS = ["accepted", "saved", "pushed", "delivered", "read"];
const REACHED = { read: 5, delivered: 4, pushed: 3, sender: 5 };

/** @param {{call: any, header: HTMLElement, body: HTMLElement}} section */
export function traceSection({ call, header, body }) {
  const find = async (id) => {
    if (!id) return fill(body, h("p", { class: "help" }, t("trace_hint")));
    try {
      fill(body, found(await call("GET", `/admin/trace?server_msg_id=${encodeURIComponent(id)}`)));
    } catch (error) {
      fill(body, failure(error));
    }
  };
  header.append(searchField(t("trace_field"), find));
  find("");
}

function found(trace) {
  const { message, receivers, instances } = trace;
  const pushedAt = Math.min(...instances.map((one) => one.pushed_at).filter((at) => at > 0), Infinity);
  const all = trace.receiver_count;
  const steps = [
    [when(message.accepted_at), "all"],
    [when(message.saved_at), "all"],
    [pushedAt < Infinity ? when(pushedAt) : t("unknown"), pushedAt < Infinity ? "all" : "part"],
    [t("n_of_m", { n: trace.delivered_count, m: all }), part(trace.delivered_count, all)],
    [t("n_of_m", { n: trace.read_count, m: all }), part(trace.read_count, all)],
  ];
  const way = h("ol", { class: "trace" }, STEPS.map((name, at) => h("li", { class: steps[at][1] === "all" ? null : steps[at][1] }, h("span", { class: "n" }, icon(steps[at][1] === "no" ? "clock" : "check", "s")), h("b", null, t(`step_${name}`)), h("span", null, steps[at][0]))));
  const rows = receivers.map((one) => [h("span", null, one.user_id), bar(one.state), h("span", { class: one.state in REACHED ? "whytext" : "whytext why" }, t(`trace_${one.state}`)), one.connections.map((link) => h("span", { class: "sub" }, `${link.device_id || link.conn_id} · ${t(`result_${link.result}`)}`))]);
  return [
    card(t("way"), way, h("p", { class: "help" }, t("read_is_cursor"))),
    card(t("message"), factList([[t("message"), h("span", { class: "mono" }, message.server_msg_id)], [t("client_id"), h("span", { class: "mono" }, message.client_msg_id)], [t("conversation"), h("span", { class: "mono" }, message.conversation_id)], [t("seq"), message.seq], [t("author"), message.sender_id], [t("recalled"), message.recalled_at ? when(message.recalled_at) : null]])),
    card(t("receivers"), table([t("user"), t("way"), t("why"), t("connections_head")], rows)),
    card(t("instances_head"), table([t("instance"), t("answered"), t("remembers_since")], instances.map((one) => [one.instance, t(one.answered ? "yes" : "no"), when(one.remembers_since)]))),
  ];
}

const part = (count, all) => (count >= all ? "all" : count > 0 ? "part" : "no");

/** Five steps; the amber one is where it stopped. */
function bar(state) {
  const reached = REACHED[state] ?? 2;
  return h("span", { class: "step5", role: "img", "aria-label": t("steps_of_5", { n: reached }) }, STEPS.map((_, at) => h("i", { class: at < reached ? null : at === reached ? "stop" : "no" })));
}
