/** Pictures and videos of a conversation, one at a time over the whole window. */

import { fill, h, icon, iconButton } from "../dom.js";
import { addressOf, fileOf, loadImage, nameOf, openAddress } from "../files.js";
import { clock, dayName } from "../format.js";
import { t } from "../i18n.js";
import { IMAGE, VIDEO, whoIs } from "../wording.js";

const ZOOM_MAX = 6;
const ZOOM_STEP = 1.4;
const SWIPE_PX = 60;

/** @param {any} chat @param {string} id server or client id of the one to begin with */
export function openViewer(chat, id) {
  const { model, log } = chat;
  const idOf = (message) => message.serverMsgId ?? message.clientMsgId;
  const shown = log.rows.filter((row) => row.kind === "message").flatMap((row) => row.messages);
  const all = shown.filter((one) => (one.msgType === IMAGE || one.msgType === VIDEO) && one.status === 0 && (fileOf(one).url || fileOf(one).local));
  let at = all.findIndex((one) => idOf(one) === id);
  if (at < 0) return;
  let zoom = 1;
  let pan = { x: 0, y: 0 };
  const title = h("span", { class: "who" });
  const pic = h("div", { class: "pic" });
  const caption = h("div", { class: "cap", dir: "auto" });
  const save = h("a", { class: "iconbtn", "aria-label": t("download"), title: t("download"), rel: "noopener noreferrer" }, icon("download"));
  const close = iconButton("close", t("close"), { onclick: () => element.close() });
  const zoomer = (name, label, fn) => iconButton(name, label, { class: "mouse-only", onclick: fn });
  const header = h("header", null, title, zoomer("zoom", t("zoom_in"), () => setZoom(zoom >= 3 ? 1 : zoom * ZOOM_STEP)), save, close);
  const element = /** @type {HTMLDialogElement} */ (h("dialog", { class: "stage viewer", "aria-label": t("viewer") }, header, pic, h("footer", null, caption)));

  const current = () => all[at];
  const media = () => /** @type {HTMLElement | null} */ (pic.querySelector("img, video"));
  const apply = () => media()?.style.setProperty("transform", zoom === 1 ? "" : `translate(${pan.x}px, ${pan.y}px) scale(${zoom})`);
  function setZoom(value) {
    zoom = Math.max(1, Math.min(ZOOM_MAX, value));
    if (zoom === 1) pan = { x: 0, y: 0 };
    apply();
    const image = /** @type {HTMLImageElement | null} */ (pic.querySelector("img"));
    if (zoom > 1 && image && !image.dataset.whole) {
      image.dataset.whole = "yes"; // above its size the original is needed
      openAddress(model, addressOf(fileOf(current()))).then((address) => (image.src = address)).catch(() => {});
    }
  }
  function go(step) {
    const next = at + step;
    if (next < 0 || next >= all.length) return;
    at = next;
    draw();
  }
  function draw() {
    const message = current();
    const content = fileOf(message);
    zoom = 1;
    pan = { x: 0, y: 0 };
    fill(title, h("b", { dir: "auto" }, whoIs(model, message.senderId)), h("small", null, `${dayName(message.sendAt)} ${clock(message.sendAt)} · ${t("i_of_n", { i: at + 1, n: all.length })}`));
    caption.textContent = content.text ?? "";
    save.setAttribute("href", addressOf(content));
    save.setAttribute("download", nameOf(content) || t("kind_image"));
    const previous = at > 0 && iconButton("back", t("older_picture"), { class: "nav", onclick: () => go(-1) });
    const next = at < all.length - 1 && iconButton("next", t("newer_picture"), { class: "nav n", onclick: () => go(1) });
    fill(pic, message.msgType === VIDEO ? video(content) : image(content), previous, next);
    for (const near of [all[at - 1], all[at + 1]]) if (near?.msgType === IMAGE) new Image().src = addressOf(fileOf(near), "medium");
  }
  function image(content) {
    const one = /** @type {HTMLImageElement} */ (h("img", { alt: content.text || nameOf(content) || t("kind_image"), draggable: "false" }));
    const failed = () => one.replaceWith(h("p", { class: "noimg" }, icon("image"), t("photo_not_loaded")));
    loadImage(model, one, addressOf(content, "medium"), () => {}, failed);
    return one;
  }
  function video(content) {
    const one = /** @type {HTMLVideoElement} */ (h("video", { controls: true, autoplay: true, playsinline: true }));
    openAddress(model, addressOf(content)).then((address) => (one.src = address)).catch(() => {});
    one.addEventListener("error", () => one.replaceWith(h("p", { class: "noimg" }, t("video_not_played"))));
    return one;
  }

  element.addEventListener("keydown", (event) => {
    const isRtl = document.dir === "rtl";
    const keys = { ArrowLeft: () => go(isRtl ? 1 : -1), ArrowRight: () => go(isRtl ? -1 : 1), "+": () => setZoom(zoom * ZOOM_STEP), "=": () => setZoom(zoom * ZOOM_STEP), "-": () => setZoom(zoom / ZOOM_STEP), 0: () => setZoom(1) };
    const found = keys[event.key];
    if (!found || (event.target instanceof HTMLVideoElement && event.key.startsWith("Arrow"))) return;
    event.preventDefault();
    found();
  });
  pic.addEventListener("wheel", (event) => {
    event.preventDefault();
    setZoom(zoom * (event.deltaY < 0 ? 1.15 : 1 / 1.15));
  }, { passive: false });
  pic.addEventListener("dblclick", () => setZoom(zoom > 1 ? 1 : 2));
  listenToFingers(pic, { get: () => zoom, set: setZoom, go, close: () => element.close(), move: (x, y) => ((pan = { x: pan.x + x, y: pan.y + y }), apply()) });
  pic.addEventListener("click", (event) => {
    if (event.target === pic && zoom === 1) element.close();
  });
  element.addEventListener("close", () => {
    element.remove();
    const back = log.elementOf(chat.keyFor(current()));
    if (back) log.focusRow(chat.keyFor(current()));
    else chat.focus();
  });
  draw();
  document.body.append(element);
  element.showModal();
  close.focus();
}

/** Two fingers zoom, one moves a zoomed picture, else turns the page or closes it downwards. */
function listenToFingers(pic, view) {
  const fingers = new Map();
  let start = { x: 0, y: 0, gap: 0, zoom: 1 };
  const gap = () => {
    const [a, b] = [...fingers.values()];
    return Math.hypot(a.x - b.x, a.y - b.y);
  };
  pic.addEventListener("pointerdown", (event) => {
    if (event.target.closest("button, video")) return;
    fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    start = { x: event.clientX, y: event.clientY, gap: fingers.size === 2 ? gap() : 0, zoom: view.get() };
  });
  pic.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId);
    if (!before) return;
    fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (fingers.size === 2 && start.gap > 0) view.set((start.zoom * gap()) / start.gap);
    else if (view.get() > 1) view.move(event.clientX - before.x, event.clientY - before.y);
  });
  const up = (event) => {
    const was = fingers.size;
    if (!fingers.delete(event.pointerId) || was !== 1 || view.get() > 1 || event.type === "pointercancel") return;
    const [x, y] = [event.clientX - start.x, event.clientY - start.y];
    if (y > SWIPE_PX && y > Math.abs(x)) view.close();
    else if (Math.abs(x) > SWIPE_PX && Math.abs(x) > Math.abs(y)) view.go(x < 0 ? 1 : -1);
  };
  for (const name of ["pointerup", "pointercancel"]) pic.addEventListener(name, up);
}
