// The events of a browser about its network and the visibility of the page.

/** @import { Connection } from "./core/connection.js" */

/**
 * @param {(react: (link: Connection) => void) => void} drive
 * @param {() => number} clock
 * @returns {() => void} stops listening
 */
export function watchNetwork(drive, clock) {
  const { document, navigator } = globalThis;
  if (typeof globalThis.addEventListener !== "function" || typeof navigator?.onLine !== "boolean") return () => {};
  const listening = new AbortController();
  /** @param {EventTarget} target @param {string} name @param {(link: Connection, now: number) => void} react */
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
