/** What is about to be sent beside the text: pictures and files, each with what hinders it. */

import { announce } from "../components/announce.js";
import { fill, h, icon } from "../dom.js";
import { lengthText, sizeText, typeLetters } from "../files.js";
import { t } from "../i18n.js";

const COUNT_MAX = 50;
const ALBUM_MAX = 10;

/**
 * @typedef {object} Item
 * @property {number} id
 * @property {File} file
 * @property {boolean} isPhoto shown in the chat, not as a file
 * @property {string} url
 * @property {string} refusal
 * @property {number} [width]
 * @property {number} [height]
 * @property {number} [durationMs]
 */

export class Tray {
  /** @type {Item[]} */
  items = [];
  #next = 1;

  /** @param {any} model @param {() => void} onchange @param {() => void} onadd */
  constructor(model, onchange, onadd) {
    this.model = model;
    this.onchange = onchange;
    this.onadd = onadd;
    this.list = h("ul", { class: "tray" });
    this.note = h("div", { class: "traynote" });
    this.element = h("div", null, this.list, this.note);
    this.element.hidden = true;
    this.list.addEventListener("keydown", (event) => this.#key(event));
  }

  /** What can be sent. */
  get ready() {
    return this.items.filter((item) => !item.refusal);
  }

  get isEmpty() {
    return this.items.length === 0;
  }

  /** @param {File[]} files @param {boolean} asFiles */
  async add(files, asFiles) {
    const room = Math.max(0, COUNT_MAX - this.items.length);
    for (const file of files.slice(0, room)) {
      const isPhoto = !asFiles && /^(image|video)\//.test(file.type) && !file.type.endsWith("+xml");
      const item = { id: this.#next++, file, isPhoto, url: isPhoto ? URL.createObjectURL(file) : "", refusal: this.#refusal(file) };
      this.items.push(item);
      if (isPhoto && !item.refusal) measure(item).then(() => this.#draw());
    }
    this.#draw();
    announce(t("attachments_n", { n: this.items.length }));
    this.onchange();
  }

  #refusal(file) {
    const max = this.model.settings.files_max_bytes ?? Infinity;
    if (file.size > max) return t("too_large", { size: sizeText(file.size), max: sizeText(max) });
    return file.size === 0 ? t("file_empty") : "";
  }

  /** Takes what can be sent; what is refused stays. @returns {Item[]} */
  take() {
    const taken = this.ready;
    this.items = this.items.filter((item) => item.refusal);
    this.#draw();
    return taken;
  }

  /** @param {number} id */
  remove(id) {
    const at = this.items.findIndex((item) => item.id === id);
    const [gone] = this.items.splice(at, 1);
    if (gone?.url) URL.revokeObjectURL(gone.url);
    this.#draw();
    this.onchange();
    const buttons = this.list.querySelectorAll("button.x");
    /** @type {HTMLElement | undefined} */ (buttons[Math.min(at, buttons.length - 1)])?.focus();
    return buttons.length > 0;
  }

  clear() {
    for (const item of this.items) if (item.url) URL.revokeObjectURL(item.url);
    this.items = [];
    this.#draw();
  }

  #key(event) {
    const tile = event.target.closest("[data-tile]");
    if (!tile || (event.key !== "Delete" && event.key !== "Backspace")) return;
    event.preventDefault();
    if (!this.remove(Number(tile.dataset.tile))) this.onadd();
  }

  #asFiles() {
    for (const item of this.items) item.isPhoto = false;
    this.#draw();
  }

  #draw() {
    this.element.hidden = this.isEmpty;
    this.list.setAttribute("aria-label", t("attachments_n", { n: this.items.length }));
    fill(this.list, this.items.map((item) => this.#tile(item)));
    const photos = this.ready.filter((item) => item.isPhoto).length;
    const files = this.ready.length - photos;
    const parts = [photos === 1 ? t("n_photos", { n: 1 }) : photos > 1 && t("n_photos_album", { n: photos }), files > 0 && t("n_files", { n: files })].filter(Boolean);
    const words = parts.length ? `${parts.join(t("list_comma"))}${t("sentence_end")} ${this.ready.length > 1 ? t("caption_goes_last") : ""}` : "";
    const asFiles = photos > 0 && h("button", { type: "button", class: "link", onclick: () => this.#asFiles() }, t("photos_as_files"));
    fill(this.note, h("span", null, words), h("span", { class: "right" }), asFiles);
    this.note.hidden = parts.length === 0;
  }

  #tile(item) {
    const { file } = item;
    const remove = h("button", { type: "button", class: "x", "aria-label": t("remove_x", { name: file.name }), onclick: () => this.remove(item.id) || this.onadd() }, icon("close", item.isPhoto && !item.refusal ? "xs" : "s"));
    if (item.isPhoto && !item.refusal) {
      const isVideo = file.type.startsWith("video/");
      const still = isVideo ? h("span", { class: "over" }, icon("video", "l")) : h("img", { src: item.url, alt: file.name });
      return h("li", { class: "tile", dataset: { tile: item.id } }, still, item.durationMs ? h("span", { class: "pill len" }, lengthText(item.durationMs)) : null, remove);
    }
    const sign = h("span", { class: item.refusal ? "ftype bad" : "ftype", "aria-hidden": "true" }, typeLetters(file.name) || icon("file"));
    const words = h("span", { class: "ell" }, h("b", { class: "ell", dir: "auto" }, file.name), h("small", null, item.refusal || sizeText(file.size)));
    return h("li", { class: item.refusal ? "tile file bad" : "tile file", dataset: { tile: item.id } }, sign, words, remove);
  }
}

/** The size of a picture or video, so that its place is kept from the first. @param {Item} item */
async function measure(item) {
  try {
    if (item.file.type.startsWith("image/")) {
      const bitmap = await createImageBitmap(item.file);
      [item.width, item.height] = [bitmap.width, bitmap.height];
      bitmap.close();
      return;
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
    if (/^image\/(jpeg|png|gif|webp)$/.test(item.file.type)) item.refusal = t("picture_unreadable");
    else item.isPhoto = false; // others may be able to show it
  }
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
