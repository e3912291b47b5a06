/** Calls on the screen: ringing, the card of one that comes in, the stage, the bar while it is small, and why it ended. */

import { announce } from "../components/announce.js";
import { avatar } from "../components/avatar.js";
import { openMenu } from "../components/menu.js";
import { toast } from "../components/toast.js";
import { CallMedia, openDevices } from "../callmedia.js";
import { button, fill, h, icon, iconButton } from "../dom.js";
import { t } from "../i18n.js";
import { go } from "../router.js";
import { errorText } from "../wording.js";

const TONE_EVERY_MS = 2500;
const DENIED = new Set(["NotAllowedError", "NotFoundError", "NotReadableError"]);

export class CallDesk {
  /** @type {any} */
  #call = null;
  /** @type {CallMedia | null} */
  #media = null;
  #userId = "";
  #kind = "audio";
  #word = "";
  #isSmall = false;
  #ringing = 0;
  #ends = [];

  /** @param {any} model @param {HTMLElement} bars where the bar of a call that is small is put */
  constructor(model, bars) {
    this.model = model;
    this.card = h("div");
    this.bar = h("div");
    bars.append(this.bar);
    document.body.append(this.card);
    const { calls } = model.client;
    this.#ends.push(calls.on("incoming", (call) => this.#incoming(call)), model.on("call", ({ userId, kind }) => this.start(userId, kind)));
    const onkey = (event) => this.#key(event);
    document.addEventListener("keydown", onkey, true);
    this.#ends.push(() => document.removeEventListener("keydown", onkey, true));
  }

  end() {
    for (const end of this.#ends.splice(0)) end();
    this.#over();
    this.card.remove();
    this.bar.remove();
  }

  get #name() {
    return this.model.people.name(this.#userId);
  }

  // -- calling -------------------------------------------------------------------------------------------

  /** @param {string} userId @param {"audio" | "video"} kind */
  async start(userId, kind) {
    if (this.#call || this.#media) return;
    this.#userId = userId;
    this.#kind = kind;
    this.#word = "calling";
    this.#isSmall = false;
    const media = await this.#open(() => this.start(userId, kind));
    if (!media) return;
    try {
      const sdp = await media.offer();
      const call = await this.model.client.calls.invite(userId, { kind, sdp });
      if (this.#media !== media) return call.end(); // given up meanwhile
      if (call.direction === "incoming") return this.#crossed(call);
      this.#word = "ringing";
      this.#follow(call);
    } catch (error) {
      this.#over();
      toast(reasonText(error?.reason, this.#name, error), { bad: true });
    }
  }

  /** Both called at once: the other's call stands, and is taken. */
  async #crossed(call) {
    this.#media?.close();
    this.#media = null;
    this.#call = call;
    await this.#accept(this.#kind);
  }

  async #open(again) {
    this.#draw();
    try {
      const [local, servers] = await Promise.all([openDevices(/** @type {any} */ (this.#kind)), this.model.client.calls.iceServers().catch(() => [])]);
      this.#media = new CallMedia(local, servers, () => this.model.client.state === "online");
      this.#media.on("change", () => this.#draw());
      this.#media.on("failed", () => this.#call?.end("failed"));
      this.#draw();
      return this.#media;
    } catch (error) {
      this.#denied(error, again);
      return null;
    }
  }

  #follow(call) {
    this.#call = call;
    this.#media?.join(call);
    call.on("state", () => this.#draw());
    call.on("ended", ({ reason, durationMs }) => this.#call === call && this.#ended(reason, durationMs));
    if (call.state === "ended") this.#ended(call.reason, call.durationMs);
    else this.#draw();
  }

  // -- being called --------------------------------------------------------------------------------------

  #incoming(call) {
    if (this.#call || this.#media) return call.reject();
    this.#userId = call.userId;
    this.#kind = call.kind;
    this.#call = call;
    this.#word = call.kind === "video" ? "incoming_video" : "incoming_voice";
    call.on("ended", ({ reason, durationMs }) => this.#call === call && this.#ended(reason, durationMs));
    announce(`${t(`call_${this.#word}`)}: ${this.#name}`, "assertive");
    this.#ring();
    this.#drawIncoming();
    return undefined;
  }

  #drawIncoming() {
    const isVideo = this.#kind === "video";
    const act = (sign, text, classes, go_) => h("div", null, h("button", { type: "button", class: classes, "aria-label": text, onclick: go_ }, icon(sign, "l")), text);
    const words = t(`call_${this.#word}`);
    fill(
      this.card,
      h(
        "section",
        { class: "ringcard corner", role: "alertdialog", "aria-label": `${words}, ${this.#name}` },
        avatar(this.model.personFace(this.#userId), "s96"),
        h("h2", { dir: "auto" }, this.#name),
        h("p", { role: "status" }, words),
        h(
          "div",
          { class: "ctl" },
          act("hangup", t("decline"), "end", () => this.#decline()),
          isVideo && act("phone", t("voice_only"), null, () => this.#accept("audio")),
          act(isVideo ? "video" : "phone", t("accept"), "yes", () => this.#accept(this.#kind)),
        ),
        button(t("reply_with_message"), { class: "quiet small", onclick: () => this.#reply() }, "chat"),
      ),
    );
  }

  async #accept(kind) {
    const call = this.#call;
    this.#quiet();
    this.#kind = kind;
    this.#word = "connecting";
    this.#isSmall = false;
    const media = await this.#open(() => this.#accept(kind));
    if (!media) return;
    try {
      const sdp = await media.answer(call.sdp);
      if (this.#call !== call || call.state !== "ringing") return this.#over();
      media.join(call);
      call.accept(sdp);
      this.#draw();
    } catch (error) {
      call.end("failed");
      this.#over();
      toast(errorText(error), { bad: true });
    }
  }

  #decline() {
    this.#call?.reject();
    this.#over();
  }

  #reply() {
    const userId = this.#userId;
    this.#decline();
    go(this.model.client.chatWith(userId).id);
  }

  /** Accepting by keyboard; F6 moves to the card. The composer keeps the focus until then. */
  #key(event) {
    const isRinging = this.#call?.direction === "incoming" && this.#call.state === "ringing" && !this.#media;
    if (!isRinging) return;
    if (event.key === "F6") /** @type {HTMLElement | null} */ (this.card.querySelector("button.yes"))?.focus();
    else if (event.key === "Enter" && event.shiftKey && (event.ctrlKey || event.metaKey)) this.#accept(this.#kind);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // -- the sound -----------------------------------------------------------------------------------------

  #ring() {
    const title = document.title;
    const sound = () => {
      document.title = document.title === title ? `☎ ${this.#name}` : title;
      tone();
    };
    sound();
    this.#ringing = window.setInterval(sound, TONE_EVERY_MS);
  }

  #quiet() {
    if (this.#ringing) {
      clearInterval(this.#ringing);
      this.#ringing = 0;
      this.model.emit("opened"); // the title as it was
    }
  }

  // -- its end -------------------------------------------------------------------------------------------

  #hangUp() {
    const call = this.#call;
    if (!call) return this.#over();
    if (call.state === "ringing" && call.direction === "outgoing") call.cancel();
    else call.end();
    return undefined;
  }

  #ended(reason, durationMs) {
    const wasOwn = this.#call?.direction === "outgoing";
    const connectedAt = this.#media?.connectedAt ?? 0;
    const length = connectedAt ? Date.now() - connectedAt : (durationMs ?? 0);
    const name = this.#name;
    this.#over();
    if (reason === "canceled" || (reason === "rejected" && !wasOwn)) return;
    toast(length > 0 ? t("call_ended", { time: minutes(length) }) : reasonText(reason, name));
  }

  #over() {
    this.#quiet();
    this.#media?.close();
    this.#media = this.#call = null;
    fill(this.card);
    fill(this.bar);
  }

  #denied(error, again) {
    const call = this.#call;
    const isDenied = DENIED.has(error?.name);
    const retry = () => {
      fill(this.card);
      again();
    };
    const write = () => {
      const userId = this.#userId;
      if (call?.state === "ringing" && call.direction === "incoming") call.reject();
      this.#over();
      go(this.model.client.chatWith(userId).id);
    };
    fill(
      this.card,
      h("section", { class: "ringcard corner", role: "alertdialog", "aria-label": t("no_microphone") }, h("span", { class: "ftype bad" }, icon("micoff")), h("h2", null, t("no_microphone")), h("p", null, isDenied ? t("no_microphone_text") : errorText(error)), button(t("try_again"), { class: "primary block", onclick: retry }), button(t("write_instead"), { class: "quiet block", onclick: write })),
    );
  }

  // -- the stage -----------------------------------------------------------------------------------------

  #state() {
    const media = this.#media;
    if (media?.lostAt) return t("call_lost", { s: media.secondsLeft });
    if (media?.connectedAt) return minutes(Date.now() - media.connectedAt);
    if (this.#call?.state === "active") return t("call_connecting");
    return t(`call_${this.#word}`);
  }

  #draw() {
    if (!this.#call && !this.#media && this.#word !== "calling") return;
    if (this.#isSmall) this.#drawBar();
    else this.#drawStage();
  }

  #video(stream, name, classes) {
    const video = /** @type {HTMLVideoElement} */ (h("video", { class: classes, autoplay: true, playsinline: true, "aria-label": name, "prop:muted": classes === "own" }));
    video.srcObject = stream;
    video.play().catch(() => {});
    return video;
  }

  #drawStage() {
    const media = this.#media;
    const state = this.#state();
    const isVideo = this.#kind === "video";
    const key = [this.#userId, isVideo, media?.remote.getTracks().length, media?.isMuted, media?.isCameraOn, media?.isSharing, Boolean(media), this.#call?.state].join();
    const shown = this.card.querySelector(".callstage");
    if (shown && shown.dataset.key === key) {
      fill(shown.querySelector("[role=status]"), state);
      return;
    }
    fill(this.bar);
    const act = (name, sign, text, pressed, go_, classes) => h("div", null, h("button", { type: "button", class: classes, "aria-pressed": pressed === null ? null : String(pressed), "aria-label": text, dataset: { act: name }, onclick: go_ }, icon(sign, "l")), text);
    const focused = shown?.contains(document.activeElement) ? document.activeElement?.dataset?.act : "";
    const others = media?.remote.getVideoTracks().length ? this.#video(media.remote, this.#name, "other") : [h("div", { class: "waiting" }, avatar(this.model.personFace(this.#userId), "s96")), media && this.#sound(media.remote)];
    const stage = h(
      "div",
      { class: "stage callstage", role: "dialog", "aria-label": t("call_with", { name: this.#name }), dataset: { key } },
      h("header", null, iconButton("minimise", t("call_small"), { onclick: () => this.#minimise() }), h("span", { class: "who" }, h("b", { dir: "auto" }, this.#name), h("small", { role: "status" }, state))),
      h("div", { class: "tiles" }, others, isVideo && media?.hasCamera && h("span", { class: media.isSharing ? "self" : "self mirrored" }, this.#video(media.local, t("you"), "own"))),
      h(
        "footer",
        null,
        h(
          "div",
          { class: "ctl", role: "toolbar", "aria-label": t("call") },
          media && act("mute", media.isMuted ? "micoff" : "mic", t(media.isMuted ? "muted_mic" : "mute_mic"), media.isMuted, () => media.mute(!media.isMuted)),
          media?.hasCamera && act("camera", media.isCameraOn ? "video" : "videooff", t("camera"), media.isCameraOn, () => media.camera(!media.isCameraOn)),
          media?.hasCamera && act("screen", "screen", t("screen"), media.isSharing, () => media.share().catch(() => {})),
          media && act("devices", "speaker", t("devices_word"), null, () => this.#devices()),
          act("end", "hangup", t(this.#call?.state === "active" ? "end_call" : "cancel"), null, () => this.#hangUp(), "end"),
        ),
      ),
    );
    fill(this.card, stage);
    /** @type {HTMLElement | null} */ (stage.querySelector(`[data-act=${focused || "end"}]`))?.focus();
  }

  /** Without a picture there is still a voice to be heard. */
  #sound(stream) {
    const sound = /** @type {HTMLAudioElement} */ (h("audio", { autoplay: true }));
    sound.srcObject = stream;
    sound.play().catch(() => {});
    return sound;
  }

  #minimise() {
    this.#isSmall = true;
    this.#draw();
  }

  #drawBar() {
    const media = this.#media;
    const state = this.#state();
    const shown = this.bar.querySelector(".callbar");
    const key = [this.#userId, media?.isMuted, Boolean(media?.lostAt)].join();
    if (shown && shown.dataset.key === key) {
      fill(shown.querySelector(".num"), state);
      return;
    }
    const grow = () => {
      this.#isSmall = false;
      this.#draw();
    };
    fill(this.card, media && this.#sound(media.remote));
    fill(
      this.bar,
      h(
        "div",
        { class: media?.lostAt ? "callbar warn" : "callbar", role: "region", "aria-label": t("call_with", { name: this.#name }), dataset: { key } },
        h("span", { class: "grow ell" }, h("b", { dir: "auto" }, this.#name), " · ", h("span", { class: "num" }, state)),
        media && iconButton(media.isMuted ? "micoff" : "mic", t("mute_mic"), { "aria-pressed": String(media.isMuted), onclick: () => media.mute(!media.isMuted) }),
        iconButton("expand", t("call_back_to"), { onclick: grow }),
        iconButton("hangup", t("end_call"), { class: "hang", onclick: () => this.#hangUp() }),
      ),
    );
  }

  async #devices() {
    const media = this.#media;
    const anchor = this.card.querySelector("[data-act=devices]");
    if (!media || !(anchor instanceof HTMLElement)) return;
    const found = await navigator.mediaDevices.enumerateDevices();
    const of = (kind) => found.filter((one) => one.kind === `${kind}input` && one.deviceId);
    const used = new Set(media.local.getTracks().map((track) => track.getSettings().deviceId));
    const items = (kind) => of(kind).map((one, at) => ({ text: one.label || `${t(kind === "audio" ? "microphone" : "camera")} ${at + 1}`, checked: used.has(one.deviceId), act: () => media.use(kind, one.deviceId).catch((error) => toast(errorText(error), { bad: true })) }));
    openMenu(anchor, t("devices_word"), [...items("audio"), "line", ...items("video")]);
  }
}

function minutes(ms) {
  const seconds = Math.floor(ms / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

const REASONS = new Set(["busy", "callee_offline", "blocked", "not_contact", "timeout", "rejected", "answered_elsewhere", "failed", "connection_lost", "missed", "canceled", "completed"]);

function reasonText(reason, name, error = null) {
  if (REASONS.has(reason)) return t(`call_reason_${reason}`, { name });
  return error ? errorText(error) : t("call_over");
}

/** Two short notes. Browsers allow it once the page was used. */
function tone() {
  const Context = window.AudioContext;
  if (!Context) return;
  const context = new Context();
  if (context.state !== "running") return void context.close();
  const gain = context.createGain();
  gain.gain.value = 0.08;
  gain.connect(context.destination);
  [0, 0.35].forEach((at, index) => {
    const note = context.createOscillator();
    note.frequency.value = index ? 660 : 523;
    note.connect(gain);
    note.start(context.currentTime + at);
    note.stop(context.currentTime + at + 0.25);
  });
  setTimeout(() => context.close(), 1200);
}
