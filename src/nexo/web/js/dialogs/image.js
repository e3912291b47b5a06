/** A picture by its address. */

import { busyWhile, openDialog } from "../components/dialog.js";
import { field } from "../components/field.js";
import { isImageUrl } from "../components/avatar.js";
import { button, fill, h } from "../dom.js";
import { t } from "../i18n.js";

const URL_MAX = 512;
const LOAD_MS = 6000;

/** @param {(content: {url: string, name?: string, width?: number, height?: number}) => void} onsend */
export function openImageDialog(onsend) {
  const address = field({
    label: t("image_address"),
    help: t("image_address_help"),
    attributes: { type: "url", inputmode: "url", maxlength: URL_MAX, placeholder: "https://", autofocus: true },
  });
  const caption = field({ label: t("image_caption"), attributes: { maxlength: 200 } });
  const preview = h("div", { class: "imgpreview", hidden: true });
  const go = button(t("send"), { class: "primary", type: "submit" });
  let size = null;

  const look = async () => {
    const url = address.input.value.trim();
    size = null;
    preview.hidden = true;
    if (!isImageUrl(url)) return;
    size = await sizeOf(url, preview);
    preview.hidden = size === null;
  };
  address.input.addEventListener("change", look);
  const submit = (event) => {
    event.preventDefault();
    busyWhile(go, async () => {
      const url = address.input.value.trim();
      if (!isImageUrl(url) || url.length > URL_MAX) {
        address.setError(t("image_address_bad"));
        address.input.focus();
        return;
      }
      if (!size) await look();
      const name = caption.input.value.trim();
      dialog.close();
      onsend({ url, ...(name ? { name } : {}), ...(size ?? {}) });
    });
  };
  const form = h("form", { novalidate: true, id: "image-form", onsubmit: submit }, address.element, preview, caption.element);
  go.setAttribute("form", "image-form");
  const cancel = button(t("cancel"), { onclick: () => dialog.close() });
  const dialog = openDialog({ title: t("send_image"), body: [form], footer: [cancel, go] });
}

/** Its size, so that others can keep a place for it; null when it does not load, which does not hinder sending. */
function sizeOf(url, preview) {
  return new Promise((resolve) => {
    const image = /** @type {HTMLImageElement} */ (h("img", { src: url, alt: "", referrerpolicy: "no-referrer" }));
    const timer = setTimeout(() => resolve(null), LOAD_MS);
    image.addEventListener("load", () => {
      clearTimeout(timer);
      fill(preview, image);
      resolve(image.naturalWidth > 0 ? { width: image.naturalWidth, height: image.naturalHeight } : null);
    });
    image.addEventListener("error", () => {
      clearTimeout(timer);
      resolve(null);
    });
  });
}
