/** Notifications of the browser, and the number in the title. */

import { remember, remembered } from "./prefs.js";
import { t } from "./i18n.js";
import { contentLine } from "./wording.js";

const NAME_MS = 1500; // a notification waits that long for the name of a stranger

/** @returns {"on" | "off" | "denied"} */
export function notificationState() {
  if (!("Notification" in window) || Notification.permission === "denied") return "denied";
  return Notification.permission === "granted" && remembered("notify") === true ? "on" : "off";
}

/** Asks the browser when it has to. @param {boolean} on */
export async function setNotifications(on) {
  remember("notify", on);
  if (on && "Notification" in window && Notification.permission === "default") await Notification.requestPermission();
  return notificationState();
}

/** @param {any} model @param {(conversationId: string) => void} open @returns {() => void} ends it */
export function startNotifying(model, open) {
  const ends = [];
  ends.push(
    model.client.on("message", async ({ message, conversation }) => {
      const isMuted = conversation.recvMsgOpt !== 0 && !message.important;
      const isSeen = document.hasFocus() && model.openId === conversation.id;
      if (notificationState() !== "on" || isMuted || isSeen || message.silent) return;
      await model.people.whenKnown(message.senderId, NAME_MS);
      const face = model.face(conversation);
      const name = model.people.name(message.senderId);
      const text = contentLine(message);
      const body = conversation.type === "group" ? t("prefix", { name }) + text : text;
      // The same tag in all tabs: the message is told once, and the newest of a conversation replaces the one before.
      const note = new Notification(face.name, { body, tag: conversation.id, icon: new URL("../img/icon.svg", import.meta.url).href });
      note.onclick = () => {
        window.focus();
        open(conversation.id);
        note.close();
      };
    }),
  );
  const title = () => {
    const open_ = model.openId ? model.face(model.client.conversation(model.openId)).name : "";
    const unread = model.unread;
    document.title = [unread > 0 ? `(${unread > 999 ? "999+" : unread})` : "", open_, open_ ? "·" : "", "Nexo"].filter(Boolean).join(" ");
  };
  ends.push(model.on("list", title), model.on("opened", title));
  title();
  return () => ends.forEach((end) => end());
}
