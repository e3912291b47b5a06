/**
 * Recording a voice message. Held by a finger it is sent on release; started by mouse or keyboard it continues until it is
 * sent or deleted. What ends it unasked keeps it.
 */

import { announce } from "../components/announce.js";
import { button, fill, h, icon, iconButton } from "../dom.js";
import { lengthText } from "../files.js";
import { t } from "../i18n.js";
import { condensed, player, waveSvg } from "./voice.js";

const HOLD_MS = 250;
const SHORT_MS = 1000;
const LONGEST_MS = 600_000;
const CANCEL_PX = 96;
const LOCK_PX = 72;
const LEVEL_EVERY_MS = 50;
const SHOWN = 64;
const TYPES = ["audio/webm;codecs=opus", "audio/ogg;codecs=opus", "audio/mp4", "audio/webm"];

export const canRecord = () => typeof MediaRecorder === "function" && Boolean(navigator.mediaDevices?.getUserMedia);

export class Recorder {
  /** @type {"" | "asking" | "refused" | "held" | "locked" | "paused" | "kept"} */
  state = "";
  /** @type {MediaRecorder | null} */
  #recorder = null;
  /** @type {MediaStream | null} */
  #stream = null;
  /** @type {Blob[]} */
  #parts = [];
  /** @type {number[]} */
  #levels = [];
  #timer = 0;
  #before = 0;
  #since = 0;
  /** @type {HTMLAudioElement | null} */
  #listening = null;

  /** @param {{onchange: () => void, onsend: (blob: Blob, ms: number, levels: number[]) => void, onshort: () => void}} hooks */
  constructor(hooks) {
    this.hooks = hooks;
    this.element = h("div", { class: "rec", role: "group", "aria-label": t("recording_voice") });
    this.lock = h("div", { class: "lockup", "aria-hidden": "true" }, icon("lock"), icon("up"));
    this.lock.hidden = true;
    const hide = () => document.hidden && this.keep();
    document.addEventListener("visibilitychange", hide);
    this.end = () => {
      document.removeEventListener("visibilitychange", hide);
      this.#release();
    };
  }

  get isOn() {
    return this.state !== "";
  }

  get ms() {
    return this.#before + (this.#since ? Date.now() - this.#since : 0);
  }

  /** The button that starts it. @param {HTMLElement} mic @param {() => boolean} isAllowed */
  listen(mic, isAllowed) {
    let hold = 0;
    let start = { x: 0, y: 0 };
    let isHeld = false;
    mic.addEventListener("click", () => {
      if (isAllowed() && !isHeld && this.state === "") this.start("locked");
      isHeld = false;
    });
    mic.addEventListener("pointerdown", (event) => {
      if (event.pointerType !== "touch" || !isAllowed()) return;
      event.preventDefault();
      isHeld = true;
      start = { x: event.clientX, y: event.clientY };
      mic.setPointerCapture?.(event.pointerId);
      hold = window.setTimeout(() => this.start("held"), HOLD_MS);
    });
    const move = (event) => {
      if (!isHeld || this.state !== "held") return;
      if (start.x - event.clientX > CANCEL_PX) this.cancel();
      else if (start.y - event.clientY > LOCK_PX) this.#set("locked");
    };
    const up = (event) => {
      if (!isHeld) return;
      clearTimeout(hold);
      if (this.state === "asking" || this.state === "") this.hooks.onshort();
      if (this.state === "asking") this.cancel();
      else if (this.state === "held" && event.type === "pointercancel") this.keep();
      else if (this.state === "held") this.send();
    };
    window.addEventListener("pointermove", move);
    for (const name of ["pointerup", "pointercancel"]) window.addEventListener(name, up);
    const end = this.end;
    this.end = () => {
      end();
      window.removeEventListener("pointermove", move);
      for (const name of ["pointerup", "pointercancel"]) window.removeEventListener(name, up);
    };
  }

  /** @param {"held" | "locked"} state */
  async start(state) {
    this.#set("asking");
    player.stop();
    try {
      this.#stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    } catch {
      this.#set("refused");
      return;
    }
    if (this.state !== "asking") return this.#release();
    this.#parts = [];
    this.#levels = [];
    this.#before = 0;
    const mimeType = TYPES.find((type) => MediaRecorder.isTypeSupported(type));
    this.#recorder = new MediaRecorder(this.#stream, mimeType ? { mimeType } : {});
    this.#recorder.addEventListener("dataavailable", ({ data }) => data.size > 0 && this.#parts.push(data));
    this.#recorder.start(1000);
    this.#since = Date.now();
    this.#measure(this.#stream);
    this.#set(state);
    announce(t("recording", { t: "0:00" }));
    return undefined;
  }

  #measure(stream) {
    const context = new AudioContext();
    const analyser = context.createAnalyser();
    analyser.fftSize = 512;
    context.createMediaStreamSource(stream).connect(analyser);
    const bytes = new Uint8Array(analyser.fftSize);
    this.closeContext = () => context.close().catch(() => {});
    this.#timer = window.setInterval(() => {
      if (this.state !== "held" && this.state !== "locked") return;
      analyser.getByteTimeDomainData(bytes);
      this.#levels.push(bytes.reduce((most, one) => Math.max(most, Math.abs(one - 128)), 0) * 2);
      if (this.ms > LONGEST_MS) this.keep();
      else this.#tick();
    }, LEVEL_EVERY_MS);
  }

  #set(state) {
    this.state = state;
    this.#draw();
    this.hooks.onchange();
  }

  pause() {
    this.#recorder?.pause();
    this.#before = this.ms;
    this.#since = 0;
    this.#set("paused");
  }

  resume() {
    this.#recorder?.resume();
    this.#since = Date.now();
    this.#set("locked");
  }

  /** Stops, sends nothing, loses nothing. */
  async keep() {
    if (!["held", "locked", "paused"].includes(this.state)) return;
    await this.#stop();
    this.#set("kept");
  }

  async #stop() {
    this.#before = this.ms;
    this.#since = 0;
    clearInterval(this.#timer);
    const recorder = this.#recorder;
    if (recorder && recorder.state !== "inactive") {
      const stopped = new Promise((resolve) => recorder.addEventListener("stop", resolve, { once: true }));
      recorder.stop();
      await stopped;
    }
    this.#release();
  }

  #release() {
    clearInterval(this.#timer);
    for (const track of this.#stream?.getTracks() ?? []) track.stop();
    this.#stream = null;
    this.closeContext?.();
    this.closeContext = undefined;
  }

  cancel() {
    this.#listening?.pause();
    this.#release();
    this.#recorder = null;
    this.#parts = [];
    this.#since = 0;
    this.#set("");
  }

  async send() {
    if (this.state !== "kept") await this.#stop();
    const ms = this.#before;
    const type = (this.#parts[0]?.type ?? this.#recorder?.mimeType ?? "audio/webm").split(";")[0];
    const blob = new Blob(this.#parts, { type });
    const levels = condensed(this.#levels.length ? this.#levels : [0]);
    const isShort = ms < SHORT_MS || blob.size === 0;
    this.cancel();
    if (isShort) this.hooks.onshort();
    else this.hooks.onsend(blob, ms, levels);
  }

  // -- drawing -------------------------------------------------------------------------------------------

  #tick() {
    const time = this.element.querySelector(".num");
    if (time) time.textContent = lengthText(this.ms);
    const wave = this.element.querySelector(".grow");
    if (wave) wave.replaceChildren(waveSvg(this.#recent(), () => "now"));
  }

  #recent() {
    const shown = this.#levels.slice(-SHOWN);
    return [...Array.from({ length: SHOWN - shown.length }, () => 0), ...shown];
  }

  #draw() {
    this.lock.hidden = this.state !== "held";
    const trash = iconButton("trash", t("delete_recording"), { onclick: () => this.cancel() });
    const time = h("span", { class: "num", role: "timer" }, lengthText(this.ms));
    const send = iconButton("send", t("send"), { class: "send", onclick: () => this.send() });
    const live = h("span", { class: "live", "aria-hidden": "true" });
    if (this.state === "refused") {
      const words = h("span", null, t("mic_refused"));
      fill(this.element, icon("micoff"), words, button(t("try_again"), { class: "quiet small", onclick: () => this.start("locked") }), iconButton("close", t("close"), { onclick: () => this.cancel() }));
    } else if (this.state === "held") fill(this.element, live, time, h("span", { class: "slide" }, `‹ ${t("slide_to_cancel")}`));
    else if (this.state === "kept") {
      const levels = condensed(this.#levels.length ? this.#levels : [0]);
      fill(this.element, trash, iconButton("play", t("play"), { onclick: () => this.#listen() }), time, h("span", { class: "grow" }, waveSvg(levels, () => "")), send);
    } else if (this.state) {
      const isPaused = this.state === "paused";
      const toggle = iconButton(isPaused ? "mic" : "pause", isPaused ? t("go_on_recording") : t("pause"), { onclick: () => (isPaused ? this.resume() : this.pause()) });
      fill(this.element, trash, !isPaused && live, time, h("span", { class: "grow" }, waveSvg(this.#recent(), () => "now")), toggle, send);
    }
    this.element.classList.toggle("why", this.state === "refused");
  }

  #listen() {
    if (this.#listening && !this.#listening.paused) return this.#listening.pause();
    this.#listening = new Audio(URL.createObjectURL(new Blob(this.#parts, { type: this.#parts[0]?.type })));
    return void this.#listening.play().catch(() => {});
  }

  /** @param {KeyboardEvent} event @returns {boolean} */
  key(event) {
    if (event.key === "Escape" && ["locked", "paused"].includes(this.state)) this.keep();
    else if (event.key === "Escape" && this.state === "refused") this.cancel();
    else if (event.key === "Enter" && ["locked", "paused", "kept"].includes(this.state) && !(event.target instanceof HTMLButtonElement)) this.send();
    else return false;
    return true;
  }
}
