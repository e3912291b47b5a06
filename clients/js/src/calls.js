// Calls with other users: `client.calls`. Signalling only; the application makes and shows the media (RTCPeerConnection).

import { camel } from "./camel-case.js";
import { Emitter } from "./emitter.js";
import { NexoError } from "./errors.js";

/** @import { CallRecord, IceServer } from "./types.js" */
/** @typedef {"audio" | "video"} CallKind */
/** @typedef {"ringing" | "active" | "ended"} CallState */
/** @typedef {{type: "offer" | "answer", sdp: string}} Description */

const INVITE_TIMEOUT_MS = 20_000;
const WAITING_MAX = 256; // frames that wait for the connection
const CANDIDATES_MAX = 256; // of the other device that are kept for the application
const CALLS_MAX = 50; // that are kept after their end, to recognize late frames
const RECORD = 120;

/** The fields of a candidate as frames have them. */
const CANDIDATE_FIELDS = ["candidate", "sdpMid", "sdpMLineIndex", "usernameFragment"];

/**
 * @typedef {object} CallEvents
 * @property {CallState} state it changed
 * @property {string} accepted the answer of the other device: `setRemoteDescription({type: "answer", sdp})`
 * @property {any} ice a candidate of the other device: `addIceCandidate(candidate)`
 * @property {Description} description a new offer or answer, after `describe` of the other device
 * @property {{reason: string, durationMs: number | null}} ended
 */

/**
 * One call. `userId` is the other user; `sdp` the description of the other device, once it is known: its offer, or its answer.
 * @extends {Emitter<CallEvents>}
 */
export class Call extends Emitter {
  /**
   * @param {(frame: Record<string, any>) => void} send
   * @param {{callId: string, userId: string, kind: CallKind, direction: "outgoing" | "incoming", sdp?: string | null}} shape
   */
  constructor(send, { callId, userId, kind, direction, sdp = null }) {
    super(["state", "accepted", "ice", "description", "ended"]);
    this._send = send;
    this.callId = callId;
    this.userId = userId;
    this.kind = kind;
    this.direction = direction;
    this.sdp = sdp;
    /** @type {CallState} */
    this.state = "ringing";
    /** Why it ended: rejected, canceled, timeout, answered_elsewhere, connection_lost, ended … @type {string | null} */
    this.reason = null;
    /** @type {number | null} */
    this.durationMs = null;
    /** All candidates of the other device so far; the event `ice` has each new one. @type {any[]} */
    this.candidates = [];
  }

  /** Answers an incoming call. When another device was faster, it ends with `answered_elsewhere`. @param {string} sdp */
  accept(sdp) {
    this._check("incoming", "ringing");
    this._send({ type: "CALL_ACCEPT", callId: this.callId, sdp });
    this._become("active");
  }

  /** Declines an incoming call. */
  reject() {
    this._check("incoming", "ringing");
    this._send({ type: "CALL_REJECT", callId: this.callId });
    this._end("rejected");
  }

  /** Withdraws an own call that was not answered. */
  cancel() {
    this._check("outgoing", "ringing");
    this._send({ type: "CALL_CANCEL", callId: this.callId });
    this._end("canceled");
  }

  /** Hangs up. `failed`: no media arrived. @param {string} [reason] */
  end(reason) {
    if (this.state === "ended") return;
    this._send({ type: "CALL_END", callId: this.callId, ...(reason ? { reason } : {}) });
    this._end(reason ?? "ended");
  }

  /** Sends a candidate of this device; null (there are no more) is not sent. @param {any} candidate */
  ice(candidate) {
    if (!candidate || this.state === "ended") return;
    const fields = typeof candidate === "string" ? { candidate } : (candidate.toJSON?.() ?? candidate);
    if (!fields.candidate) return; // the end of candidates
    /** @type {Record<string, any>} */
    const frame = { type: "CALL_ICE", callId: this.callId };
    for (const name of CANDIDATE_FIELDS) if (fields[name] !== undefined && fields[name] !== null) frame[name] = fields[name];
    this._send(frame);
  }

  /** Sends a new offer or answer during the call: after a change of the network, or for other media. @param {Description} description */
  describe(description) {
    const { type, sdp } = description;
    if (this.state === "active") this._send({ type: "CALL_ICE", callId: this.callId, description: { type, sdp } });
  }

  /** @param {"outgoing" | "incoming"} direction @param {CallState} state */
  _check(direction, state) {
    if (this.direction !== direction) throw new NexoError(direction === "incoming" ? "only_callee_can_accept" : "only_caller_can_cancel");
    if (this.state !== state) throw new NexoError("call_not_ringing");
  }

  /** @param {CallState} state */
  _become(state) {
    if (this.state === state || this.state === "ended") return;
    this.state = state;
    this._emit("state", state);
  }

  /** @param {string} reason @param {number | null} [durationMs] */
  _end(reason, durationMs = null) {
    if (this.state === "ended") {
      this.durationMs ??= durationMs;
      return;
    }
    this.reason = reason;
    this.durationMs = durationMs;
    this._become("ended");
    this._emit("ended", { reason, durationMs });
  }

  /** @param {any} frame */
  _receive(frame) {
    switch (frame.type) {
      case "CALL_ACCEPT":
        if (this.state !== "ringing") return;
        this.sdp = frame.sdp;
        this._become("active");
        return this._emit("accepted", frame.sdp);
      case "CALL_ICE":
        return this._receiveIce(frame);
      case "CALL_END":
        return this._end(frame.reason, frame.durationMs ?? null);
      case "CALL_TIMEOUT":
        return this._end("timeout");
      case "CALL_ERROR":
        if (frame.reason === "call_not_found" || frame.reason === "call_not_ringing") this._end(frame.reason);
    }
  }

  /** @param {any} frame */
  _receiveIce(frame) {
    if (this.state === "ended") return;
    if (frame.description) return this._emit("description", frame.description);
    /** @type {Record<string, any>} */
    let candidate = {};
    if (typeof frame.candidate === "object") candidate = frame.candidate;
    else for (const name of CANDIDATE_FIELDS) if (frame[name] !== undefined) candidate[name] = frame[name];
    if (candidate.sdpMid === undefined && candidate.sdpMLineIndex === undefined) candidate = { ...candidate, sdpMLineIndex: 0 };
    if (this.candidates.length < CANDIDATES_MAX) this.candidates.push(candidate);
    this._emit("ice", candidate);
  }
}

/**
 * @typedef {object} CallsHost
 * @property {(frame: Record<string, any>) => boolean} send false: there is no connection now
 * @property {(method: string, path: string, params: Record<string, any>) => Promise<any>} call
 * @property {() => string} makeId
 */

/**
 * @typedef {object} Invitation
 * @property {Record<string, any>} frame
 * @property {(call: Call) => void} resolve
 * @property {(error: NexoError) => void} reject
 */

/** @extends {Emitter<{incoming: Call}>} */
export class Calls extends Emitter {
  /** @param {CallsHost} host */
  constructor(host) {
    super(["incoming"]);
    this._host = host;
    /** By call; also some that ended. @type {Map<string, Call>} */
    this._calls = new Map();
    /** By clientMsgId. @type {Map<string, Invitation>} */
    this._invitations = new Map();
    /** @type {Record<string, any>[]} */
    this._waiting = [];
  }

  /** The call that rings or is answered; null when there is none. @returns {Call | null} */
  get current() {
    return [...this._calls.values()].find((call) => call.state !== "ended") ?? null;
  }

  /**
   * Calls a user. Rejects with the reason: callee_offline, busy, blocked, not_contact … When the other user calls at the same
   * moment, the two share one call: its direction may be "incoming", and it is to be accepted then.
   * @param {string} userId
   * @param {{kind: CallKind, sdp: string}} offer
   * @returns {Promise<Call>}
   */
  invite(userId, { kind, sdp }) {
    const clientMsgId = this._host.makeId();
    const frame = { type: "CALL_INVITE", to: userId, callKind: kind, sdp, clientMsgId };
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this._refuse(clientMsgId, new NexoError("timeout")), INVITE_TIMEOUT_MS);
      /** @type {(call: Call) => void} */
      const done = (call) => (clearTimeout(timer), resolve(call));
      /** @type {(error: NexoError) => void} */
      const failed = (error) => (clearTimeout(timer), reject(error));
      this._invitations.set(clientMsgId, { frame, resolve: done, reject: failed });
      this._host.send(frame); // without a connection it is sent with the next one
    });
  }

  /**
   * Earlier calls, newest first.
   * @param {{cursor?: string | null, limit?: number}} [page]
   * @returns {Promise<{calls: CallRecord[], nextCursor: string, hasMore: boolean}>}
   */
  async list({ cursor, limit } = {}) {
    const params = { ...(cursor ? { cursor } : {}), ...(limit === undefined ? {} : { limit }) };
    return camel(await this._host.call("GET", "/call/list", params));
  }

  /** STUN and TURN servers, for `new RTCPeerConnection({iceServers})`. @returns {Promise<IceServer[]>} */
  async iceServers() {
    return (await this._host.call("GET", "/call/ice", {})).ice_servers;
  }

  // -- inside -----------------------------------------------------------------------------------------------

  /** @param {Record<string, any>} frame */
  _send(frame) {
    if (!this._host.send(frame) && this._waiting.length < WAITING_MAX) this._waiting.push(frame);
  }

  /** The connection is back. */
  _online() {
    for (const { frame } of this._invitations.values()) this._host.send(frame);
    for (const frame of this._waiting.splice(0)) this._host.send(frame);
  }

  /** @param {any} frame */
  _receive(frame) {
    if (frame.type === "CALL_INVITE_OK") return this._invited(frame);
    if (frame.type === "CALL_INVITE") return this._ringing(frame);
    if (frame.type === "CALL_ERROR" && this._invitations.has(frame.clientMsgId)) {
      return this._refuse(frame.clientMsgId, new NexoError(frame.reason, frame.detail, frame));
    }
    this._calls.get(frame.callId)?._receive(frame);
  }

  /** @param {any} frame */
  _invited({ callId, clientMsgId }) {
    const invitation = this._invitations.get(clientMsgId);
    if (!invitation) return;
    this._invitations.delete(clientMsgId);
    const { to: userId, callKind: kind } = invitation.frame;
    const crossed = this._calls.get(callId); // the other user's invitation was stored first
    invitation.resolve(crossed ?? this._add({ callId, userId, kind, direction: "outgoing" }));
  }

  /** @param {any} frame */
  _ringing({ callId, from: userId, callKind: kind, sdp }) {
    const known = this._calls.get(callId);
    if (known) return;
    const call = this._add({ callId, userId, kind, direction: "incoming", sdp });
    const isAwaited = [...this._invitations.values()].some(({ frame }) => frame.to === userId);
    if (!isAwaited) this._emit("incoming", call); // else `invite` returns it
  }

  /** @param {{callId: string, userId: string, kind: CallKind, direction: "outgoing" | "incoming", sdp?: string}} shape */
  _add(shape) {
    const call = new Call((frame) => this._send(frame), shape);
    this._calls.set(call.callId, call);
    for (const [callId, old] of this._calls) {
      if (this._calls.size <= CALLS_MAX) break;
      if (old.state === "ended") this._calls.delete(callId);
    }
    return call;
  }

  /** @param {string} clientMsgId @param {NexoError} error */
  _refuse(clientMsgId, error) {
    const invitation = this._invitations.get(clientMsgId);
    this._invitations.delete(clientMsgId);
    invitation?.reject(error);
  }

  /** A message; the record of a call says that it has ended, also when that frame was lost. @param {any} message */
  _learn(message) {
    if (message.msgType !== RECORD) return;
    const { call_id: callId, outcome, duration_ms: durationMs } = message.content ?? {};
    this._calls.get(callId)?._end(outcome, durationMs || null);
  }

  /** The user signs out, or the client is closed. @param {string} reason */
  _clear(reason) {
    for (const clientMsgId of [...this._invitations.keys()]) this._refuse(clientMsgId, new NexoError(reason));
    for (const call of this._calls.values()) call._end(reason);
    this._calls.clear();
    this._waiting = [];
  }
}
