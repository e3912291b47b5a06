/** What is about to be sent beside the text: pictures and files, each with how far it is or what hinders it. */

import { announce } from "../components/announce.js";
import { arrange, fill, h, icon } from "../dom.js";
import { lengthText, sizeText, typeLetters } from "../files.js";
import { t } from "../i18n.js";
import { errorText } from "../wording.js";
import { ring } from "./bodies.js";

const COUNT_MAX = 50;
const ALBUM_MAX = 10;
const SENDABLE = new Set(["waiting", "uploading", "paused", "ready"]);

/** @typedef {import("../attachments.js").Item} Item */

export class Tray {
  /** The tiles that are shown, each with what it shows. @type {Map<string, {key: string, element: HTMLElement}>} */
  #tiles = new Map();
  /** @type {(() => void)[]} */
  #ends;

  /** @param {any} model @param {string} conversationId @param {() => void} onchange @param {() => void} onleft nothing in it has the focus any more */
  constructor(model, conversationId, onchange, onleft) {
    this.model = model;
    this.conversationId = conversationId;
    this.store = model.attachments;
    this.onchange = onchange;
    this.onleft = onleft;
    this.list = h("ul", { class: "tray" });
    this.note = h("div", { class: "traynote" });
    this.element = h("div", null, this.list, this.note);
    this.element.hidden = true;
    this.list.addEventListener("keydown", (event) => this.#key(event));
    this.#ends = [
      this.store.on("change", (id) => id === conversationId && this.#changed()),
      this.store.on("ready", (item) => item.conversationId === conversationId && this.#uploaded(item)),
      this.store.on("refused", ({ item, reason }) => item.conversationId === conversationId && this.store.refuse(item, errorText({ reason }))),
    ];
    this.store.load(conversationId);
    this.#draw();
  }

  end() {
    for (const end of this.#ends.splice(0)) end();
  }

  /** @returns {Item[]} */
  get items() {
    return this.store.of(this.conversationId);
  }

  /** What can be sent: it is there, or on its way. */
  get ready() {
    return this.items.filter((item) => SENDABLE.has(item.state));
  }

  get isEmpty() {
    return this.items.length === 0;
  }

  /** @param {File[]} files @param {boolean} asFiles */
  add(files, asFiles) {
    const room = Math.max(0, COUNT_MAX - this.items.length);
    for (const file of files.slice(0, room)) {
      const refusal = this.#refusal(file);
      const isPhoto = !asFiles && /^(image|video)\//.test(file.type) && !file.type.endsWith("+xml");
      const item = this.store.add(this.conversationId, file, isPhoto && !refusal, refusal);
      if (isPhoto && !refusal) this.#measure(item);
    }
    announce(t("attachments_n", { n: this.items.length }));
    this.#changed();
  }

  async #measure(item) {
    const unreadable = await measure(item);
    if (unreadable) this.store.refuse(item, unreadable);
    else this.#changed();
  }

  #refusal(file) {
    const max = this.model.settings.files_max_bytes ?? Infinity;
    if (file.size > max) return t("too_large", { size: sizeText(file.size), max: sizeText(max) });
    return file.size === 0 ? t("file_empty") : "";
  }

  /** Takes what can be sent; the rest stays. @returns {Item[]} */
  take() {
    const taken = this.ready;
    for (const item of taken) this.store.remove(item, true);
    return taken;
  }

  /** @param {string} id */
  #remove(id) {
    const at = this.items.findIndex((item) => item.id === id);
    if (at < 0) return;
    this.store.remove(this.items[at]);
    const buttons = this.list.querySelectorAll("button.x");
    /** @type {HTMLElement | undefined} */ (buttons[Math.min(at, buttons.length - 1)])?.focus();
    if (buttons.length === 0) this.onleft();
  }

  #key(event) {
    const tile = event.target.closest("[data-tile]");
    if (!tile || (event.key !== "Delete" && event.key !== "Backspace")) return;
    event.preventDefault();
    this.#remove(tile.dataset.tile);
  }

  #asFiles() {
    for (const item of this.items) item.isPhoto = false;
    this.#changed();
    this.onleft();
  }

  #uploaded(item) {
    const { items } = this;
    const done = items.filter(({ state }) => state === "ready").length;
    announce(t("uploaded_n", { name: item.name, n: done, m: items.length }));
  }

  #changed() {
    this.#draw();
    this.onchange();
  }

  #draw() {
    const { items } = this;
    this.element.hidden = items.length === 0;
    this.list.setAttribute("aria-label", t("attachments_n", { n: items.length }));
    const tiles = new Map(items.map((item) => [item.id, this.#shown(item)]));
    this.#tiles = tiles;
    arrange(this.list, [...tiles.values()].map(({ element }) => element));
    this.#drawNote();
  }

  #drawNote() {
    const photos = this.ready.filter((item) => item.isPhoto).length;
    const files = this.ready.length - photos;
    const parts = [photos === 1 ? t("n_photos", { n: 1 }) : photos > 1 && t("n_photos_album", { n: photos }), files > 0 && t("n_files", { n: files })].filter(Boolean);
    const words = parts.length ? `${parts.join(t("list_comma"))}${t("sentence_end")} ${this.ready.length > 1 ? t("caption_goes_last") : ""}` : "";
    const key = `${words}${photos > 0}`;
    if (this.note.dataset.key === key) return;
    this.note.dataset.key = key;
    const asFiles = photos > 0 && h("button", { type: "button", class: "link", onclick: () => this.#asFiles() }, t("photos_as_files"));
    fill(this.note, h("span", null, words), h("span", { class: "right" }), asFiles);
    this.note.hidden = parts.length === 0;
  }

  /** The tile as it was while nothing of it changes: it may have the focus. */
  #shown(item) {
    const before = this.#tiles.get(item.id);
    const key = JSON.stringify([item.state, item.isPhoto, item.refusal, item.durationMs ?? 0]);
    const element = before?.element ?? h("li", { class: "tile", dataset: { tile: item.id } });
    if (before?.key !== key) {
      const hadFocus = element.contains(document.activeElement);
      fill(element, this.#content(item, element));
      if (hadFocus) /** @type {HTMLElement | null} */ (element.querySelector("button.x"))?.focus();
    }
    this.#step(item, element);
    return { key, element };
  }

  /** Only what moves while it is uploaded. */
  #step(item, element) {
    const percent = item.size > 0 ? Math.floor((item.bytes / item.size) * 100) : 0;
    element.dataset.state = item.state;
    const bar = element.querySelector(".ring");
    bar?.setAttribute("aria-valuenow", String(percent));
    bar?.querySelector(".v")?.setAttribute("stroke-dasharray", `${percent} 100`);
    const words = element.querySelector("small.far");
    if (words) words.textContent = farText(item);
  }

  #content(item, element) {
    const { name, state } = item;
    const isTile = item.isPhoto && state !== "refused" && state !== "missing";
    element.className = isTile ? "tile" : state === "refused" || state === "failed" ? "tile file bad" : "tile file";
    const isMoving = state === "uploading" || state === "paused";
    const label = t(isMoving || state === "waiting" ? "cancel_x" : "remove_x", { name });
    const remove = h("button", { type: "button", class: "x", "aria-label": label, title: label, onclick: () => this.#remove(item.id) }, icon("close", isTile ? "xs" : "s"));
    if (isTile) return [this.#still(item), this.#over(item), item.durationMs ? h("span", { class: "pill len" }, lengthText(item.durationMs)) : null, remove];
    const sign = isMoving ? ring(0, "s") : h("span", { class: state === "refused" || state === "failed" ? "ftype bad" : "ftype", "aria-hidden": "true" }, typeLetters(name) || icon("file"));
    return [sign, h("span", { class: "ell" }, h("b", { class: "ell", dir: "auto", title: name }, name), this.#words(item)), remove];
  }

  #still({ type, url, name }) {
    return type.startsWith("video/") ? h("span", { class: "over" }, icon("video", "l")) : h("img", { src: url, alt: name });
  }

  /** What lies over a picture until it is there. */
  #over(item) {
    const { state } = item;
    if (state === "ready") return null;
    if (state === "waiting") return h("span", { class: "over" }, icon("clock", "l", t("upload_waiting")));
    if (state === "failed") return h("button", { type: "button", class: "over again", "aria-label": `${item.name}. ${t("upload_failed")} ${t("try_again")}`, title: t("upload_failed"), onclick: () => this.store.retry(item) }, icon("retry", "l"));
    const paused = state === "paused" ? icon("pause", "s", farText(item)) : null;
    return h("span", { class: "over" }, ring(0), paused);
  }

  #words(item) {
    if (item.state === "refused") return h("small", null, item.refusal);
    if (item.state === "failed") return h("small", null, `${t("upload_failed")} `, h("button", { type: "button", class: "link", onclick: () => this.store.retry(item) }, t("try_again")));
    if (item.state === "missing") return h("small", null, t("choose_again", { p: Math.floor((item.bytes / Math.max(1, item.size)) * 100) }));
    return h("small", { class: "far" }, farText(item));
  }
}

/** How far it is, in words. @param {Item} item */
function farText(item) {
  const values = { a: (item.bytes / 1e6).toFixed(1), b: (item.size / 1e6).toFixed(1) };
  if (item.state === "paused") return t("upload_paused", values);
  if (item.state === "uploading" && item.size >= 1e5) return t("upload_of", values);
  if (item.state === "waiting") return t("upload_waiting");
  return sizeText(item.size);
}

/** The size of a picture or video, so that its place is kept from the first. @param {any} item @returns {Promise<string>} why it cannot be used */
async function measure(item) {
  try {
    if (item.file.type.startsWith("image/")) {
      const bitmap = await createImageBitmap(item.file);
      [item.width, item.height] = [bitmap.width, bitmap.height];
      bitmap.close();
      return "";
    }
    const video = document.createElement("video");
    video.preload = "metadata";
    video.src = item.url;
    await new Promise((resolve, reject) => {
      video.onloadedmetadata = resolve;
      video.onerror = reject;
      setTimeout(reject, 3000);
    });
    [item.width, item.height, item.durationMs] = [video.videoWidth, video.videoHeight, Number.isFinite(video.duration) ? video.duration * 1000 : 0];
  } catch {
    if (/^image\/(jpeg|png|gif|webp)$/.test(item.file.type)) return t("picture_unreadable");
    item.isPhoto = false; // others may be able to show it
  }
  return "";
}

/** Pictures that are sent together, at most so many at a time. @param {Item[]} items @returns {Map<Item, any>} what goes into `extra` of each */
export function albumsOf(items) {
  const found = new Map();
  const photos = items.filter((item) => item.isPhoto);
  if (photos.length < 2) return found;
  for (let from = 0; from < photos.length; from += ALBUM_MAX) {
    const part = photos.slice(from, from + ALBUM_MAX);
    const id = crypto.randomUUID?.() ?? `${Date.now()}-${from}`;
    if (part.length > 1) part.forEach((item, index) => found.set(item, { album: { id, index, count: part.length } }));
  }
  return found;
}
