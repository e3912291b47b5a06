/** What the live page shows, card by card, out of one answer of the server and the points of the last 15 minutes. */

import { h } from "../js/dom.js";
import { ends, lines, meter, roundUp, spark, stageBar } from "./charts.js";
import { figure, hasText, span, t } from "./texts.js";

const WARN = 0.75;
const BAD = 0.95;

const card = (classes, title, small, ...children) =>
  h("section", { class: `card ${classes}` }, h("h2", null, title, " ", small && h("small", null, small)), ...children);

function kpi(name, value, unit, points, now, classes = "") {
  return h(
    "section",
    { class: "card c3 kpi" },
    h("h2", null, name),
    h("div", { class: "v" }, value, h("small", null, unit)),
    spark(points, now, t("chart_label", { name, value: `${value} ${unit}` }), classes),
  );
}

const column = (points, field) => points.map((point) => [point.at, point[field]]);

export function figures(live, points) {
  const limit = live.connections_limit;
  const latest = points.at(-1);
  return [
    kpi(t("connections"), figure(live.connections, 0), limit ? t("of", { n: figure(limit, 0) }) : "", column(points, "connections"), live.now),
    kpi(t("saved"), figure(live.saved_per_s), t("per_second"), column(points, "saved_per_s"), live.now),
    kpi(t("ack_p99"), figure(live.sends.p99_ms ?? latest?.p99_ms ?? null), t("ms"), column(points, "p99_ms"), live.now),
    kpi(t("failed"), figure(live.errors_per_s), t("per_second"), column(points, "errors_per_s"), live.now, "bad"),
  ];
}

export function latency(live, points) {
  const top = roundUp(Math.max(1, ...points.map((point) => point.p99_ms ?? 0)));
  const series = ["p50", "p95", "p99"].map((name) => ({ points: column(points, `${name}_ms`), classes: `l${name.slice(1)}` }));
  const last = points.findLast((point) => point.p99_ms !== null) ?? { p50_ms: null, p95_ms: null, p99_ms: null };
  const shown = Object.fromEntries(["p50", "p95", "p99"].map((name) => [name, figure(last[`${name}_ms`])]));
  const names = ["p99", "p95", "p50"].map((name) => ({ text: `${name} ${shown[name]}`, value: last[`${name}_ms`] }));
  return card(
    "c7 lg",
    t("latency"),
    t("latency_small"),
    h(
      "div",
      { class: "plot" },
      h("div", { class: "y" }, ...[top, top / 2, 0].map((value) => h("span", null, figure(value)))),
      lines(series, live.now, top, t("latency_label", shown)),
      ends(names, top),
      h("div", { class: "x" }, ...[15, 10, 5].map((n) => h("span", null, t("minutes_ago", { n }))), h("span", null, t("now"))),
    ),
  );
}

export function stages(live) {
  const top = Math.max(0.1, ...live.stages.map((stage) => stage.p99_ms ?? 0)) * 1.05;
  const nums = (values) => h("span", { class: "nums" }, ...values.map((value) => h("span", null, value)));
  const rows = live.stages.map((stage) => {
    const shown = { p50: figure(stage.p50_ms), p95: figure(stage.p95_ms), p99: figure(stage.p99_ms) };
    const values = { p50: stage.p50_ms, p95: stage.p95_ms, p99: stage.p99_ms };
    return h(
      "div",
      null,
      h("span", null, h("b", null, t(stage.name)), h("span", { class: "sub" }, t(`${stage.name}_sub`))),
      stageBar(values, top, t("stage_label", { name: t(stage.name), ...shown })),
      nums([shown.p50, shown.p95, shown.p99]),
    );
  });
  return card(
    "c5 lg",
    t("stages"),
    t("stages_small"),
    h("div", { class: "stages" }, h("div", { class: "hd" }, h("span"), h("span"), nums(["p50", "p95", "p99"])), ...rows),
    h(
      "div",
      { class: "legend" },
      ...["p50", "p95", "p99"].map((name) => h("span", { class: name }, h("i"), name)),
      h("span", null, t("batch", { n: figure(live.batch_size) })),
    ),
  );
}

const named = (prefix, name, otherwise) => (hasText(prefix + name) ? t(prefix + name) : otherwise);

export function queues(live) {
  const cell = (text, classes = "") => h("td", classes ? { class: classes } : null, text);
  const rows = live.queues.map(({ name, length, limit }) => {
    const share = limit ? length / limit : 0;
    const level = share >= BAD ? "bad" : share >= WARN ? "warn" : "";
    return h(
      "tr",
      null,
      cell(named("q_", name, name)),
      cell(figure(length, 0), "r"),
      cell(limit === null ? "–" : figure(limit, 0), "dim"),
      h("td", null, meter(share, level)),
      cell(named("l_", name, ""), "dim opt"),
    );
  });
  const heads = [t("queue_head"), t("now_head"), t("limit_head"), t("fill_head"), t("at_limit_head")];
  const head = heads.map((text, i) => h("th", { class: i === 1 ? "r" : i === 4 ? "opt" : null, scope: "col" }, text));
  return card("c7 lg", t("queues"), t("queues_small"), table(head, rows));
}

const table = (head, rows) =>
  h("div", { class: "tblwrap", tabindex: "0", role: "region", "aria-label": t("table") }, h("table", { class: "tbl" }, head && h("thead", null, h("tr", null, ...head)), h("tbody", null, ...rows)));

export function reasons(live) {
  const most = Math.max(1, ...live.errors.map(({ count }) => count));
  const rows = live.errors
    .slice(0, 8)
    .map(({ name, count, ours }) =>
      h("li", null, h("code", { class: "ell" }, name), meter(count / most, ours ? "bad" : ""), h("span", { class: "r" }, figure(count, 0))),
    );
  const minutes = Math.max(1, Math.round(live.errors_s / 60));
  return card(
    "c5 lg",
    t("reasons"),
    minutes >= 59 ? t("reasons_hour") : t("reasons_minutes", { n: minutes }),
    rows.length ? h("ul", { class: "reasons" }, ...rows) : h("p", { class: "none" }, t("none_refused")),
    h("div", { class: "legend" }, h("span", null, t("caller_side")), h("span", null, t("server_side"))),
  );
}

export function instances(live, state) {
  const heads = ["instance", "state", "up_for", "connections", "messages_s", "cpu", "memory", "lag"];
  const head = heads.map((key, i) => h("th", { class: i >= 3 ? "r" : null, scope: "col" }, t(key)));
  const right = (text) => h("td", { class: "r" }, text);
  const rows = live.instances.map((one) => {
    const word = one.is_slow ? "slow" : live.instances.length === 1 ? state : "ready";
    return h(
      "tr",
      null,
      h("td", null, h("code", null, one.name)),
      h("td", null, tag(word)),
      h("td", { class: "dim" }, span(live.now - one.started_at)),
      right(figure(one.connections, 0)),
      right(figure(one.saved_per_s)),
      right(`${figure(one.cpu_share * 100, 0)} %`),
      right(`${figure(one.memory_bytes / 2 ** 20, 0)} MiB`),
      right(one.lag_ms === null ? "–" : `${figure(one.lag_ms)} ${t("ms")}`),
    );
  });
  return card("c12", t("instances"), t("answering", { n: live.instances.length }), table(head, rows));
}

export function tag(state, ...before) {
  const classes = { ready: "ok", slow: "warn", not_ready: "bad" }[state];
  return h("span", { class: `tag ${classes}` }, ...before, t(state));
}

export function dialects(live) {
  const most = Math.max(1, ...live.dialects.map(({ connections }) => connections));
  const rows = live.dialects.map(({ name, connections }) =>
    h("li", null, h("code", null, name), meter(connections / most), h("span", { class: "r" }, figure(connections, 0))),
  );
  const small = t("dialects_small", { n: figure(live.users_online, 0) });
  return card("c6", t("dialects"), small, h("ul", { class: "reasons" }, ...rows));
}

export function delivery(live) {
  const { p50_ms: p50, p99_ms: p99 } = live.deliveries;
  const row = (text, value) => h("tr", null, h("td", null, text), h("td", { class: "r" }, value));
  const times = p99 === null ? "–" : `${figure(p50)} / ${figure(p99)} ${t("ms")}`;
  const rows = [
    row(t("delivered_in"), times),
    row(t("not_taken"), figure(live.dropped, 0)),
    row(t("resyncs"), figure(live.resyncs, 0)),
    row(t("late"), figure(live.late, 0)),
  ];
  return card("c6", t("delivery"), t("delivery_small"), table(null, rows));
}

/** @returns {HTMLElement | null} nothing where it is off */
export function twoPhase(live) {
  const shown = live.two_phase;
  if (!shown) return null;
  const row = (text, value) => h("tr", null, h("td", null, text), h("td", { class: "r" }, value));
  const ms = (value) => (value === null ? "–" : `${figure(value)} ${t("ms")}`);
  const rows = [
    row(t("accepted_in"), ms(shown.accepted.p99_ms)),
    row(t("save_lag"), ms(shown.save_lag.p99_ms)),
    row(t("not_saved_yet"), figure(shown.waiting, 0)),
    row(t("dead_letters"), figure(shown.dead, 0)),
    row(t("two_phase_failures"), figure(shown.failures, 0)),
  ];
  return card("c6", t("two_phase"), t("delivery_small"), table(null, rows));
}

/** Why it is not simply fine, in a sentence. */
export function why(status) {
  if (status.state === "not_ready") return h("p", { class: "why bad", role: "alert" }, status.reason);
  if (!status.slow.length) return null;
  const what = status.slow.map((name) =>
    name === "canary" || name === "loop" ? t(`slow_${name}`) : t("slow_queue", { name: named("q_", name, name) }),
  );
  return h("p", { class: "why", role: "status" }, t("slow_because", { what: what.join(", ") }));
}
