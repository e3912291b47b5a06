/** One row of the log: a message in its state, an event, a day, or the line above what is new. */

import { avatar, isImageUrl } from "../components/avatar.js";
import { fill, h, icon, iconButton } from "../dom.js";
import { clock, dayName, fullTime, hue } from "../format.js";
import { t } from "../i18n.js";
import { richText } from "../richtext.js";
import { contentLine, errorText, eventParts, IMAGE, isText, recalledLine, whoIs } from "../wording.js";

const TICKS = { sending: "clock", accepted: "accepted", saved: "check", delivered: "checks", read: "read" };

/** The sign of a state, with its name. @param {string} state @param {boolean} isOffline */
export function tick(state, isOffline = false) {
  const label = state === "sending" && isOffline ? t("state_waiting") : t(`state_${state}`);
  return icon(TICKS[state] ?? "clock", state === "read" ? "s tick read" : "s tick", label);
}

/**
 * @typedef {{kind: "day", key: string, at: number}
 *   | {kind: "new", key: string, count: number}
 *   | {kind: "line", key: string, text: string}
 *   | {kind: "event", key: string, message: any}
 *   | {kind: "message", key: string, message: any, isMine: boolean, isStart: boolean, isEnd: boolean, inGroup: boolean,
 *      state: string, note: string, role: string, isOffline: boolean}} Row
 */

/** Fills the element of a row anew. @param {HTMLElement} element @param {Row} row @param {any} model */
export function drawRow(element, row, model) {
  if (row.kind === "day") return drawPlain(element, "day", h("span", null, dayName(row.at)));
  if (row.kind === "new") return drawPlain(element, "newline", h("span", null, t("n_new_messages", { n: row.count })));
  if (row.kind === "line") return drawPlain(element, "event", row.text);
  if (row.kind === "event") return drawPlain(element, "event", eventParts(model, row.message));
  return drawMessage(element, row, model);
}

function drawPlain(element, classes, ...children) {
  element.className = classes;
  fill(element, ...children);
}

function drawMessage(element, row, model) {
  const { message } = row;
  const isRecalled = message.status === 1;
  const classes = ["msg"];
  if (row.isMine) classes.push("me");
  if (row.isStart) classes.push("start");
  if (row.inGroup) classes.push("ingroup");
  if (message.important && !isRecalled) classes.push("mentioned");
  element.className = classes.join(" ");
  element.tabIndex = -1;
  if (row.isMine && !isRecalled) element.dataset.state = row.state;
  else delete element.dataset.state;
  element.setAttribute("aria-label", labelOf(row, model));

  const hadActions = element.querySelector(":scope > .bubble > .acts") !== null;
  const bubble = isRecalled ? recalledBubble(row, model) : contentBubble(row, model);
  const face = row.inGroup && !row.isMine && row.isEnd && avatar({ ...model.personFace(message.senderId), online: false }, "s32");
  fill(element, face, bubble, noteBelow(row, model));
  if (hadActions) ensureActions(element); // it is still pointed at
}

function labelOf(row, model) {
  const { message } = row;
  const what = message.status === 1 ? recalledLine(model, message) : contentLine(message);
  const state = row.isMine && message.status !== 1 && row.state !== "failed" ? t(`state_${row.state}`) : "";
  return [whoIs(model, message.senderId), clock(message.sendAt), what, state].filter(Boolean).join(t("label_comma"));
}

function recalledBubble(row, model) {
  const { message } = row;
  return h("div", { class: "bubble recalled" }, icon("recall", "s"), h("span", null, recalledLine(model, message)), meta(row));
}

function meta(row) {
  const { message } = row;
  const sign =
    row.isMine && message.status !== 1 && (row.state === "failed" ? icon("alert", "s bad", t("state_failed")) : tick(row.state, row.isOffline));
  return h("span", { class: "meta" }, h("time", { datetime: new Date(message.sendAt).toISOString(), title: fullTime(message.sendAt) }, clock(message.sendAt)), sign);
}

function contentBubble(row, model) {
  const { message } = row;
  const isPicture = message.msgType === IMAGE && isImageUrl(message.content?.url);
  const from = row.inGroup && !row.isMine && row.isStart && fromLine(row, model);
  const quote = quoteOf(message, model);
  if (isPicture) {
    const caption = message.content.name ? h("div", { class: "cap" }, message.content.name, meta(row)) : h("div", { class: "cap bare" }, meta(row));
    return h("div", { class: "bubble media" }, from, quote, picture(message.content), caption);
  }
  return h("div", { class: "bubble" }, from, quote, bodyOf(message, model), meta(row));
}

function fromLine(row, model) {
  const id = row.message.senderId;
  const name = h("span", { class: "name-h", dataset: { hue: hue(id) } }, model.people.name(id));
  return h("div", { class: "from" }, name, row.role && h("span", { class: "role" }, t(`role_${row.role}`)));
}

/** @param {any} message @param {any} model */
function bodyOf(message, model) {
  if (isText(message)) return h("span", { class: "text" }, richText(String(message.content ?? ""), mentionedIn(message, model)));
  const url = message.content?.url;
  if (isImageUrl(url)) {
    const name = message.content.name || url.replace(/^https?:\/\//i, "");
    return h("a", { class: "file link", href: url, target: "_blank", rel: "noopener noreferrer" }, icon("attach", "s"), h("span", null, name));
  }
  return h("span", { class: "text dim" }, contentLine(message));
}

function mentionedIn(message, model) {
  const found = [];
  for (const id of message.mentions ?? []) {
    if (id === "@all") {
      found.push({ name: "all", isMe: true });
      continue;
    }
    const isMe = id === model.userId;
    found.push({ name: model.people.name(id), isMe }, { name: id, isMe });
  }
  return found;
}

function quoteOf(message, model) {
  const answered = message.replyTo ?? null;
  if (!answered) return null;
  const quote = message.quote;
  const attributes = { type: "button", class: "quote", dataset: { quoted: answered } };
  if (!quote) return h("button", { ...attributes, disabled: true }, h("span", null, t("quote_gone")));
  const text = quote.text || contentLine({ msgType: quote.msgType, content: null });
  return h("button", attributes, h("b", null, whoIs(model, quote.senderId)), h("span", null, text));
}

/** The place is kept before the picture is there, so that nothing moves when it comes. */
function picture(content) {
  const image = h("img", { src: content.url, alt: content.name || t("kind_image"), loading: "lazy", decoding: "async", referrerpolicy: "no-referrer" });
  if (content.width > 0 && content.height > 0) {
    const ratio = Math.min(2.4, Math.max(0.6, content.width / content.height));
    image.style.setProperty("aspect-ratio", String(ratio));
  }
  const frame = h("a", { class: "frame", href: content.url, target: "_blank", rel: "noopener noreferrer" }, image);
  image.addEventListener("error", () => fill(frame, h("span", { class: "noimg" }, icon("image"), h("span", null, t("image_failed")))));
  return frame;
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
  if (!bubble || bubble.classList.contains("recalled") || bubble.querySelector(":scope > .acts")) return;
  bubble.append(
    h(
      "div",
      { class: "acts", role: "toolbar", "aria-label": t("message_actions") },
      iconButton("reply", t("reply"), { dataset: { act: "reply" } }, "s"),
      iconButton("copy", t("copy"), { dataset: { act: "copy" } }, "s"),
      iconButton("more", t("more"), { dataset: { act: "more" }, "aria-haspopup": "menu", "aria-expanded": "false" }, "s"),
    ),
  );
}
