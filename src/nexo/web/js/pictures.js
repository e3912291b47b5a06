/** A picture of oneself or a group: chosen, cut square, uploaded; the old one stays until the new one is saved. */

import { busyWhile, openDialog } from "./components/dialog.js";
import { button, h } from "./dom.js";
import { tellFailure } from "./failures.js";
import { t } from "./i18n.js";

const SIDE = 512;
const ZOOM_MAX = 4;
const QUALITY = 0.86;

/** Asks for a file, then for its square part. @param {any} model @param {(address: string) => Promise<any>} save */
export function choosePicture(model, save) {
  const input = /** @type {HTMLInputElement} */ (h("input", { type: "file", accept: "image/*", hidden: true }));
  input.addEventListener("change", () => {
    const [file] = input.files ?? [];
    input.remove();
    if (file) openCrop(model, file, save).catch(() => tellFailure({ reason: "bad_file" }));
  });
  document.body.append(input);
  input.click();
}

async function openCrop(model, file, save) {
  const picture = await createImageBitmap(file);
  const canvas = /** @type {HTMLCanvasElement} */ (h("canvas", { class: "crop", width: SIDE, height: SIDE, tabindex: "0", role: "img", "aria-label": t("crop_hint") }));
  const zoom = /** @type {HTMLInputElement} */ (h("input", { type: "range", min: 1, max: ZOOM_MAX, step: 0.01, value: 1, "aria-label": t("zoom") }));
  const at = { x: 0.5, y: 0.5 };
  const draw = () => {
    const side = Math.min(picture.width, picture.height) / Number(zoom.value);
    const half = [side / picture.width / 2, side / picture.height / 2];
    at.x = Math.min(1 - half[0], Math.max(half[0], at.x));
    at.y = Math.min(1 - half[1], Math.max(half[1], at.y));
    canvas.getContext("2d")?.drawImage(picture, at.x * picture.width - side / 2, at.y * picture.height - side / 2, side, side, 0, 0, SIDE, SIDE);
    return side;
  };
  const move = (dx, dy) => {
    const side = draw();
    at.x -= (dx * side) / picture.width;
    at.y -= (dy * side) / picture.height;
    draw();
  };
  zoom.addEventListener("input", draw);
  canvas.addEventListener("pointerdown", (event) => canvas.setPointerCapture(event.pointerId));
  canvas.addEventListener("pointermove", (event) => {
    if (canvas.hasPointerCapture(event.pointerId)) move(event.movementX / canvas.clientWidth, event.movementY / canvas.clientHeight);
  });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [0.02, 0], ArrowRight: [-0.02, 0], ArrowUp: [0, 0.02], ArrowDown: [0, -0.02] }[event.key];
    if (!step) return;
    event.preventDefault();
    move(step[0], step[1]);
  });
  const use = button(t("use_picture"), { class: "primary" });
  use.addEventListener("click", () =>
    busyWhile(use, async () => {
      try {
        const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/webp", QUALITY));
        await save(await upload(model.client, blob));
        dialog.close();
      } catch (error) {
        tellFailure(error);
      }
    }),
  );
  draw();
  const dialog = openDialog({ title: t("your_picture"), body: [canvas, zoom, h("p", { class: "small" }, t("crop_hint"))], footer: [button(t("cancel"), { onclick: () => dialog.close() }), use] });
}

/** @param {any} client @param {Blob} blob @returns {Promise<string>} the address that an avatar has */
async function upload(client, blob) {
  const answer = await fetch("/files?name=avatar.webp", { method: "POST", headers: { authorization: `Bearer ${client.session.accessToken}`, "content-type": blob.type }, body: blob });
  const { err_code: code, err_msg: reason, detail, data } = await answer.json();
  if (code) throw Object.assign(new Error(detail), { reason });
  return `/files/${data.file_id}`;
}
