/** The live page: signs an administrator in, asks the server every two seconds, and draws the answer. */

import { button, fill, h, icon, mark } from "../js/dom.js";
import * as cards from "./cards.js";
import { WINDOW_MS } from "./charts.js";
import { currentSection, frame, section } from "./console.js";
import { Refused, Session } from "./session.js";
import { clock, figure, switchLanguage, t, useLanguage } from "./texts.js";

const EVERY_MS = 2000;
const STALE_MS = 5000;
const ENGINES = { sqlite: "SQLite", mysql: "MySQL/MariaDB", postgresql: "PostgreSQL" };

const root = /** @type {HTMLElement} */ (document.getElementById("root"));
const session = new Session();

// -- signing in -------------------------------------------------------------------------------------------------

function field(id, label, attributes) {
  return h("div", { class: "fieldset" }, h("label", { for: id }, label), h("span", { class: "input" }, h("input", { id, name: id, required: true, ...attributes })));
}

/** @param {string} [failure] */
function showDoor(failure = "") {
  const submit = button(t("sign_in"), { class: "primary block", type: "submit" });
  const form = h(
    "form",
    { "aria-labelledby": "door-title", onsubmit },
    h("h1", { id: "door-title" }, t("title")),
    h("p", null, t("sign_in_hint", { host: location.host })),
    failure && h("p", { class: "failed", role: "alert" }, failure),
    field("user_id", t("user_id"), { autocomplete: "username", autocapitalize: "none", spellcheck: "false" }),
    field("password", t("password"), { type: "password", autocomplete: "current-password" }),
    submit,
  );
  const brand = h("div", { class: "brand" }, mark(), "Nexo");
  fill(root, h("div", { class: "door alone" }, h("main", null, brand, form, h("div", { class: "foot" }, languageButton(() => showDoor(failure))))));
  /** @type {HTMLInputElement} */ (form.querySelector("input")).focus();

  async function onsubmit(event) {
    event.preventDefault();
    const given = new FormData(/** @type {HTMLFormElement} */ (form));
    submit.disabled = true;
    try {
      await session.signIn(String(given.get("user_id")), String(given.get("password")));
      start();
    } catch (error) {
      showDoor(reasonOf(error));
    }
  }
}

function reasonOf(error) {
  if (!(error instanceof Refused)) return t("unreachable");
  if (error.name === "invalid_credentials") return t("refused");
  if (error.name === "too_many_requests") return t("too_many");
  if (error.name === "no_permission") return t("no_permission");
  return error.message;
}

function languageButton(then) {
  const change = () => {
    switchLanguage();
    then();
  };
  return button(t("other_language"), { class: "small", onclick: change });
}

// -- the page ---------------------------------------------------------------------------------------------------

let points = [];
let status = null;
let heardAt = 0;
let paused = false;
let timer = 0;

function start() {
  points = [];
  status = null;
  if (currentSection() !== "live") showSection();
  ask();
}

/** Anything but the live status, which is asked for in the meantime too. */
function showSection() {
  fill(root, frame(session, section(session), { leave, redraw: showSection }));
  /** @type {HTMLElement | null} */ (root.querySelector("main h1"))?.focus({ preventScroll: true });
}

window.addEventListener("hashchange", () => {
  if (!session.isThere) return;
  if (currentSection() === "live") draw();
  else showSection();
});

async function ask() {
  clearTimeout(timer);
  if (!session.isThere) return;
  if (!paused && !document.hidden) {
    try {
      take(await session.stats(points.at(-1)?.at ?? 0));
    } catch (error) {
      if (error instanceof Refused && !["server_busy", "internal_error"].includes(error.name)) {
        session.forget();
        showDoor(error.name === "session_invalid" ? "" : reasonOf(error));
        return;
      }
    }
    draw();
  }
  clearTimeout(timer);
  timer = setTimeout(ask, EVERY_MS);
}

function take(answer) {
  status = answer;
  heardAt = Date.now();
  const oldest = answer.live.now - WINDOW_MS;
  points = [...points, ...answer.live.history].filter((point) => point.at >= oldest);
}

function header() {
  const { state, canary_ms: canaryMs, live } = status;
  const stale = Date.now() - heardAt > STALE_MS && !paused;
  const facts = [
    state !== "not_ready" && h("span", null, t("canary", { ms: figure(canaryMs) })),
    h("span", null, ENGINES[live.engine] ?? live.engine),
    h("span", null, `Nexo ${live.version}`),
    h("span", { class: stale ? "num stale" : "num" }, t(stale ? "stale" : "updated", { time: clock(heardAt) })),
    languageButton(draw),
    button(t(paused ? "resume" : "pause"), { class: "small", "aria-pressed": String(paused), onclick: pause }),
    button(t("sign_out"), { class: "small", onclick: leave }),
  ];
  const sign = icon(state === "ready" ? "check" : "alert", "xs");
  return h("header", null, mark(), h("h1", null, t("title")), cards.tag(state, sign), h("div", { class: "facts" }, ...facts));
}

let announced = "";

function draw() {
  if (currentSection() !== "live") return;
  const acts = { leave, redraw: draw };
  if (status === null) {
    fill(root, frame(session, h("div", { class: "admin" }, h("header", null, mark(), h("h1", null, t("title")), h("div", { class: "facts" }, t("unreachable")))), acts));
    return;
  }
  const { live, state } = status;
  const focused = root.contains(document.activeElement) ? [...root.querySelectorAll("button, a")].indexOf(document.activeElement) : -1;
  const scrolled = [...root.querySelectorAll(".tblwrap")].map((element) => element.scrollLeft);
  const page = h(
      "div",
      { class: "admin" },
      header(),
      h(
        "main",
        null,
        cards.why(status),
        ...cards.figures(live, points),
        cards.latency(live, points),
        cards.stages(live),
        cards.queues(live),
        cards.reasons(live),
        cards.instances(live, state),
        cards.dialects(live),
        cards.delivery(live),
        cards.twoPhase(live),
      ),
  );
  const isOpen = root.querySelector(".console > nav.open") !== null;
  fill(root, frame(session, page, acts));
  root.querySelector(".console > nav")?.classList.toggle("open", isOpen);
  // everything is new: what had the focus has it again, and nothing jumps
  if (focused >= 0) /** @type {HTMLElement | undefined} */ (root.querySelectorAll("button, a")[focused])?.focus();
  root.querySelectorAll(".tblwrap").forEach((element, i) => (element.scrollLeft = scrolled[i] ?? 0));
  if (announced !== state) {
    announced = state;
    document.getElementById("polite").textContent = t(state);
  }
}

function pause() {
  paused = !paused;
  draw();
  if (!paused) ask();
}

async function leave() {
  await session.signOut();
  showDoor();
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) ask();
});

useLanguage();
if (session.isThere) start();
else showDoor();
