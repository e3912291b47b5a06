/** The texts of the live page. A text may have `{names}` for values. */

import { remember, remembered } from "../js/prefs.js";
import * as more from "./console-texts.js";

const en = {
  title: "Live status",
  ready: "Ready",
  slow: "Slow",
  not_ready: "Not ready",
  canary: "Canary stored and delivered in {ms} ms",
  updated: "Updated {time}",
  stale: "No answer since {time}",
  pause: "Pause",
  resume: "Resume",
  sign_out: "Sign out",
  other_language: "中文",
  sign_in: "Sign in",
  sign_in_hint: "For administrators of {host}",
  user_id: "User ID",
  password: "Password",
  refused: "The user ID or the password is wrong.",
  no_permission: "This account is not an administrator's. `nexo user admin NAME` makes it one.",
  too_many: "Too many tries. Wait a minute.",
  unreachable: "The server does not answer.",
  connections: "Connections",
  of: "of {n}",
  saved: "Messages saved",
  per_second: "per second",
  ack_p99: "Saved ACK, p99",
  ms: "ms",
  failed: "Refused or failed",
  latency: "Saved ACK latency",
  latency_small: "ms, last 15 minutes",
  stages: "Stages of one send",
  stages_small: "ms, last minute",
  queue: "Queue",
  queue_sub: "wait for a batch",
  write: "Write",
  write_sub: "commit",
  ack: "Ack",
  ack_sub: "to the sender",
  push: "Push",
  push_sub: "to receivers",
  batch: "Batch size {n}",
  queues: "Queues",
  queues_small: "now, of limit",
  queue_head: "Queue",
  now_head: "Now",
  limit_head: "Limit",
  fill_head: "Fill",
  at_limit_head: "At the limit",
  reasons: "Refused or failed, by reason",
  reasons_hour: "last hour",
  reasons_minutes: "last {n} min",
  none_refused: "Nothing was refused and nothing failed.",
  caller_side: "Grey: the caller’s side",
  server_side: "Red: the server’s side",
  instances: "Instances",
  answering: "{n} answering",
  instance: "Instance",
  state: "State",
  up_for: "Up for",
  messages_s: "Messages/s",
  cpu: "CPU",
  memory: "Memory",
  lag: "Loop lag",
  dialects: "Connections by dialect",
  dialects_small: "now, {n} users online",
  delivery: "Delivery",
  delivery_small: "last minute",
  delivered_in: "Saved to delivered, p50 / p99",
  not_taken: "Pushes not taken",
  resyncs: "RESYNC sent",
  late: "Sends refused as late",
  two_phase: "Two-phase",
  accepted_in: "Accepted latency, p99",
  save_lag: "Save lag, p99",
  not_saved_yet: "Accepted, not saved",
  dead_letters: "Dead letters (nexo streams)",
  two_phase_failures: "Failures",
  minutes_ago: "−{n} min",
  now: "now",
  chart_label: "{name}, last 15 minutes, now {value}",
  latency_label: "Acknowledgement latency: p50 {p50}, p95 {p95}, p99 {p99} milliseconds",
  stage_label: "{name}: p50 {p50} ms, p95 {p95} ms, p99 {p99} ms",
  slow_because: "Slow: {what}",
  slow_canary: "the canary takes long",
  slow_loop: "the event loop is late",
  slow_queue: "the queue “{name}” is three quarters full",
  q_sends: "Waiting to be written",
  q_cursors: "Read and delivered cursors",
  q_blocked: "Connections over high water",
  q_audiences: "Pushes waiting for a member list",
  q_requests: "Requests of connections",
  q_passwords: "Passwords to be checked",
  q_reads: "Reads waiting for a thread",
  q_lanes: "Conversations locked by other work",
  q_bus: "Bus to other instances",
  l_sends: "answers server_busy",
  l_cursors: "answers server_busy",
  l_blocked: "RESYNC, then close",
  l_audiences: "RESYNC",
  l_requests: "answers server_busy",
  l_passwords: "answers server_busy",
  l_bus: "RESYNC",
  days: "{d} d {h} h",
  hours: "{h} h {m} min",
  minutes: "{m} min",
};

const zh = {
  title: "实时状态",
  ready: "就绪",
  slow: "缓慢",
  not_ready: "未就绪",
  canary: "探测消息存储并送达用时 {ms} 毫秒",
  updated: "更新于 {time}",
  stale: "自 {time} 起无响应",
  pause: "暂停",
  resume: "继续",
  sign_out: "退出",
  other_language: "English",
  sign_in: "登录",
  sign_in_hint: "仅限 {host} 的管理员",
  user_id: "用户 ID",
  password: "密码",
  refused: "用户 ID 或密码不正确。",
  no_permission: "该账号不是管理员。可用 `nexo user admin NAME` 授权。",
  too_many: "尝试次数过多，请稍等一分钟。",
  unreachable: "服务器没有响应。",
  connections: "连接数",
  of: "上限 {n}",
  saved: "已保存消息",
  per_second: "每秒",
  ack_p99: "保存确认 p99",
  ms: "毫秒",
  failed: "被拒绝或失败",
  latency: "保存确认延迟",
  latency_small: "毫秒，最近 15 分钟",
  stages: "一次发送的各阶段",
  stages_small: "毫秒，最近一分钟",
  queue: "排队",
  queue_sub: "等待批次",
  write: "写入",
  write_sub: "提交",
  ack: "确认",
  ack_sub: "给发送者",
  push: "推送",
  push_sub: "给接收者",
  batch: "批次大小 {n}",
  queues: "队列",
  queues_small: "当前 / 上限",
  queue_head: "队列",
  now_head: "当前",
  limit_head: "上限",
  fill_head: "占用",
  at_limit_head: "到达上限时",
  reasons: "被拒绝或失败的原因",
  reasons_hour: "最近一小时",
  reasons_minutes: "最近 {n} 分钟",
  none_refused: "没有被拒绝或失败的请求。",
  caller_side: "灰色：调用方原因",
  server_side: "红色：服务器原因",
  instances: "实例",
  answering: "{n} 个在响应",
  instance: "实例",
  state: "状态",
  up_for: "运行时间",
  messages_s: "消息/秒",
  cpu: "CPU",
  memory: "内存",
  lag: "循环延迟",
  dialects: "各协议连接数",
  dialects_small: "当前，{n} 位用户在线",
  delivery: "送达",
  delivery_small: "最近一分钟",
  delivered_in: "保存到送达，p50 / p99",
  not_taken: "未能写入的推送",
  resyncs: "已发送 RESYNC",
  late: "因超时被拒绝的发送",
  two_phase: "两阶段确认",
  accepted_in: "接收延迟 p99",
  save_lag: "保存滞后 p99",
  not_saved_yet: "已接收未保存",
  dead_letters: "死信（nexo streams）",
  two_phase_failures: "失败",
  minutes_ago: "−{n} 分钟",
  now: "现在",
  chart_label: "{name}，最近 15 分钟，当前 {value}",
  latency_label: "确认延迟：p50 {p50}，p95 {p95}，p99 {p99} 毫秒",
  stage_label: "{name}：p50 {p50} 毫秒，p95 {p95} 毫秒，p99 {p99} 毫秒",
  slow_because: "缓慢：{what}",
  slow_canary: "探测消息用时过长",
  slow_loop: "事件循环滞后",
  slow_queue: "队列“{name}”已占用四分之三",
  q_sends: "等待写入的消息",
  q_cursors: "已读与送达游标",
  q_blocked: "超过高水位的连接",
  q_audiences: "等待成员列表的推送",
  q_requests: "连接的请求",
  q_passwords: "等待校验的密码",
  q_reads: "等待线程的读取",
  q_lanes: "在别处加锁的会话",
  q_bus: "发往其他实例",
  l_sends: "返回 server_busy",
  l_cursors: "返回 server_busy",
  l_blocked: "RESYNC，随后关闭",
  l_audiences: "RESYNC",
  l_requests: "返回 server_busy",
  l_passwords: "返回 server_busy",
  l_bus: "RESYNC",
  days: "{d} 天 {h} 小时",
  hours: "{h} 小时 {m} 分钟",
  minutes: "{m} 分钟",
};

export const TEXTS = { en: { ...more.en, ...en }, zh: { ...more.zh, ...zh } };

let language = "en";

export function useLanguage() {
  const chosen = remembered("language");
  const wanted = [chosen, ...(navigator.languages ?? []).map((code) => code.toLowerCase().split("-")[0])];
  language = wanted.find((code) => code in TEXTS) ?? "en";
  document.documentElement.lang = language === "zh" ? "zh-Hans" : language;
  document.title = `${t("title")} · Nexo`;
}

export function switchLanguage() {
  remember("language", language === "en" ? "zh" : "en");
  useLanguage();
}

export const locale = () => (navigator.languages ?? []).find((code) => code.toLowerCase().startsWith(language)) ?? language;

export const hasText = (key) => key in TEXTS.en;

/** @param {string} key @param {Record<string, string | number>} [values] */
export function t(key, values = {}) {
  const text = TEXTS[language][key] ?? TEXTS.en[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

/** A figure as people read it: few digits, and a dash where there is none. @param {number | null} value */
export function figure(value, digits = 1) {
  if (value === null || value === undefined) return "–";
  const rounded = Math.abs(value) >= 100 ? 0 : digits;
  return new Intl.NumberFormat(locale(), { maximumFractionDigits: rounded, minimumFractionDigits: 0 }).format(value);
}

/** @param {number} ms */
export function clock(ms) {
  return new Intl.DateTimeFormat(locale(), { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false }).format(ms);
}

/** How long something has lasted. @param {number} ms */
export function span(ms) {
  const minutes = Math.max(0, Math.floor(ms / 60000));
  const hours = Math.floor(minutes / 60);
  if (hours >= 24) return t("days", { d: Math.floor(hours / 24), h: hours % 24 });
  if (hours) return t("hours", { h: hours, m: minutes % 60 });
  return t("minutes", { m: minutes });
}
