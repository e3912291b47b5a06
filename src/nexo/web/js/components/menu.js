/** Menus and other things that open beside a button; on narrow screens they come up from below. */

import { h, icon, isNarrow, pointerIsFine } from "../dom.js";
import { openLayer } from "../layers.js";

/**
 * @typedef {{icon?: string, text: string, end?: string, keys?: string, danger?: boolean, disabled?: boolean, checked?: boolean,
 *   act?: () => void} | "line" | null | false | undefined} MenuItem
 */

let open = null;

/** @returns {boolean} whether there was one */
export function closePopover() {
  if (!open) return false;
  open.close();
  return true;
}

/**
 * Shows `content` beside `anchor` until something else is clicked, Escape is pressed or `close` is called. Focus goes
 * back.
 * @param {HTMLElement} anchor @param {HTMLElement} content
 * @param {{point?: {x: number, y: number}, onclose?: () => void, keepsTab?: boolean, beside?: Element}} [more] keepsTab: Tab moves inside it; beside: where it is shown, if not at the anchor
 * @returns {() => void} close
 */
export function openPopover(anchor, content, more = {}) {
  open?.close();
  const narrow = isNarrow();
  const home = anchor.closest("dialog[open]") ?? document.getElementById("layer") ?? document.body;
  const shade = narrow ? h("div", { class: "shade", onclick: () => close() }) : null;
  const outside = (event) => {
    if (!content.contains(event.target) && !anchor.contains(event.target)) close(false);
  };
  const onkey = (event) => {
    if (event.key === "Escape" || (event.key === "Tab" && !more.keepsTab)) {
      event.preventDefault();
      event.stopPropagation();
      close();
    }
  };
  const close = (refocus = true) => {
    if (open?.content !== content) return;
    open = null;
    leave();
    grown.disconnect();
    content.remove();
    shade?.remove();
    document.removeEventListener("pointerdown", outside, true);
    window.removeEventListener("resize", onresize);
    if (anchor.hasAttribute("aria-expanded")) anchor.setAttribute("aria-expanded", "false");
    if (refocus) focusAgain(anchor);
    more.onclose?.();
  };
  const onresize = () => close(false);
  content.classList.add("floating");
  if (narrow) content.classList.add("fromBelow");
  content.addEventListener("keydown", onkey);
  document.addEventListener("pointerdown", outside, true);
  window.addEventListener("resize", onresize);
  if (shade) home.append(shade);
  home.append(content);
  // What is loaded after it has opened makes it grow; by then the anchor may have been drawn anew.
  const at = more.point ? new DOMRect(more.point.x, more.point.y, 0, 0) : (more.beside ?? anchor).getBoundingClientRect();
  const grown = new ResizeObserver(() => place(content, at));
  if (!narrow) grown.observe(content);
  if (!narrow) place(content, at);
  if (anchor.hasAttribute("aria-expanded")) anchor.setAttribute("aria-expanded", "true");
  open = { content, close };
  const leave = openLayer(() => close());
  return close;
}

/** Focus goes back to what opened it, or to what that is a part of; if it was drawn anew meanwhile, to the text field. @param {HTMLElement} anchor */
function focusAgain(anchor) {
  const target = anchor.isConnected ? anchor.closest("a[href], button, input, textarea, [tabindex]") : null;
  const field = document.querySelector(".composer textarea");
  /** @type {HTMLElement | null} */ (target ?? (pointerIsFine() ? field : document.querySelector(".chat h1")) ?? field)?.focus({ preventScroll: true });
}

/** Below the anchor where there is room, else above; never over the edge of the window. @param {HTMLElement} content @param {DOMRect} at */
function place(content, at) {
  const box = content.getBoundingClientRect();
  const margin = 8;
  const below = at.bottom + 4;
  const above = at.top - box.height - 4;
  const top = below + box.height + margin <= innerHeight || above < margin ? below : above;
  const left = at.left + box.width + margin <= innerWidth ? at.left : at.right - box.width;
  content.style.setProperty("top", `${Math.max(margin, Math.min(top, innerHeight - box.height - margin))}px`);
  content.style.setProperty("left", `${Math.max(margin, Math.min(left, innerWidth - box.width - margin))}px`);
}

/**
 * An item's `keys` is a letter that chooses it while the menu is open. `head` stands above the items; what it does closes
 * the menu.
 * @param {HTMLElement} anchor @param {string} label @param {MenuItem[]} items
 * @param {{point?: {x: number, y: number}, onclose?: () => void, head?: HTMLElement, classes?: string, beside?: Element}} [more]
 */
export function openMenu(anchor, label, items, more = {}) {
  const menu = h("div", { class: `menu ${more.classes ?? ""}`.trim(), role: "menu", "aria-label": label });
  let close = () => {};
  /** @type {Map<string, () => void>} */
  const letters = new Map();
  if (more.head) {
    menu.append(more.head);
    more.head.addEventListener("click", (event) => {
      if (event.target instanceof Element && event.target.closest("button")) close();
    }, true);
  }
  for (const item of items) {
    if (!item) continue;
    if (item === "line") {
      menu.append(h("hr"));
      continue;
    }
    const act = () => {
      if (item.disabled) return;
      close();
      item.act?.();
    };
    if (item.keys?.length === 1) letters.set(item.keys.toLowerCase(), act);
    const checkable = item.checked !== undefined;
    const attributes = {
      type: "button",
      role: checkable ? "menuitemradio" : "menuitem",
      "aria-checked": checkable ? String(item.checked) : null,
      "aria-disabled": item.disabled ? "true" : null,
      class: item.danger ? "danger" : null,
      tabindex: "-1",
      onclick: act,
    };
    const end = checkable ? item.checked && icon("check", "s end") : item.end && h("span", { class: "end num" }, item.end);
    const keys = item.keys && h("span", { class: "end keys", "aria-hidden": "true" }, item.keys);
    menu.append(h("button", attributes, item.icon && icon(item.icon), h("span", null, item.text), end || keys));
  }
  menu.addEventListener("keydown", (event) => {
    const chosen = event.ctrlKey || event.metaKey || event.altKey ? undefined : letters.get(event.key.toLowerCase());
    if (!chosen) return moveInMenu(menu, event);
    event.preventDefault();
    event.stopPropagation();
    return chosen();
  });
  close = openPopover(anchor, menu, more);
  firstItem(menu)?.focus();
  return close;
}

const itemsOf = (menu) => [...menu.querySelectorAll("[role^=menuitem]")];
const firstItem = (menu) => menu.querySelector(":scope > [role^=menuitem]") ?? itemsOf(menu)[0];

function moveInMenu(menu, event) {
  const items = itemsOf(menu);
  const at = items.indexOf(document.activeElement);
  const next = { ArrowDown: at + 1, ArrowUp: at - 1, ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: items.length - 1 }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  items.at(next % items.length)?.focus();
}
