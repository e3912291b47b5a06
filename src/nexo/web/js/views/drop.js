/** Files that are dropped or pasted. A drop anywhere never leaves the page. */

import { fill, h, icon } from "../dom.js";
import { t } from "../i18n.js";

/** @param {DataTransfer | null} data */
const hasFiles = (data) => Boolean(data && [...data.types].includes("Files"));
const isPicture = (one) => /^(image|video)\//.test(one.type) && !one.type.endsWith("+xml");

/** What is dropped, without folders. @param {DataTransfer} data @returns {{files: File[], hasFolder: boolean}} */
export function filesOf(data) {
  const files = [];
  let hasFolder = false;
  for (const item of data.items ?? []) {
    if (item.kind !== "file") continue;
    const entry = item.webkitGetAsEntry?.();
    const file = item.getAsFile();
    if (entry?.isDirectory) hasFolder = true;
    else if (file) files.push(file);
  }
  return { files, hasFolder };
}

/** The conversation of the list that something is held over. @param {Event} event @returns {HTMLElement | null} */
const rowOf = (event) => /** @type {any} */ (event.target)?.closest?.("a.conv[data-id]") ?? null;

/**
 * What is dropped beside a conversation stays on the page; on a row of the list it opens that conversation.
 * @param {(conversationId: string, files: File[]) => void} onrow @returns {() => void} ends it
 */
export function catchDrops(onrow) {
  let marked = null;
  const mark = (row) => {
    marked?.classList.remove("dropping");
    marked = row;
    row?.classList.add("dropping");
  };
  const over = (event) => {
    if (!hasFiles(event.dataTransfer)) return;
    event.preventDefault();
    mark(rowOf(event));
    if (!marked && !document.querySelector("main.chat")) event.dataTransfer.dropEffect = "none";
  };
  const drop = (event) => {
    if (!hasFiles(event.dataTransfer)) return;
    event.preventDefault();
    mark(null);
    const { files } = filesOf(event.dataTransfer);
    const row = rowOf(event);
    if (row && files.length > 0) onrow(row.dataset.id ?? "", files);
  };
  const leave = (event) => !event.relatedTarget && mark(null);
  const handlers = { dragover: over, drop, dragleave: leave };
  for (const [event, handler] of Object.entries(handlers)) window.addEventListener(event, handler);
  return () => {
    for (const [event, handler] of Object.entries(handlers)) window.removeEventListener(event, handler);
  };
}

export class DropZone {
  #zones = [];
  #count = 0;

  /**
   * @param {HTMLElement} chat
   * @param {() => string} why why one cannot write here, else ""
   * @param {() => string} name
   * @param {(files: File[], asFiles: boolean) => void} onfiles
   * @param {(text: string) => void} onrefused
   */
  constructor(chat, why, name, onfiles, onrefused) {
    this.element = h("div", { class: "dropzone" });
    this.element.hidden = true;
    chat.append(this.element);
    const enter = (event) => {
      if (!hasFiles(event.dataTransfer)) return;
      event.preventDefault();
      this.#count += 1;
      if (this.element.hidden) this.#show(event.dataTransfer, why(), name());
    };
    const over = (event) => {
      if (!hasFiles(event.dataTransfer)) return;
      event.preventDefault();
      if (why()) event.dataTransfer.dropEffect = "none";
      const zone = event.target.closest?.(".dropzone > div");
      for (const one of this.#zones) one.classList.toggle("over", one === zone || this.#zones.length === 1);
    };
    const leave = (event) => {
      if (!hasFiles(event.dataTransfer)) return;
      this.#count -= 1;
      if (this.#count <= 0) this.hide();
    };
    const drop = (event) => {
      if (!hasFiles(event.dataTransfer)) return;
      event.preventDefault();
      const zone = event.target.closest?.(".dropzone > div");
      this.hide();
      if (rowOf(event)) return undefined; // for another conversation
      const { files, hasFolder } = filesOf(event.dataTransfer);
      if (why()) return onrefused(t("drop_not_here"));
      if (hasFolder) onrefused(t("drop_folder"));
      if (files.length > 0) onfiles(files, zone?.dataset.as === "files");
      return undefined;
    };
    const handlers = { dragenter: enter, dragover: over, dragleave: leave, drop };
    for (const [event, handler] of Object.entries(handlers)) window.addEventListener(event, handler);
    this.end = () => {
      for (const [event, handler] of Object.entries(handlers)) window.removeEventListener(event, handler);
    };
  }

  #show(data, why, name) {
    const items = [...(data.items ?? [])].filter((item) => item.kind === "file");
    const zone = (as, sign, title, text) => h("div", { dataset: { as } }, icon(sign), h("b", null, title), text && h("span", null, text));
    if (why) this.#zones = [zone("", "ban", t("drop_not_here"), why)];
    else if (items.length > 0 && items.every(isPicture)) this.#zones = [zone("photos", "image", t("add_as_photos"), t("add_as_photos_hint", { n: items.length })), zone("files", "file", t("add_as_files"), t("add_as_files_hint"))];
    else this.#zones = [zone("files", "file", t("drop_to", { chat: name }), "")];
    fill(this.element, this.#zones);
    this.element.hidden = false;
  }

  hide() {
    this.#count = 0;
    this.element.hidden = true;
  }
}

/** Pictures of the clipboard; a text in it wins. @param {ClipboardEvent} event @returns {File[]} */
export function pastedFiles(event) {
  const data = event.clipboardData;
  if (!data || data.getData("text/plain")) return [];
  return filesOf(data).files;
}
