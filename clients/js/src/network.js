// What a browser knows of the network and of being looked at.

/** @import { Link } from "./core/link.js" */

/**
 * @param {(react: (link: Link) => void) => void} drive
 * @param {() => number} clock
 * @returns {() => void} stops listening
 */
export function watchNetwork(drive, clock) {
  const { document, navigator } = globalThis;
  if (typeof globalThis.addEventListener !== "function" || typeof navigator?.onLine !== "boolean") return () => {};
  const listening = new AbortController();
  /** @param {EventTarget} target @param {string} name @param {(link: Link, now: number) => void} react */
  const hear = (target, name, react) => {
    target.addEventListener(name, () => drive((link) => react(link, clock())), { signal: listening.signal });
  };
  hear(globalThis, "online", (link, now) => link.networkUp(now));
  hear(globalThis, "offline", (link, now) => link.networkDown(now));
  if (document) {
    hear(document, "visibilitychange", (link, now) => {
      if (document.visibilityState === "visible") link.wake(now);
    });
  }
  return () => listening.abort();
}
