/** The console: sections beside the live status. Everything it does is written to the audit log by the server. */

import { button, fill, h, icon, mark } from "../js/dom.js";
import { auditSection } from "./audit.js";
import { groupSection, userSection } from "./accounts.js";
import { moderationSection } from "./moderation.js";
import { switchLanguage, t } from "./texts.js";
import { traceSection } from "./trace.js";

export const SECTIONS = { live: "chart", users: "users", groups: "chat", moderation: "shield", trace: "trace", audit: "audit" };

/** @returns {string} the section in the address */
export function currentSection() {
  const [, name] = location.hash.split("/");
  return name in SECTIONS ? name : "live";
}

/** The frame around every section. @param {any} session @param {HTMLElement} content @param {{leave: () => void, redraw: () => void}} acts */
export function frame(session, content, acts) {
  const now = currentSection();
  const link = (name) => h("a", { href: `#/${name}`, "aria-current": name === now ? "page" : null }, icon(SECTIONS[name]), t(`section_${name}`));
  const nav = h("nav", { "aria-label": t("sections") }, h("div", { class: "brand" }, mark(), h("span", null, "Nexo")), Object.keys(SECTIONS).map(link));
  // On a phone only the present one is shown: pressing it opens the list.
  nav.addEventListener("click", (event) => {
    const isSame = event.target instanceof Element && event.target.closest("a[aria-current]");
    if (!isSame || !matchMedia("(max-width: 900px)").matches) return;
    event.preventDefault();
    nav.classList.toggle("open");
  });
  const change = () => {
    switchLanguage();
    acts.redraw();
  };
  // the live status has these at its head
  if (now !== "live") nav.append(h("div", { class: "foot" }, button(t("other_language"), { class: "small", onclick: change }), " ", button(t("sign_out"), { class: "small", onclick: acts.leave })));
  return h("div", { class: "console" }, nav, content);
}

/** @param {any} session @returns {HTMLElement} the section of the address, other than the live status */
export function section(session) {
  const call = session.call.bind(session);
  const made = { users: userSection, groups: groupSection, moderation: moderationSection, trace: traceSection, audit: auditSection }[currentSection()];
  const main = h("main", { class: "part" });
  const title = h("h1", { tabindex: "-1" }, t(`section_${currentSection()}`));
  const header = h("header", null, title);
  const body = h("div");
  fill(main, header, body);
  made?.({ call, header, body });
  return main;
}
