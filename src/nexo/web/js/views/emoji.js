/** Choosing an emoji: by name, by group, from those used before; skin tones. */

import { openPopover } from "../components/menu.js";
import { fill, h, icon, pointerIsFine } from "../dom.js";
import { chooseTone, chosenTone, findEmoji, loadEmoji, nameOf, recentEmoji, tones, useEmoji, withTone } from "../emojinames.js";
import { tellFailure } from "../failures.js";
import { t } from "../i18n.js";
import { listenToHold } from "./press.js";

const ACROSS = 8;
const FOUND_MAX = 80;
const TABS = { smileys: "😀", people: "👋", nature: "🐻", food: "🍎", travel: "✈️", activities: "⚽", objects: "💡", symbols: "❤️", flags: "🏁" };
const HAND = { sign: "✋", hasTones: true, names: ["hand"], zh: "" };

/**
 * @param {HTMLElement} anchor @param {(emoji: string) => void} onpick
 * @param {() => void} [onclose] where the focus goes afterwards
 * @param {{staysWithShift?: boolean}} [how]
 */
export async function openEmoji(anchor, onpick, onclose, how = {}) {
  let groups;
  try {
    groups = await loadEmoji();
  } catch (error) {
    tellFailure(error);
    return;
  }
  const find = /** @type {HTMLInputElement} */ (h("input", { type: "search", placeholder: t("search_emoji"), "aria-label": t("search_emoji"), dir: "auto" }));
  const hand = h("button", { type: "button", class: "hand", "aria-label": t("skin_tone"), title: t("skin_tone"), onclick: () => showTones(HAND, null) });
  const tabs = h("div", { class: "tabs9", role: "tablist", "aria-label": t("emoji") });
  const pane = h("div", { class: "pane", role: "tabpanel", tabindex: "-1" });
  const foot = h("div", { class: "foot", "aria-hidden": "true" });
  const toneBar = h("div", { class: "tones", role: "group", "aria-label": t("skin_tone") });
  toneBar.hidden = true;
  const element = h("div", { class: "menu emoji", role: "dialog", "aria-label": t("emoji") }, h("div", { class: "find" }, h("label", { class: "search" }, icon("search", "s"), find), hand), tabs, toneBar, pane, foot);
  let group = "smileys";
  const byNode = new WeakMap();

  const pick = (sign, keep) => {
    useEmoji(sign);
    if (!keep) close();
    onpick(sign);
    if (keep) find.focus();
  };
  const cell = (emoji, at) => {
    const sign = withTone(emoji);
    const node = h("button", { type: "button", tabindex: at === 0 ? "0" : "-1", "aria-label": nameOf(emoji), title: nameOf(emoji) }, sign);
    byNode.set(node, { emoji, sign });
    return h("span", { role: "gridcell" }, node);
  };
  const grid = (list, label) => {
    const rows = [];
    for (let from = 0; from < list.length; from += ACROSS) rows.push(h("div", { class: "g", role: "row" }, list.slice(from, from + ACROSS).map((emoji, at) => cell(emoji, from + at))));
    return h("div", { role: "grid", "aria-label": label }, rows);
  };
  const plain = (sign) => ({ sign, hasTones: false, names: [sign], zh: "" });
  const known = new Map([...groups.values()].flat().map((emoji) => [emoji.sign, emoji]));
  const named = (sign) => {
    const base = known.get(sign) ?? known.get(sign.replace(/[\u{1F3FB}-\u{1F3FF}]/gu, ""));
    return base ? { ...base, sign, hasTones: false } : plain(sign);
  };
  function draw() {
    hand.textContent = withTone(HAND);
    const query = find.value.trim();
    const choose = (name) => () => {
      group = name;
      find.value = "";
      draw();
    };
    fill(tabs, Object.entries(TABS).map(([name, sign]) => h("button", { type: "button", role: "tab", tabindex: name === group ? "0" : "-1", "aria-selected": String(!query && name === group), "aria-label": t(`emoji_${name}`), title: t(`emoji_${name}`), onclick: choose(name) }, sign)));
    if (query) {
      const found = findEmoji(groups, query, FOUND_MAX);
      fill(pane, found.length ? grid(found, t("emoji")) : h("p", { class: "dim none", role: "status" }, t("emoji_none", { q: query })));
      show(pane.querySelector("[role=gridcell] button"));
      return;
    }
    const recents = recentEmoji().map(named);
    fill(pane, recents.length > 0 && group === "smileys" && [h("h4", null, t("recent")), grid(recents, t("recent"))], h("h4", null, t(`emoji_${group}`)), grid(groups.get(group) ?? [], t(`emoji_${group}`)));
    pane.scrollTop = 0;
  }
  function show(node) {
    for (const one of pane.querySelectorAll(".is-active")) one.classList.remove("is-active");
    const found = node && byNode.get(node);
    node?.classList.add("is-active");
    fill(foot, found && [h("span", null, found.sign), h("b", null, nameOf(found.emoji)), h("span", { class: "right" }, `:${found.emoji.names[0]}:`)]);
  }
  function showTones(emoji, node) {
    const chosen = chosenTone();
    toneBar.hidden = false;
    fill(
      toneBar,
      tones().map((tone, at) =>
        h("button", { type: "button", class: tone === chosen ? "is-active" : null, "aria-label": t("tone_n", { n: at }), onclick: () => tonePicked(emoji, node, at, tone) }, withTone(emoji, tone)),
      ),
    );
    toneBar.querySelector("button")?.focus();
  }
  function tonePicked(emoji, node, at, tone) {
    toneBar.hidden = true;
    if (node) return pick(withTone(emoji, tone), false);
    chooseTone(at);
    draw();
    hand.focus();
    return undefined;
  }

  pane.addEventListener("click", (event) => {
    const found = byNode.get(/** @type {Element} */ (event.target).closest("[role=gridcell] button"));
    if (found) pick(found.sign, Boolean(how.staysWithShift && event.shiftKey));
  });
  pane.addEventListener("pointerover", (event) => show(/** @type {Element} */ (event.target).closest?.("[role=gridcell] button")));
  pane.addEventListener("focusin", (event) => show(event.target));
  pane.addEventListener("contextmenu", (event) => {
    const node = /** @type {Element} */ (event.target).closest("[role=gridcell] button");
    const found = node && byNode.get(node);
    event.preventDefault();
    if (found?.emoji.hasTones) showTones(found.emoji, node);
  });
  listenToHold(pane, (target) => {
    const node = target.closest("[role=gridcell] button");
    const found = node && byNode.get(node);
    if (found?.emoji.hasTones) showTones(found.emoji, node);
  });
  pane.addEventListener("keydown", (event) => {
    const node = /** @type {HTMLElement} */ (event.target).closest("[role=gridcell] button");
    if (!node) return;
    const found = byNode.get(node);
    if (event.altKey && event.key === "ArrowDown" && found?.emoji.hasTones) showTones(found.emoji, node);
    else if (event.key === "Enter" || event.key === " ") pick(found.sign, Boolean(how.staysWithShift && event.shiftKey));
    else if (!moveIn(pane, node, event.key, find)) return;
    event.preventDefault();
    event.stopPropagation();
  });
  toneBar.addEventListener("keydown", (event) => {
    const all = [...toneBar.querySelectorAll("button")];
    const at = all.indexOf(/** @type {any} */ (document.activeElement));
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1 }[event.key];
    if (next !== undefined) all.at(next % all.length)?.focus();
  });
  tabs.addEventListener("keydown", (event) => {
    const all = /** @type {HTMLElement[]} */ ([...tabs.children]);
    const at = all.indexOf(/** @type {any} */ (document.activeElement));
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1 }[event.key];
    if (next === undefined || at < 0) return;
    const to = (next + all.length) % all.length;
    all[to].click();
    /** @type {HTMLElement} */ (tabs.children[to]).focus();
  });
  find.addEventListener("input", draw);
  find.addEventListener("keydown", (event) => {
    const first = /** @type {HTMLElement | null} */ (pane.querySelector("[role=gridcell] button"));
    if (event.key === "ArrowDown") first?.focus();
    else if (event.key === "Enter" && !event.isComposing && first && find.value.trim()) pick(byNode.get(first).sign, Boolean(how.staysWithShift && event.shiftKey));
    else return;
    event.preventDefault();
  });
  draw();
  const close = openPopover(anchor, element, { onclose: () => onclose?.(), keepsTab: true, beside: anchor.querySelector(":scope > .bubble") ?? undefined });
  if (pointerIsFine()) find.focus();
  else pane.focus(); // it stands where a keyboard would come up
}

/** In two dimensions; upwards out of the grid to the search. */
function moveIn(pane, node, key, find) {
  const all = [...pane.querySelectorAll("[role=gridcell] button")];
  const at = all.indexOf(node);
  const row = node.closest("[role=row]");
  const column = [...row.querySelectorAll("button")].indexOf(node);
  const rows = [...pane.querySelectorAll("[role=row]")];
  const beside = (step) => {
    const other = rows[rows.indexOf(row) + step];
    if (!other) return step < 0 ? find : null;
    const cells = other.querySelectorAll("button");
    return cells[Math.min(column, cells.length - 1)];
  };
  const targets = { ArrowRight: () => all[at + 1], ArrowLeft: () => all[at - 1], ArrowDown: () => beside(1), ArrowUp: () => beside(-1), Home: () => row.querySelector("button"), End: () => row.querySelector("[role=gridcell]:last-child button") };
  const target = targets[key];
  if (!target) return false;
  target()?.focus();
  return true;
}
