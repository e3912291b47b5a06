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
export class Call extends Emitter<CallEvents> {
    /**
     * @param {(frame: Record<string, any>) => void} send
     * @param {{callId: string, userId: string, kind: CallKind, direction: "outgoing" | "incoming", sdp?: string | null}} shape
     */
    constructor(send: (frame: Record<string, any>) => void, { callId, userId, kind, direction, sdp }: {
        callId: string;
        userId: string;
        kind: CallKind;
        direction: "outgoing" | "incoming";
        sdp?: string | null;
    });
    _send: (frame: Record<string, any>) => void;
    callId: string;
    userId: string;
    kind: CallKind;
    direction: "outgoing" | "incoming";
    sdp: string | null;
    /** @type {CallState} */
    state: CallState;
    /** Why it ended: rejected, canceled, timeout, answered_elsewhere, connection_lost, ended … @type {string | null} */
    reason: string | null;
    /** @type {number | null} */
    durationMs: number | null;
    /** All candidates of the other device so far; the event `ice` has each new one. @type {any[]} */
    candidates: any[];
    /** Answers an incoming call. When another device was faster, it ends with `answered_elsewhere`. @param {string} sdp */
    accept(sdp: string): void;
    /** Declines an incoming call. */
    reject(): void;
    /** Withdraws an own call that was not answered. */
    cancel(): void;
    /** Hangs up. `failed`: no media arrived. @param {string} [reason] */
    end(reason?: string): void;
    /** Sends a candidate of this device; null (there are no more) is not sent. @param {any} candidate */
    ice(candidate: any): void;
    /** Sends a new offer or answer during the call: after a change of the network, or for other media. @param {Description} description */
    describe(description: Description): void;
    /** @param {"outgoing" | "incoming"} direction @param {CallState} state */
    _check(direction: "outgoing" | "incoming", state: CallState): void;
    /** @param {CallState} state */
    _become(state: CallState): void;
    /** @param {string} reason @param {number | null} [durationMs] */
    _end(reason: string, durationMs?: number | null): void;
    /** @param {any} frame */
    _receive(frame: any): void;
    /** @param {any} frame */
    _receiveIce(frame: any): void;
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
export class Calls extends Emitter<{
    incoming: Call;
}> {
    /** @param {CallsHost} host */
    constructor(host: CallsHost);
    _host: CallsHost;
    /** By call; also some that ended. @type {Map<string, Call>} */
    _calls: Map<string, Call>;
    /** By clientMsgId. @type {Map<string, Invitation>} */
    _invitations: Map<string, Invitation>;
    /** @type {Record<string, any>[]} */
    _waiting: Record<string, any>[];
    /** The call that rings or is answered; null when there is none. @returns {Call | null} */
    get current(): Call | null;
    /**
     * Calls a user. Rejects with the reason: callee_offline, busy, blocked, not_contact … When the other user calls at the same
     * moment, the two share one call: its direction may be "incoming", and it is to be accepted then.
     * @param {string} userId
     * @param {{kind: CallKind, sdp: string}} offer
     * @returns {Promise<Call>}
     */
    invite(userId: string, { kind, sdp }: {
        kind: CallKind;
        sdp: string;
    }): Promise<Call>;
    /**
     * Earlier calls, newest first.
     * @param {{cursor?: string | null, limit?: number}} [page]
     * @returns {Promise<{calls: CallRecord[], nextCursor: string, hasMore: boolean}>}
     */
    list({ cursor, limit }?: {
        cursor?: string | null;
        limit?: number;
    }): Promise<{
        calls: CallRecord[];
        nextCursor: string;
        hasMore: boolean;
    }>;
    /** STUN and TURN servers, for `new RTCPeerConnection({iceServers})`. @returns {Promise<IceServer[]>} */
    iceServers(): Promise<IceServer[]>;
    /** @param {Record<string, any>} frame */
    _send(frame: Record<string, any>): void;
    /** The connection is back. */
    _online(): void;
    /** @param {any} frame */
    _receive(frame: any): void;
    /** @param {any} frame */
    _invited({ callId, clientMsgId }: any): void;
    /** @param {any} frame */
    _ringing({ callId, from: userId, callKind: kind, sdp }: any): void;
    /** @param {{callId: string, userId: string, kind: CallKind, direction: "outgoing" | "incoming", sdp?: string}} shape */
    _add(shape: {
        callId: string;
        userId: string;
        kind: CallKind;
        direction: "outgoing" | "incoming";
        sdp?: string;
    }): Call;
    /** @param {string} clientMsgId @param {NexoError} error */
    _refuse(clientMsgId: string, error: NexoError): void;
    /** A message; the record of a call says that it has ended, also when that frame was lost. @param {any} message */
    _learn(message: any): void;
    /** The user signs out, or the client is closed. @param {string} reason */
    _clear(reason: string): void;
}
export type CallKind = "audio" | "video";
export type CallState = "ringing" | "active" | "ended";
export type Description = {
    type: "offer" | "answer";
    sdp: string;
};
export type CallEvents = {
    /**
     * it changed
     */
    state: CallState;
    /**
     * the answer of the other device: `setRemoteDescription({type: "answer", sdp})`
     */
    accepted: string;
    /**
     * a candidate of the other device: `addIceCandidate(candidate)`
     */
    ice: any;
    /**
     * a new offer or answer, after `describe` of the other device
     */
    description: Description;
    ended: {
        reason: string;
        durationMs: number | null;
    };
};
export type CallsHost = {
    /**
     * false: there is no connection now
     */
    send: (frame: Record<string, any>) => boolean;
    call: (method: string, path: string, params: Record<string, any>) => Promise<any>;
    makeId: () => string;
};
export type Invitation = {
    frame: Record<string, any>;
    resolve: (call: Call) => void;
    reject: (error: NexoError) => void;
};
import { Emitter } from "./emitter.js";
import type { CallRecord } from "./types.js";
import type { IceServer } from "./types.js";
import { NexoError } from "./errors.js";
