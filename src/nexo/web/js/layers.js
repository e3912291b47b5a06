/**
 * Back on a phone closes what is on top: every layer (sheet, dialog, find bar) has an entry in the history. A layer that
 * closes by itself takes its entry back, unless the page goes somewhere else in the same moment: that address then takes
 * the entry's place.
 */

import { isNarrow } from "./dom.js";

const stack = [];
let stale = 0;
let timer = 0;

/** @param {() => void} close called when Back is pressed @returns {() => void} call it when the layer has closed */
export function openLayer(close) {
  if (!isNarrow()) return () => {};
  if (stale > 0) stale -= 1; // one closes and another opens: it takes the entry over
  else history.pushState({ layer: stack.length + 1 }, "");
  const layer = { close };
  stack.push(layer);
  return () => {
    const at = stack.indexOf(layer);
    if (at < 0) return;
    stack.splice(at, 1);
    stale += 1;
    clearTimeout(timer);
    timer = window.setTimeout(() => {
      const steps = stale;
      stale = 0;
      if (steps > 0) history.go(-steps);
    });
  };
}

/** Goes to an address of the page, in place of an entry that nothing needs any more. @param {string} address */
export function goTo(address) {
  if (stale > 0) {
    stale -= 1;
    location.replace(address);
  } else location.hash = address;
}

/** To the address before this one, if that is it; else there, without a new entry. @param {string} address */
export function backTo(address) {
  if (history.state?.from === address) history.back();
  else location.replace(address);
}

let here = location.hash || "#/";
window.addEventListener("hashchange", () => {
  const from = here;
  here = location.hash || "#/";
  if (history.state === null) history.replaceState({ from }, "");
});

window.addEventListener("popstate", () => {
  const depth = history.state?.layer ?? 0;
  while (stack.length > depth) stack.pop().close();
});
