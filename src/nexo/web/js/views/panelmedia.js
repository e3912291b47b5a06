/** Photos, files and links of a conversation, by month, 60 at a time. */

import { button, fill, h, icon } from "../dom.js";
import { fullTime } from "../format.js";
import { locale, t } from "../i18n.js";
import { messageAddress } from "../router.js";
import { contentLine, errorText } from "../wording.js";

const PAGE = 60;
const KINDS = { media: ["photo", "video"], files: ["file"], links: ["link"] };
const LINK = /https?:\/\/[^\s<>"']+/;

/** @param {any} model @param {any} conversation @param {"media" | "files" | "links"} tab */
export function mediaList(model, conversation, tab) {
  const element = h("div", { class: "media" });
  const shown = [];
  const before = Object.fromEntries(KINDS[tab].map((kind) => [kind, /** @type {number | null} */ (Infinity)]));
  const draw = (isLoading) => {
    const months = new Map();
    for (const message of shown) {
      const month = new Intl.DateTimeFormat(locale(), { month: "long", year: "numeric" }).format(message.sendAt);
      months.set(month, [...(months.get(month) ?? []), message]);
    }
    const hasMore = Object.values(before).some((seq) => seq !== null);
    fill(
      element,
      [...months].map(([month, messages]) => [h("h3", { class: "month" }, month), tab === "media" ? h("div", { class: "mediagrid" }, messages.map(picture)) : h("ul", { class: "filelist" }, messages.map(line))]),
      shown.length === 0 && !isLoading && h("p", { class: "help" }, t(`no_${tab}`)),
      hasMore && !isLoading && shown.length > 0 && button(t("show_more"), { class: "quiet small", onclick: () => load() }),
    );
  };
  const picture = (message) => {
    const source = model.client.fileUrl(message, "small") ?? message.content?.url;
    const length = message.content?.duration_ms && h("span", { class: "pill" }, minutes(message.content.duration_ms));
    return h("a", { class: "shot", href: messageAddress(conversation.id, message.seq), "aria-label": `${contentLine(message)}, ${fullTime(message.sendAt)}` }, source && h("img", { src: source, alt: "", loading: "lazy", referrerpolicy: "no-referrer" }), length);
  };
  const line = (message) => {
    const text = tab === "links" ? (LINK.exec(typeof message.content === "string" ? message.content : "")?.[0] ?? contentLine(message)) : (message.content?.name ?? contentLine(message));
    const under = `${model.people.name(message.senderId)} · ${fullTime(message.sendAt)}`;
    return h("li", null, h("a", { class: "prow", href: messageAddress(conversation.id, message.seq) }, icon(tab === "links" ? "link" : "file"), h("span", { class: "ell" }, h("span", { class: "ell", dir: "auto" }, text), h("small", null, under))));
  };
  const load = async () => {
    draw(true);
    try {
      for (const kind of KINDS[tab]) {
        if (before[kind] === null) continue;
        const page = await conversation.media(kind, { beforeSeq: before[kind] === Infinity ? undefined : before[kind], limit: PAGE });
        shown.push(...page.messages);
        before[kind] = page.hasMore ? page.nextSeq : null;
      }
      shown.sort((a, b) => b.seq - a.seq);
      draw(false);
    } catch (error) {
      fill(element, h("p", { class: "help" }, errorText(error)), button(t("try_again"), { class: "small", onclick: () => load() }));
    }
  };
  load();
  return element;
}

const minutes = (ms) => `${Math.floor(ms / 60_000)}:${String(Math.floor(ms / 1000) % 60).padStart(2, "0")}`;
