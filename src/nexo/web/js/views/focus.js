/** Where the focus is: typing reaches the composer from anywhere, and the focus never falls to the page's body. */

import { isTextField, pointerIsFine } from "../dom.js";

/** To the text field; for fingers to the heading of the conversation, so that no keyboard comes up. */
export function focusHome() {
  const field = document.querySelector(".composer textarea");
  const heading = document.querySelector(".chat h1");
  const home = pointerIsFine() && field?.checkVisibility() ? field : heading?.checkVisibility() ? heading : document.querySelector(".side input, .side a, .side button");
  /** @type {HTMLElement | null} */ (home)?.focus({ preventScroll: true });
}

const isBusy = () => document.querySelector("dialog[open], .floating, .stage:not([hidden])") !== null;

/** A character that is being written, also by an input method. @param {KeyboardEvent} event */
function isWriting(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.key === " ") return false;
  return event.keyCode === 229 || event.key === "Process" || [...event.key].length === 1;
}

/**
 * @param {{composer: {field: HTMLTextAreaElement, focus: () => void}, isSelecting: boolean}} chat
 * @returns {() => void} end
 */
export function keepFocus(chat) {
  const onkey = (/** @type {KeyboardEvent} */ event) => {
    if (event.defaultPrevented || !isWriting(event) || isTextField(event.target) || isBusy() || chat.isSelecting) return;
    const at = /** @type {HTMLElement} */ (event.target);
    if (at.isContentEditable || at.closest?.("[role=menu], [role=listbox], [role=grid], .panel")) return;
    if (chat.composer.field.checkVisibility()) chat.composer.focus(); // during keydown, so that the character lands there
  };
  let pressed = 0;
  const onpress = () => (pressed = performance.now());
  const onlost = () =>
    requestAnimationFrame(() => {
      // Who presses beside everything means it, and may be selecting text.
      const isPressed = performance.now() - pressed < 500;
      if (isPressed || document.activeElement !== document.body || !document.hasFocus() || isBusy()) return;
      focusHome();
    });
  const watch = new MutationObserver(onlost); // no event is sent when the element with the focus is removed
  watch.observe(document.body, { childList: true, subtree: true });
  document.addEventListener("keydown", onkey);
  document.addEventListener("focusout", onlost);
  document.addEventListener("pointerdown", onpress, true);
  return () => {
    watch.disconnect();
    document.removeEventListener("keydown", onkey);
    document.removeEventListener("focusout", onlost);
    document.removeEventListener("pointerdown", onpress, true);
  };
}
