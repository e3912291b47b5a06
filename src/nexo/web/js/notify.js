/** Notifications of the browser, and the number in the title. */

import { remember, remembered } from "./prefs.js";
import { currentRoute } from "./router.js";
import { currentLanguage, t } from "./i18n.js";
import { chime } from "./sound.js";
import { contentLine } from "./wording.js";
import { workerRegistration } from "./worker.js";

const ICON = new URL("../img/icon-192.png", import.meta.url).href;
const NAME_MS = 1500; // a notification waits that long for the name of a stranger

/** @returns {"on" | "off" | "denied"} */
export function notificationState() {
  if (!("Notification" in window) || Notification.permission === "denied") return "denied";
  return Notification.permission === "granted" && remembered("notify") === true ? "on" : "off";
}

/** Asks the browser when it has to, and registers it for push. @param {boolean} on @param {any} model */
export async function setNotifications(on, model) {
  remember("notify", on);
  if (on && "Notification" in window && Notification.permission === "default") await Notification.requestPermission();
  await (notificationState() === "on" ? registerPush(model) : unregisterPush(model)).catch(() => {});
  return notificationState();
}

/** So that messages arrive while no window is open. Without a service worker, or on a server without push, windows tell alone. */
export async function registerPush(model) {
  if (notificationState() !== "on") return;
  const worker = await workerRegistration();
  if (!worker?.pushManager) return;
  const { kinds, web } = await model.client.call("GET", "/push/config", {});
  if (!kinds.includes("web")) return;
  const subscription = await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: web.public_key });
  await model.client.call("POST", "/push/register", { kind: "web", subscription: subscription.toJSON(), device_id: model.client.session.deviceId, lang: currentLanguage() });
}

async function unregisterPush(model) {
  const worker = await workerRegistration();
  const subscription = await worker?.pushManager?.getSubscription();
  await subscription?.unsubscribe();
  if (subscription) await model.client.call("POST", "/push/unregister", { kind: "web" });
}

/** @param {any} model @param {(conversationId: string) => void} open @returns {() => void} ends it */
export function startNotifying(model, open) {
  const ends = [];
  ends.push(
    model.client.on("message", async ({ message, conversation }) => {
      const isMuted = (conversation.recvMsgOpt !== 0 || (conversation.silentUntil ?? 0) > Date.now()) && !message.important;
      const isSeen = document.hasFocus() && model.openId === conversation.id;
      if (isMuted || isSeen || message.silent) return;
      if (message.senderId !== model.userId && message.msgType < 100 && model.connection.state === "online") chime();
      if (notificationState() !== "on") return;
      await model.people.whenKnown(message.senderId, NAME_MS);
      const face = model.face(conversation);
      const name = model.people.name(message.senderId);
      const text = contentLine(message);
      const body = conversation.type === "group" ? t("prefix", { name }) + text : text;
      // The same tag in all tabs: the message is shown once, and the newest of a conversation replaces the one before.
      const worker = await workerRegistration();
      const data = { conversation_id: conversation.id };
      if (worker) return void worker.showNotification(face.name, { body, tag: conversation.id, data, icon: ICON });
      const note = new Notification(face.name, { body, tag: conversation.id, icon: ICON });
      note.onclick = () => {
        window.focus();
        open(conversation.id);
        note.close();
      };
    }),
  );
  let shown = -1;
  const title = () => {
    if (currentRoute().page) return; // the page has its own
    const open_ = model.openId ? model.face(model.client.conversation(model.openId)).name : "";
    const unread = model.unread;
    if (unread !== shown) (unread > 0 ? navigator.setAppBadge?.(unread) : navigator.clearAppBadge?.())?.catch(() => {});
    shown = unread;
    document.title = [unread > 0 ? `(${unread > 999 ? "999+" : unread})` : "", open_, open_ ? "·" : "", "Nexo"].filter(Boolean).join(" ");
  };
  ends.push(model.on("list", title), model.on("opened", title), model.on("listed", () => registerPush(model).catch(() => {})));
  const clicked = (event) => event.data?.open && open(event.data.open);
  navigator.serviceWorker?.addEventListener("message", clicked);
  ends.push(() => navigator.serviceWorker?.removeEventListener("message", clicked));
  title();
  return () => ends.forEach((end) => end());
}
