/** One row of the log: a message in its state, an event, a day, or the line above what is new. */

import { avatar } from "../components/avatar.js";
import { fill, h, icon, iconButton } from "../dom.js";
import { clock, dayName, fullTime, hue, restText } from "../format.js";
import { t } from "../i18n.js";
import { isBigEmoji, tamed } from "../richtext.js";
import { CALL, callLine, contentLine, errorText, eventParts, isText, recalledLine, whoIs } from "../wording.js";
import { bodyOf, captionOf, isMedia, shots } from "./bodies.js";
import { reactionBar, reactionsLabel } from "./reactions.js";

const TICKS = { uploading: "clock", sending: "clock", accepted: "accepted", saved: "check", delivered: "checks", read: "read" };

/** The sign of a state, with its name. @param {string} state @param {boolean} isOffline */
export function tick(state, isOffline = false) {
  const label = state === "sending" && isOffline ? t("state_waiting") : t(`state_${state}`);
  return icon(TICKS[state] ?? "clock", state === "read" ? "s tick read" : "s tick", label);
}

/**
 * @typedef {{kind: "day", key: string, at: number}
 *   | {kind: "new", key: string, count: number}
 *   | {kind: "line", key: string, text: string}
 *   | {kind: "expired", key: string, count: number, message: any}
 *   | {kind: "event", key: string, message: any}
 *   | {kind: "message", key: string, message: any, messages: any[], isMine: boolean, isStart: boolean, isEnd: boolean, inGroup: boolean, name: string,
 *      state: string, note: string, role: string, isOffline: boolean, uploaded: number, isOpen: boolean, selected: boolean | null, minutes: number}} Row
 */

/** Fills the element of a row anew. @param {HTMLElement} element @param {Row} row @param {any} model */
export function drawRow(element, row, model) {
  if (row.kind === "day") return drawDivider(element, "day", dayName(row.at));
  if (row.kind === "new") return drawDivider(element, "newline", t("n_new_messages", { n: row.count }));
  if (row.kind === "line") return drawPlain(element, "event", row.text);
  if (row.kind === "expired") return drawPlain(element, "event", icon("timer", "s"), t("n_expired", { n: row.count }));
  if (row.kind === "event") return drawPlain(element, "event", eventParts(model, row.message));
  if (row.message.msgType === CALL) return drawCall(element, row, model);
  return drawMessage(element, row, model);
}

function drawPlain(element, classes, ...children) {
  element.className = classes;
  fill(element, ...children);
}

/** A list has only items in it, so what divides is inside one. */
function drawDivider(element, classes, text) {
  drawPlain(element, classes, h("span", { role: "separator", "aria-label": text }, text));
}

function drawCall(element, row, model) {
  const { message } = row;
  const call = message.content ?? {};
  const isMissed = !row.isMine && call.outcome !== "completed" && call.outcome !== "rejected";
  element.className = isMissed ? "msg callrec missed" : "msg callrec";
  element.tabIndex = -1;
  const words = callLine(call, row.isMine);
  element.setAttribute("aria-label", [words, clock(message.sendAt)].join(t("label_comma")));
  const again = model.mayCall && h("button", { type: "button", class: "link", tabindex: "-1", dataset: { act: "callback" } }, t("call_back"));
  fill(element, icon(call.kind === "video" ? "video" : "phone", "s"), h("b", null, words), timeOf(message), again);
}

function drawMessage(element, row, model) {
  const { message } = row;
  const isRecalled = message.status === 1;
  const classes = ["msg"];
  if (row.isMine) classes.push("me");
  if (row.isStart) classes.push("start");
  if (row.inGroup) classes.push("ingroup");
  if (message.important && !isRecalled) classes.push("mentioned");
  if (!isRecalled && !message.replyTo && isText(message) && isBigEmoji(String(message.content ?? ""))) classes.push("big");
  if (row.selected) classes.push("is-selected");
  element.className = classes.join(" ");
  if (element.tabIndex !== 0) element.tabIndex = -1;
  if (row.isMine && !isRecalled) element.dataset.state = row.state;
  else delete element.dataset.state;
  element.setAttribute("aria-label", labelOf(row, model));

  const hadActions = element.querySelector(":scope > .bubble > .acts") !== null;
  const bubble = isRecalled ? recalledBubble(row, model) : contentBubble(row, model);
  const face = row.inGroup && !row.isMine && row.isEnd && avatar({ ...model.personFace(message.senderId), online: false }, "s32");
  const box = row.selected !== null && h("span", { class: row.selected ? "box on" : "box", "aria-hidden": "true" }, icon("check", "s"));
  fill(element, box, face, bubble, !isRecalled && reactionBar(message), noteBelow(row, model));
  if (hadActions && row.selected === null) ensureActions(element); // it is still pointed at
  // The log is one stop of the Tab key: what is inside a message is reached by its menu.
  for (const inner of element.querySelectorAll("a, button")) inner.setAttribute("tabindex", "-1");
}

function labelOf(row, model) {
  const { message, messages } = row;
  const what = message.status === 1 ? recalledLine(model, message) : messages.length > 1 ? t("n_photos", { n: messages.length }) : contentLine(message);
  const caption = messages.length > 1 ? message.content?.text : "";
  const state = row.isMine && message.status !== 1 && row.state !== "failed" ? t(`state_${row.state}`) : "";
  const failed = row.state === "failed" ? t("state_failed") : "";
  const forwarded = message.forwardedFrom && t("forwarded_from", { name: whoIs(model, message.forwardedFrom.senderId) });
  const chosen = row.selected ? t("selected") : "";
  const parts = [chosen, row.name && !row.isMine ? row.name : whoIs(model, message.senderId), clock(message.sendAt), forwarded, what, caption, message.editedAt && t("edited"), reactionsLabel(message), state || failed];
  return parts.filter(Boolean).join(t("label_comma"));
}

function recalledBubble(row, model) {
  const { message } = row;
  return h("div", { class: "bubble recalled" }, icon("recall", "s"), h("span", null, recalledLine(model, message)), meta(row));
}

const timeOf = (message) => h("time", { datetime: new Date(message.sendAt).toISOString(), title: fullTime(message.sendAt) }, clock(message.sendAt));

function meta(row) {
  const { message } = row;
  const isRecalled = message.status === 1;
  const sign = row.isMine && !isRecalled && (row.state === "failed" ? icon("alert", "s bad", t("state_failed")) : tick(row.state, row.isOffline));
  const edited = message.editedAt && !isRecalled && h("em", { class: "edited", title: fullTime(message.editedAt) }, t("edited"));
  const rest = row.minutes > 0 && !isRecalled && h("span", { class: "expires", title: t("disappears_in", { t: restText(row.minutes * 60_000) }) }, icon("timer", "xs"), restText(row.minutes * 60_000));
  return h("span", { class: "meta" }, rest, edited, timeOf(message), sign);
}

function contentBubble(row, model) {
  const { message } = row;
  const from = row.inGroup && !row.isMine && row.isStart && fromLine(row);
  const forwarded = message.forwardedFrom && forwardedLine(message, model);
  const quote = quoteOf(message, model);
  if (row.messages.length > 1 || isMedia(message)) {
    const caption = captionOf(message, model) ?? foreignCaption(message);
    return h("div", { class: "bubble flush" }, from, forwarded, quote, shots(row, model), h("div", { class: caption ? "cap" : "cap bare" }, caption, meta(row)));
  }
  return h("div", { class: "bubble" }, from, forwarded, quote, bodyOf(row, model), meta(row));
}

/** A picture by its address has its words in its name. */
const foreignCaption = (message) => !message.content?.file_id && !message.outgoing && message.content?.name && h("span", { class: "text", dir: "auto" }, message.content.name);

function fromLine(row) {
  const id = row.message.senderId;
  const name = h("span", { class: "name-h", dir: "auto", dataset: { hue: hue(id) } }, row.name);
  return h("div", { class: "from" }, name, row.role && h("span", { class: "role" }, t(`role_${row.role}`)));
}

function forwardedLine(message, model) {
  const [before, after] = t("forwarded_from", { name: "\n" }).split("\n");
  return h("div", { class: "fwd" }, icon("forward"), h("span", null, before, h("b", { dir: "auto" }, whoIs(model, message.forwardedFrom.senderId)), after));
}

function quoteOf(message, model) {
  const answered = message.replyTo ?? null;
  if (!answered) return null;
  const quote = message.quote;
  const attributes = { type: "button", class: "quote", dataset: { quoted: answered } };
  if (!quote) return h("button", { ...attributes, disabled: true }, h("span", null, t("quote_gone")));
  const text = quote.text || contentLine({ msgType: quote.msgType, content: null });
  return h("button", attributes, h("b", { dir: "auto" }, whoIs(model, quote.senderId)), h("span", { dir: "auto" }, tamed(text)));
}

/** Inside a sentence. */
const lowered = (text) => text.charAt(0).toLowerCase() + text.slice(1);

function noteBelow(row, model) {
  const { message } = row;
  if (row.isMine && row.state === "failed") {
    const why = t("not_sent", { why: lowered(errorText(message.error)) });
    return h(
      "div",
      { class: "note bad" },
      h("span", null, why),
      h("button", { type: "button", class: "link", dataset: { act: "retry" } }, t("try_again")),
      h("button", { type: "button", class: "link", dataset: { act: "delete" } }, t("delete")),
    );
  }
  if (message.provisional) return h("div", { class: "note" }, icon("accepted", "s"), h("span", null, t("not_stored_yet")));
  if (row.isMine && model.wasFiltered(message.clientMsgId)) return h("div", { class: "note" }, t("words_replaced"));
  if (row.note) return h("div", { class: "note" }, h("button", { type: "button", class: "link", "aria-haspopup": "dialog", dataset: { act: "receipts" } }, row.note));
  return null;
}

/** The buttons beside a bubble, made when it is pointed at or focused. @param {HTMLElement} element */
export function ensureActions(element) {
  const bubble = element.querySelector(":scope > .bubble");
  if (!bubble || bubble.classList.contains("recalled") || bubble.querySelector(":scope > .acts") || element.querySelector(":scope > .box")) return;
  const part = (name, label, act, more = {}) => iconButton(name, label, { tabindex: "-1", dataset: { act }, ...more }, "s");
  bubble.append(
    h(
      "div",
      { class: "acts", role: "toolbar", "aria-label": t("message_actions") },
      part("smile", t("add_reaction"), "react", { "aria-haspopup": "dialog" }),
      part("reply", t("reply"), "reply"),
      part("more", t("more"), "more", { "aria-haspopup": "menu", "aria-expanded": "false" }),
    ),
  );
}
