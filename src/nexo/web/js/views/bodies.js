/** What is in a bubble: text, pictures, sound, files, forwarded messages. */

import { placeholder } from "../blurhash.js";
import { fill, h, icon } from "../dom.js";
import { addressOf, fileOf, isAddress, lengthText, loadImage, nameOf, sizeText, typeLetters } from "../files.js";
import { clock } from "../format.js";
import { t } from "../i18n.js";
import { beginning, isBigEmoji, isLongText, richText } from "../richtext.js";
import { AUDIO, contentLine, FILE, IMAGE, isText, MERGED, VIDEO, whoIs } from "../wording.js";
import { voiceBody } from "./voice.js";

const RATIO_MIN = 0.62;
const RATIO_MAX = 2.4;
const ALBUM_SHOWN = 5;
const MERGED_LINES = 3;

const SVG = "http://www.w3.org/2000/svg";

/** Confirmed bytes as a ring, never more. @param {number} share @param {string} [classes] */
export function ring(share, classes = "") {
  const svg = document.createElementNS(SVG, "svg");
  const percent = Math.round(Math.max(0, Math.min(1, share)) * 100);
  const attributes = { class: `ring ${classes}`.trim(), viewBox: "0 0 40 40", role: "progressbar", "aria-valuenow": String(percent), "aria-label": t("upload") };
  for (const [name, value] of Object.entries(attributes)) svg.setAttribute(name, value);
  const circle = (kind, more = {}) => {
    const one = document.createElementNS(SVG, "circle");
    for (const [name, value] of Object.entries({ class: kind, cx: "20", cy: "20", r: "17", ...more })) one.setAttribute(name, value);
    return one;
  };
  svg.append(circle("t"), circle("v", { pathLength: "100", "stroke-dasharray": `${percent} 100`, transform: "rotate(-90 20 20)" }));
  return svg;
}

/** How far an upload has come, or null. @param {any} row */
function upload(row) {
  const progress = row.message.outgoing?.progress;
  return row.state === "uploading" && progress ? progress : null;
}

const uploadText = ({ uploaded, size }) => t("upload_of", { a: (uploaded / 1e6).toFixed(1), b: (size / 1e6).toFixed(1) });

/** @param {any} message */
export const isMedia = (message) => (message.msgType === IMAGE || message.msgType === VIDEO) && (isAddress(fileOf(message).url) || Boolean(fileOf(message).local));

/** @param {any} row @param {any} model @returns {any} */
export function bodyOf(row, model) {
  const { message } = row;
  if (isText(message)) return textBody(String(message.content ?? ""), message, model, row.isOpen);
  if (message.msgType === MERGED) return mergedCard(message, model);
  const content = fileOf(message);
  if (message.msgType === AUDIO && (isAddress(content.url) || content.local)) return [voiceBody(row, content, model), captionOf(message, model)];
  if ([IMAGE, VIDEO, AUDIO, FILE].includes(message.msgType) && (isAddress(content.url) || content.local || message.outgoing)) return [fileCard(row, content), captionOf(message, model)];
  return h("span", { class: "text dim", dir: "auto" }, contentLine(message));
}

/** @param {string} text @param {any} message @param {any} model @param {boolean} [isOpen] */
function textBody(text, message, model, isOpen = false) {
  if (isBigEmoji(text)) return h("span", { class: "e" }, text);
  const isFolded = isLongText(text) && !isOpen;
  const body = h("span", { class: isFolded ? "text fold" : "text", dir: "auto" }, richText(isFolded ? beginning(text) : text, mentionedIn(message, model)));
  if (!isLongText(text)) return body;
  const more = h("button", { type: "button", class: "link unfold", "aria-expanded": String(isOpen), dataset: { act: "unfold" } }, isOpen ? t("show_less") : t("show_all_chars", { n: [...text].length }));
  return [body, more];
}

/** @param {any} message @param {any} model */
function mentionedIn(message, model) {
  const found = [];
  for (const id of message.mentions ?? []) {
    if (id === "@all") {
      found.push({ name: "all", isMe: message.senderId !== model.userId });
      continue;
    }
    const isMe = id === model.userId;
    found.push({ name: model.people.name(id), isMe }, { name: id, isMe });
    if (message.groupId) found.push({ name: model.nameIn(message.groupId, id), isMe });
  }
  return found;
}

/** The words that go with a picture or a file. @param {any} message @param {any} model */
export function captionOf(message, model) {
  const text = message.content?.text;
  if (typeof text !== "string" || !text) return null;
  return h("span", { class: "text", dir: "auto" }, richText(text, mentionedIn(message, model)));
}

// -- pictures ----------------------------------------------------------------------------------------------

/** One or several pictures that belong together. @param {any} row @param {any} model */
export function shots(row, model) {
  const { messages } = row;
  if (messages.length === 1) return shot(messages[0], row, model, true);
  const shown = messages.slice(0, ALBUM_SHOWN);
  const extra = messages.length - shown.length;
  const tiles = shown.map((message, at) => {
    const tile = shot(message, row, model, false);
    if (extra > 0 && at === shown.length - 1) tile.append(h("span", { class: "more" }, `+${extra}`));
    return tile;
  });
  const count = Math.min(messages.length, ALBUM_SHOWN);
  return h("div", { class: `album n${count}`, role: "group", "aria-label": t("n_photos", { n: messages.length }) }, tiles);
}

function shot(message, row, model, isAlone) {
  const content = fileOf(message);
  const isVideo = message.msgType === VIDEO;
  const words = [t(isVideo ? "kind_video" : "kind_image"), whoIs(model, message.senderId), clock(message.sendAt), content.text].filter(Boolean).join(t("label_comma"));
  const element = h("button", { type: "button", class: "shot", tabindex: "-1", "aria-label": words, dataset: { act: "view", shot: message.serverMsgId ?? message.clientMsgId } });
  if (isAlone) element.style.setProperty("aspect-ratio", String(ratioOf(content)));
  const hash = placeholder(content.preview);
  if (hash) {
    hash.className = "hash";
    element.append(hash);
  }
  const still = isVideo ? stillOf(content) : addressOf(content, isAlone ? "medium" : "small");
  if (still) element.append(picture(element, still, model, hash));
  if (isVideo) element.append(h("span", { class: "mid" }, h("span", { class: "playbtn" }, icon("play", "fill"))), h("span", { class: "pill" }, videoText(content)));
  const progress = message.outgoing?.state === "uploading" ? message.outgoing.progress : null;
  if (progress) element.append(h("span", { class: "mid upload" }, ring(progress.uploaded / progress.size)), h("span", { class: "pill" }, uploadText(progress)));
  return element;
}

const videoText = (content) => [content.duration_ms > 0 && lengthText(content.duration_ms), content.size > 0 && sizeText(content.size)].filter(Boolean).join(" · ");
const stillOf = (content) => (content.file_id && content.preview ? addressOf({ ...content, local: undefined }, "medium") : "");

function ratioOf({ width, height }) {
  if (!(width > 0 && height > 0)) return 1.5;
  return Math.min(RATIO_MAX, Math.max(RATIO_MIN, width / height));
}

/** Its place is kept before it is there, so that nothing moves when it comes. */
function picture(frame, address, model, hash) {
  const image = /** @type {HTMLImageElement} */ (h("img", { alt: "", decoding: "async", referrerpolicy: "no-referrer", draggable: "false" }));
  if (!address.startsWith("blob:")) image.loading = "lazy";
  const failed = () => {
    const again = h("span", { class: "link" }, t("try_again"));
    fill(frame, h("span", { class: "noimg" }, icon("image"), h("span", null, t("photo_not_loaded")), again));
    frame.dataset.act = "reload";
  };
  loadImage(model, image, address, () => hash?.remove(), failed);
  return image;
}

// -- files -------------------------------------------------------------------------------------------------

function fileCard(row, content) {
  const name = nameOf(content) || t("kind_file");
  const letters = typeLetters(name);
  const progress = upload(row);
  const sign = progress ? ring(progress.uploaded / progress.size, "s") : h("span", { class: "ftype", "aria-hidden": "true" }, letters || icon("file"));
  const size = progress ? uploadText(progress) : content.size > 0 ? sizeText(content.size) : "";
  const words = h("span", { class: "ell" }, middleCut(name), h("small", null, size));
  if (!isAddress(content.url)) return h("div", { class: "filecard" }, sign, words);
  const isOwn = content.url.startsWith("/files/");
  const link = { class: "iconbtn", href: content.url, tabindex: "-1", "aria-label": t("download_x", { name }), title: t("download"), rel: "noopener noreferrer", dataset: { act: "download" } };
  const get = isOwn ? h("a", { ...link, download: name }, icon("download")) : h("a", { ...link, target: "_blank" }, icon("download"));
  return h("div", { class: "filecard" }, sign, words, get);
}

/** The end of a name says what it is, so the middle goes. */
function middleCut(name) {
  const end = name.length > 24 ? name.slice(-10) : "";
  if (!end) return h("b", { class: "ell", dir: "auto", title: name }, name);
  return h("b", { class: "midcut", title: name }, h("span", { class: "ell" }, name.slice(0, -10)), h("span", null, end));
}

// -- forwarded as one --------------------------------------------------------------------------------------

function mergedCard(message, model) {
  const items = Array.isArray(message.content?.items) ? message.content.items : [];
  const lines = items.slice(0, MERGED_LINES).map((item) => h("span", { dir: "auto" }, t("announce_message", { name: whoIs(model, item.sender_id), text: contentLine(asMessage(item)) })));
  return h("button", { type: "button", class: "merged", tabindex: "-1", dataset: { act: "merged" } }, h("b", { dir: "auto" }, mergedTitle(message, model)), lines, h("small", null, t("forwarded_n", { n: items.length })));
}

/** @param {any} message @param {any} model */
export function mergedTitle(message, model) {
  const given = message.content?.title;
  if (typeof given === "string" && given) return given;
  const names = [...new Set((message.content?.items ?? []).map((item) => item.sender_id))].map((id) => whoIs(model, id));
  return names.length === 2 ? t("chat_of", { a: names[0], b: names[1] }) : t("forwarded_n", { n: message.content?.items?.length ?? 0 });
}

/** An item of a merged message, with the fields of a message. @param {any} item */
export const asMessage = (item) => ({ senderId: item.sender_id, sendAt: item.send_at, msgType: item.msg_type, content: item.content, mentions: [], status: 0 });
