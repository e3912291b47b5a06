/**
 * A finger held on a message. One recogniser: after its time the sheet opens while the finger is down, and that pointer
 * can do nothing more: its release and its click are swallowed, so they neither close the sheet nor press what is on it.
 */

const HOLD_MS = 450;
const MOVES_PX = 10;

/**
 * @param {HTMLElement} element
 * @param {(target: Element) => void} onhold
 * @returns {() => void} end
 */
export function listenToHold(element, onhold) {
  let timer = 0;
  let pointer = -1;
  let start = { x: 0, y: 0 };
  const stop = () => {
    clearTimeout(timer);
    pointer = -1;
  };
  const down = (event) => {
    stop();
    if (event.pointerType !== "touch" || !event.isPrimary) return;
    pointer = event.pointerId;
    start = { x: event.clientX, y: event.clientY };
    const { target } = event;
    timer = window.setTimeout(() => {
      swallow(pointer);
      pointer = -1;
      onhold(target);
    }, HOLD_MS);
  };
  const move = (event) => {
    if (event.pointerId === pointer && Math.hypot(event.clientX - start.x, event.clientY - start.y) > MOVES_PX) stop();
  };
  // Browsers answer a long touch with a menu of their own.
  const menu = (event) => {
    if (event.pointerType === "touch" || pointer >= 0) event.preventDefault();
  };
  element.addEventListener("pointerdown", down);
  element.addEventListener("pointermove", move);
  for (const name of ["pointerup", "pointercancel"]) element.addEventListener(name, stop);
  element.addEventListener("contextmenu", menu);
  return stop;
}

/** Nothing that this pointer still does reaches anything. @param {number} pointerId */
export function swallow(pointerId) {
  const catches = ["pointerup", "pointermove", "pointercancel", "click", "contextmenu", "touchend", "mousedown", "mouseup"];
  const eat = (event) => {
    if (event.pointerId !== undefined && event.pointerId !== -1 && event.pointerId !== pointerId && event.type.startsWith("pointer")) return;
    event.stopPropagation();
    if (event.cancelable) event.preventDefault();
    if (event.type === "click" || event.type === "pointercancel") end();
    else if (event.type === "pointerup") setTimeout(end, 350); // the click comes after it, or not
  };
  const anew = (event) => {
    if (event.pointerId !== pointerId) end();
  };
  const end = () => {
    for (const name of catches) window.removeEventListener(name, eat, true);
    window.removeEventListener("pointerdown", anew, true);
  };
  for (const name of catches) window.addEventListener(name, eat, { capture: true, passive: false });
  window.addEventListener("pointerdown", anew, true); // a new press means what it says
}
