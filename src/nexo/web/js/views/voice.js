/** Voice messages: one sound at a time; its place, speed and what was played are remembered for the page. */

import { announce } from "../components/announce.js";
import { h, icon } from "../dom.js";
import { addressOf, lengthText, openAddress } from "../files.js";
import { t } from "../i18n.js";
import { remember, remembered } from "../prefs.js";

const BARS = 48;
const SPEEDS = [1, 1.5, 2];
const STEP_S = 5;
const PLAYED_MAX = 300;
const SVG = "http://www.w3.org/2000/svg";

/** 48 bytes as text, or a list of numbers; null: none. @param {any} given @returns {number[] | null} */
export function readWaveform(given) {
  if (Array.isArray(given)) return given.length > 0 && given.length <= 128 && given.every((one) => one >= 0 && one <= 255) ? given : null;
  if (typeof given !== "string" || given.length > 172) return null;
  try {
    const bytes = [...atob(given)].map((char) => char.charCodeAt(0));
    return bytes.length > 0 ? bytes : null;
  } catch {
    return null;
  }
}

/** @param {number[]} levels */
export const writeWaveform = (levels) => btoa(String.fromCharCode(...levels.map((one) => Math.max(0, Math.min(255, Math.round(one))))));

/** So many levels from any number of them: the highest of each stretch. @param {number[]} levels */
export function condensed(levels, count = BARS) {
  const most = Math.max(1, ...levels);
  return Array.from({ length: count }, (_, at) => {
    const from = Math.floor((at * levels.length) / count);
    const to = Math.max(from + 1, Math.floor(((at + 1) * levels.length) / count));
    return (255 * Math.max(0, ...levels.slice(from, to))) / most;
  });
}

/** @param {number[] | null} levels @param {(share: number) => string} classAt */
export function waveSvg(levels, classAt) {
  const svg = document.createElementNS(SVG, "svg");
  const bars = levels ?? Array.from({ length: BARS }, () => 0);
  svg.setAttribute("class", "wave");
  svg.setAttribute("viewBox", `0 0 ${bars.length * 4.5} 28`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  bars.forEach((level, at) => {
    const rect = document.createElementNS(SVG, "rect");
    const height = 3 + (level / 255) * 23;
    const attributes = { x: at * 4.5, y: 14 - height / 2, width: 2.6, height, rx: 1.3, class: classAt(at / bars.length) };
    for (const [name, value] of Object.entries(attributes)) rect.setAttribute(name, String(value));
    svg.append(rect);
  });
  return svg;
}

class Player {
  /** @type {HTMLAudioElement | null} */
  #audio = null;
  #id = "";
  speed = 1;
  #views = new Map();
  /** @type {string[]} */
  #played = remembered("played") ?? [];

  /** @param {string} id @param {() => void} draw */
  watch(id, draw) {
    this.#views.set(id, draw);
    if (this.#views.size > 400) this.#views.delete(this.#views.keys().next().value);
  }

  isPlaying(id) {
    return this.#id === id && this.#audio !== null && !this.#audio.paused;
  }

  isPlayed(id) {
    return this.#played.includes(id);
  }

  place(id) {
    return this.#id === id && this.#audio ? this.#audio.currentTime : 0;
  }

  /** @param {string} id */
  draw(id) {
    this.#views.get(id)?.();
  }

  stop() {
    this.#audio?.pause();
  }

  /** @param {string} id @param {() => Promise<string>} address @param {() => void} onend */
  async toggle(id, address, onend) {
    if (this.#id === id && this.#audio) {
      if (this.#audio.paused) await this.#start();
      else this.#audio.pause();
      return;
    }
    this.stop();
    const before = this.#id;
    this.#id = id;
    this.#audio = new Audio(await address());
    if (this.#id !== id) return;
    const audio = this.#audio;
    for (const name of ["timeupdate", "play", "pause"]) audio.addEventListener(name, () => this.draw(id));
    audio.addEventListener("ended", () => {
      audio.currentTime = 0;
      this.draw(id);
      onend();
    });
    this.draw(before);
    this.#setPlayed(id);
    await this.#start();
  }

  async #start() {
    if (!this.#audio) return;
    this.#audio.playbackRate = this.speed;
    await this.#audio.play();
  }

  #setPlayed(id) {
    if (this.isPlayed(id)) return;
    this.#played = [...this.#played, id].slice(-PLAYED_MAX);
    remember("played", this.#played);
  }

  /** @param {string} id @param {number} seconds */
  seek(id, seconds) {
    if (this.#id !== id || !this.#audio) return;
    this.#audio.currentTime = Math.max(0, seconds);
    this.draw(id);
  }

  nextSpeed() {
    this.speed = SPEEDS[(SPEEDS.indexOf(this.speed) + 1) % SPEEDS.length];
    if (this.#audio) this.#audio.playbackRate = this.speed;
    for (const draw of this.#views.values()) draw();
  }
}

export const player = new Player();

/** @param {any} row @param {any} content @param {any} model */
export function voiceBody(row, content, model) {
  const { message } = row;
  const id = message.serverMsgId ?? message.clientMsgId;
  const levels = readWaveform(message.extra?.waveform);
  const total = content.duration_ms > 0 ? content.duration_ms / 1000 : 0;
  const length = lengthText(total * 1000);
  const play = h("button", { type: "button", class: "play", tabindex: "-1", dataset: { act: "play" } });
  const slider = h("span", { class: "waveslot", role: "slider", tabindex: "-1", "aria-label": t("voice_message", { t: length }), "aria-valuemin": "0", "aria-valuemax": String(Math.round(total)) });
  const speed = h("button", { type: "button", class: "speed", tabindex: "-1", onclick: () => player.nextSpeed() });
  const time = h("span", { class: "num voicetime" });
  const unplayed = h("span", { class: "new", role: "img", "aria-label": t("not_played") });
  const element = h("div", { class: "voice", dataset: { voice: id } }, play, slider, h("span", { class: "voiceend" }, unplayed, speed), time);
  const draw = () => {
    const at = player.place(id);
    const isOn = player.isPlaying(id);
    play.replaceChildren(icon(isOn ? "pause" : "play", "fill"));
    play.setAttribute("aria-label", isOn ? t("pause") : t("play_voice", { t: length }));
    slider.replaceChildren(waveSvg(levels, (share) => (total > 0 && share < at / total ? "on" : "")));
    slider.setAttribute("aria-valuenow", String(Math.round(at)));
    slider.setAttribute("aria-valuetext", t("time_of", { a: lengthText(at * 1000), b: length }));
    speed.textContent = `${player.speed}×`;
    speed.setAttribute("aria-label", t("speed_x", { n: player.speed }));
    time.textContent = at > 0 ? `${lengthText(at * 1000)} / ${length}` : length;
    unplayed.hidden = row.isMine || player.isPlayed(id);
  };
  draw();
  player.watch(id, draw);
  const toggle = () => player.toggle(id, () => openAddress(model, addressOf(content)), () => playNext(element)).catch(() => announce(t("file_gone"), "assertive"));
  play.addEventListener("click", toggle);
  slider.addEventListener("pointerdown", (event) => {
    const box = slider.getBoundingClientRect();
    player.seek(id, ((event.clientX - box.left) / box.width) * total);
  });
  slider.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -STEP_S, ArrowRight: STEP_S }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    player.seek(id, player.place(id) + step);
  });
  return element;
}

/** The next one below that was not played. @param {HTMLElement} element */
function playNext(element) {
  let row = element.closest("li")?.nextElementSibling;
  while (row && !row.querySelector(".voice")) row = row.nextElementSibling;
  const voice = row?.querySelector(".voice");
  if (voice instanceof HTMLElement && !voice.querySelector(".new")?.hasAttribute("hidden")) voice.querySelector(".play")?.click();
}
