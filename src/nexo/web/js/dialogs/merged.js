/** Messages that were forwarded as one, to read. */

import { openDialog } from "../components/dialog.js";
import { avatar } from "../components/avatar.js";
import { h } from "../dom.js";
import { clock, dayName } from "../format.js";
import { t } from "../i18n.js";
import { richText } from "../richtext.js";
import { addressOf, fileOf, isAddress, loadImage } from "../files.js";
import { asMessage, mergedTitle } from "../views/bodies.js";
import { contentLine, IMAGE, isText, MERGED, whoIs } from "../wording.js";

/** @param {any} model @param {any} message */
export function openMerged(model, message) {
  const items = (message.content?.items ?? []).map(asMessage);
  const lines = items.map((item) => {
    const head = h("div", { class: "from" }, h("b", { dir: "auto" }, whoIs(model, item.senderId)), h("time", null, `${dayName(item.sendAt)} ${clock(item.sendAt)}`));
    return h("li", null, avatar({ ...model.personFace(item.senderId), online: false }, "s32"), h("div", null, head, bodyOf(model, item)));
  });
  openDialog({ title: mergedTitle(message, model), body: [lines.length ? h("ol", { class: "mergedlist" }, lines) : h("p", null, t("quote_gone"))], classes: "merged-dialog" });
}

function bodyOf(model, item) {
  if (isText(item) && typeof item.content === "string") return h("div", { class: "text pre", dir: "auto" }, richText(item.content));
  if (item.msgType === MERGED) return h("button", { type: "button", class: "merged", onclick: () => openMerged(model, item) }, h("b", { dir: "auto" }, mergedTitle(item, model)), h("small", null, t("forwarded_n", { n: item.content?.items?.length ?? 0 })));
  const content = fileOf(item);
  if (item.msgType === IMAGE && isAddress(content.url)) {
    const image = /** @type {HTMLImageElement} */ (h("img", { alt: t("kind_image"), class: "mergedpic", loading: "lazy" }));
    loadImage(model, image, addressOf(content, "small"), () => {}, () => image.replaceWith(t("photo_not_loaded")));
    return h("div", null, image, content.text && h("div", { class: "text pre", dir: "auto" }, richText(content.text)));
  }
  const words = contentLine(item);
  return isAddress(content.url) ? h("a", { class: "link", href: content.url, download: content.name ?? "", rel: "noopener noreferrer" }, words) : h("div", { class: "dim" }, words);
}
