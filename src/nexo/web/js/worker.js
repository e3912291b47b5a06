/** The service worker: it keeps the page for a start without a network, and a new version waits until it is wanted. */

const UPDATE_EVERY_MS = 3_600_000;
const ADDRESS = "/sw.js";

/** @type {ServiceWorkerRegistration | null} */
let registration = null;
let waiting = null;
const listeners = new Set();

/** Only this one script may become a worker. */
function trusted(address) {
  const types = /** @type {any} */ (window).trustedTypes;
  if (!types) return address;
  const policy = types.createPolicy("nexo", {
    createScriptURL: (given) => {
      if (given !== ADDRESS) throw new TypeError("not a script of this page");
      return given;
    },
  });
  return policy.createScriptURL(address);
}

/** Browsers have none on pages without TLS, apart from this machine's own. */
export async function startWorker() {
  if (!("serviceWorker" in navigator) || registration) return;
  try {
    registration = await navigator.serviceWorker.register(trusted(ADDRESS), { updateViaCache: "none" });
  } catch {
    return; // private windows refuse it
  }
  if (!registration) return;
  const look = () => {
    if (!registration?.waiting || !navigator.serviceWorker.controller || waiting === registration.waiting) return;
    waiting = registration.waiting;
    for (const listener of listeners) listener();
  };
  registration.addEventListener("updatefound", () => registration?.installing?.addEventListener("statechange", look));
  look();
  setInterval(() => registration?.update().catch(() => {}), UPDATE_EVERY_MS);
}

/** @param {() => void} listener @returns {() => void} ends it */
export function onUpdate(listener) {
  listeners.add(listener);
  if (waiting) listener();
  return () => listeners.delete(listener);
}

/** The new version takes the page over. */
export function takeUpdate() {
  navigator.serviceWorker.addEventListener("controllerchange", () => location.reload(), { once: true });
  waiting?.postMessage({ type: "take over" });
}

/** For push: resolves when the worker is there, or null where there is none. */
export async function workerRegistration() {
  if (!("serviceWorker" in navigator) || !registration) return null;
  return navigator.serviceWorker.ready;
}
