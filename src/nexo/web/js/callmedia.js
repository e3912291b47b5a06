/** The media of one call: microphone and camera of this device, the connection to the other one, and its repair. */

import { Emitter } from "./emitter.js";

const LOST_MS = 15_000; // a call whose media return within this time continues
const LOOK_MS = 1000;
const REPAIR_MS = 4000; // an offer that was not answered by then was lost, or made while there was no network

/** Asks for microphone and camera; without a camera it is a voice call. @param {"audio" | "video"} kind */
export async function openDevices(kind) {
  try {
    return await navigator.mediaDevices.getUserMedia({ audio: true, video: kind === "video" });
  } catch (error) {
    if (kind !== "video" || error?.name !== "NotFoundError") throw error;
    return navigator.mediaDevices.getUserMedia({ audio: true });
  }
}

export class CallMedia extends Emitter {
  remote = new MediaStream();
  /** When media arrived for the first time. */
  connectedAt = 0;
  /** When it was lost; 0 while it is there. */
  lostAt = 0;
  #waiting = [];
  #held = [];
  #call = null;
  #timer = 0;
  #screen = null;
  #repairedAt = 0;
  #isOnline;

  /** @param {MediaStream} local @param {RTCIceServer[]} iceServers @param {() => boolean} isOnline whether offers reach the server */
  constructor(local, iceServers, isOnline) {
    super();
    this.#isOnline = isOnline;
    this.local = local;
    this.peer = new RTCPeerConnection({ iceServers });
    for (const track of local.getTracks()) this.peer.addTrack(track, local);
    this.peer.addEventListener("track", ({ track }) => {
      this.remote.addTrack(track);
      this.emit("change");
    });
    this.peer.addEventListener("icecandidate", ({ candidate }) => {
      if (!candidate) return;
      if (this.#call) this.#call.ice(candidate);
      else this.#waiting.push(candidate);
    });
    this.peer.addEventListener("connectionstatechange", () => this.#stateChanged());
  }

  async offer() {
    await this.peer.setLocalDescription(await this.peer.createOffer());
    return this.peer.localDescription?.sdp ?? "";
  }

  /** @param {string} sdp of the offer @returns {Promise<string>} the answer */
  async answer(sdp) {
    await this.#describe({ type: "offer", sdp });
    await this.peer.setLocalDescription(await this.peer.createAnswer());
    return this.peer.localDescription?.sdp ?? "";
  }

  /** From now on frames of the call are followed. @param {any} call */
  join(call) {
    this.#call = call;
    for (const candidate of this.#waiting.splice(0)) call.ice(candidate);
    for (const candidate of call.candidates) this.#add(candidate);
    this.ends = [
      call.on("accepted", (sdp) => this.#describe({ type: "answer", sdp }).catch(() => this.emit("failed"))),
      call.on("ice", (candidate) => this.#add(candidate)),
      call.on("description", (description) => this.#described(description).catch(() => {})),
    ];
  }

  async #described(description) {
    await this.#describe(description);
    if (description.type !== "offer") return;
    await this.peer.setLocalDescription(await this.peer.createAnswer());
    this.#call?.describe(this.peer.localDescription);
  }

  async #describe(description) {
    await this.peer.setRemoteDescription(description);
    for (const candidate of this.#held.splice(0)) this.#add(candidate);
  }

  #add(candidate) {
    if (this.peer.remoteDescription) this.peer.addIceCandidate(candidate).catch(() => {});
    else this.#held.push(candidate);
  }

  #stateChanged() {
    const { connectionState } = this.peer;
    if (connectionState === "connected") {
      this.connectedAt ||= Date.now();
      this.lostAt = 0;
      clearInterval(this.#timer);
      this.#timer = window.setInterval(() => this.emit("change"), LOOK_MS);
    } else if ((connectionState === "disconnected" || connectionState === "failed") && !this.lostAt) {
      this.lostAt = Date.now();
      this.#repairedAt = 0;
      this.#repair();
      clearInterval(this.#timer);
      this.#timer = window.setInterval(() => this.#look(), LOOK_MS);
    }
    this.emit("change");
  }

  #look() {
    if (this.lostAt && Date.now() - this.lostAt > LOST_MS) return this.emit("failed");
    this.#repair();
    return this.emit("change");
  }

  get secondsLeft() {
    return Math.max(0, Math.ceil((LOST_MS - (Date.now() - this.lostAt)) / 1000));
  }

  /** The caller offers anew, until it helps: other ways through the network are tried. Not while the server cannot be reached:
   * candidates that are gathered without a network lead nowhere, and an answer could belong to an older offer. */
  async #repair() {
    if (this.#call?.direction !== "outgoing" || !this.#isOnline() || Date.now() - this.#repairedAt < REPAIR_MS) return;
    this.#repairedAt = Date.now();
    await this.peer.setLocalDescription(await this.peer.createOffer({ iceRestart: true }));
    this.#call?.describe(this.peer.localDescription);
  }

  // -- what the user changes -----------------------------------------------------------------------------

  get isMuted() {
    return !this.local.getAudioTracks().some((track) => track.enabled);
  }

  get hasCamera() {
    return this.local.getVideoTracks().length > 0;
  }

  get isCameraOn() {
    return this.local.getVideoTracks().some((track) => track.enabled);
  }

  get isSharing() {
    return this.#screen !== null;
  }

  /** @param {boolean} on */
  mute(on) {
    for (const track of this.local.getAudioTracks()) track.enabled = !on;
    this.emit("change");
  }

  /** @param {boolean} on */
  camera(on) {
    for (const track of this.local.getVideoTracks()) track.enabled = on;
    this.emit("change");
  }

  #sender(kind) {
    return this.peer.getSenders().find((one) => one.track?.kind === kind);
  }

  /** The screen in the place of the camera, and back. */
  async share() {
    if (this.#screen) return this.#unshare();
    const stream = await navigator.mediaDevices.getDisplayMedia({ video: true });
    const [track] = stream.getVideoTracks();
    await this.#sender("video")?.replaceTrack(track);
    this.#screen = stream;
    track.addEventListener("ended", () => this.#unshare());
    this.emit("change");
  }

  async #unshare() {
    for (const track of this.#screen?.getTracks() ?? []) track.stop();
    this.#screen = null;
    await this.#sender("video")?.replaceTrack(this.local.getVideoTracks()[0] ?? null);
    this.emit("change");
  }

  /** @param {"audio" | "video"} kind @param {string} deviceId */
  async use(kind, deviceId) {
    const stream = await navigator.mediaDevices.getUserMedia({ [kind]: { deviceId: { exact: deviceId } } });
    const [track] = stream.getTracks();
    const old = this.local.getTracks().find((one) => one.kind === kind);
    track.enabled = old?.enabled ?? true;
    await this.#sender(kind)?.replaceTrack(track);
    if (old) {
      this.local.removeTrack(old);
      old.stop();
    }
    this.local.addTrack(track);
    this.emit("change");
  }

  close() {
    clearInterval(this.#timer);
    for (const end of this.ends ?? []) end();
    for (const track of [...this.local.getTracks(), ...(this.#screen?.getTracks() ?? [])]) track.stop();
    this.peer.close();
  }
}
