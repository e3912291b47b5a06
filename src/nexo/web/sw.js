/**
 * The service worker: the page starts without a network, and shows what arrives while it is closed. The server puts
 * VERSION (a digest of all files) and SHELL (the addresses of the page) in front.
 */
/* global VERSION, SHELL, clients */

const CACHE = `nexo-${VERSION}`;
const PAGES = /^\/(?:j\/[^/]+)?$/;

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(SHELL)));
});

self.addEventListener("activate", (event) => {
  const old = async () => {
    for (const name of await caches.keys()) if (name.startsWith("nexo-") && name !== CACHE) await caches.delete(name);
    await self.clients.claim();
  };
  event.waitUntil(old());
});

self.addEventListener("message", (event) => {
  if (event.data?.type === "take over") self.skipWaiting();
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== location.origin) return;
  if (request.mode === "navigate" && PAGES.test(url.pathname)) event.respondWith(kept("/", request));
  else if (url.pathname.startsWith(`/web/${VERSION}/`)) event.respondWith(kept(request, request));
});

/** From the cache of this version, else from the server. */
async function kept(key, request) {
  const cache = await caches.open(CACHE);
  const found = await cache.match(key);
  if (found) return found;
  const answer = await fetch(request);
  if (answer.ok && request.mode !== "navigate") await cache.put(request, answer.clone());
  return answer;
}


self.addEventListener("push", (event) => {
  const data = event.data?.json() ?? {};
  event.waitUntil(Promise.all([show(data), badge(data.badge)]));
});

/** One notification per conversation or call; what was read on another device goes away. */
async function show(data) {
  if (data.kind === "read" || data.ended) {
    for (const note of await self.registration.getNotifications({ tag: data.tag })) note.close();
    return;
  }
  // A window that is looked at shows the message itself.
  const windows = await self.clients.matchAll({ type: "window" });
  const isSeen = windows.some((one) => one.focused && new URL(one.url).hash.includes(encodeURIComponent(data.conversation_id ?? "-")));
  if (isSeen && data.kind === "message") return;
  const picture = `/web/${VERSION}/img/`;
  await self.registration.showNotification(data.title || "Nexo", {
    body: data.body,
    tag: data.tag,
    renotify: !data.quiet,
    silent: Boolean(data.quiet),
    requireInteraction: data.kind === "call",
    data,
    icon: `${picture}icon-192.png`,
    badge: `${picture}badge.png`,
  });
}

async function badge(count) {
  if (count === undefined || !("setAppBadge" in navigator)) return;
  await (count > 0 ? navigator.setAppBadge(count) : navigator.clearAppBadge());
}

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data?.conversation_id));
});

/** In a window that is there, else in a new one. */
async function open(conversationId) {
  const address = conversationId ? `/#/c/${encodeURIComponent(conversationId)}` : "/";
  const windows = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const page = windows.find((one) => PAGES.test(new URL(one.url).pathname));
  if (!page) return self.clients.openWindow(address);
  await page.focus();
  if (conversationId) page.postMessage({ open: conversationId });
}
