/** A picture of a person or a group: the given one, or initials on a colour of their own. */

import { h } from "../dom.js";
import { hue, initials } from "../format.js";

/** Pictures come from the same places as picture messages. @param {string | undefined} url */
export function isImageUrl(url) {
  return typeof url === "string" && /^(?:https?:\/\/[^\s]+|\/files\/f_[A-Za-z0-9]{22})$/i.test(url);
}

/**
 * @param {{id: string, name: string, avatar?: string, isGroup?: boolean, online?: boolean}} who
 * @param {string} [size] s24 … s72
 */
export function avatar(who, size = "") {
  // Decoration, drawn by the style sheet: neither read out nor copied with a message.
  const letters = h("b", { dataset: { letters: initials(who.name, who.isGroup === true) } });
  const classes = ["av", who.isGroup && "group", size].filter(Boolean).join(" ");
  const element = h("span", { class: classes, dataset: { hue: hue(who.id) }, "aria-hidden": "true" }, letters);
  if (isImageUrl(who.avatar)) {
    const picture = h("img", { src: who.avatar, alt: "", loading: "lazy", referrerpolicy: "no-referrer" });
    picture.addEventListener("error", () => picture.remove());
    element.append(picture);
  }
  if (who.online) element.append(h("span", { class: size === "s36" || size === "s32" ? "dot s" : "dot" }));
  return element;
}
