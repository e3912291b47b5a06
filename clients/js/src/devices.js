// The user's sessions on all devices (`client.devices`), and notifications on them while the user is away (`client.push`).

import { camel } from "./camel-case.js";

/** @import { Device } from "./types.js" */

export class Devices {
  /** @param {import("./users.js").Call} call */
  constructor(call) {
    this._call = call;
  }

  /** @returns {Promise<Device[]>} */
  async list() {
    return camel(await this._call("GET", "/session/list", {})).sessions;
  }

  /** Signs one out. @param {string} sessionId */
  async revoke(sessionId) {
    await this._call("POST", "/session/revoke", { session_id: sessionId });
  }

  /** Signs all out but this one. @returns {Promise<number>} how many */
  async revokeOthers() {
    return (await this._call("POST", "/session/revoke", { others: true })).revoked;
  }
}

export class Push {
  /** @param {import("./users.js").Call} call */
  constructor(call) {
    this._call = call;
  }

  /**
   * The kinds that the server sends, and the key for browsers (`applicationServerKey`).
   * @returns {Promise<{kinds: string[], web: {publicKey: string} | null}>}
   */
  async config() {
    return camel(await this._call("GET", "/push/config", {}));
  }

  /**
   * Registers this device; it ends with the session.
   * @param {{kind: string, deviceId: string, token?: string, subscription?: any, lang?: string}} device
   * @returns {Promise<void>}
   */
  async register({ kind, deviceId, token, subscription, lang }) {
    await this._call("POST", "/push/register", { kind, device_id: deviceId, token, subscription, lang });
  }

  /**
   * Ends the registration of this session, or of the device that is named.
   * @param {{kind?: string, deviceId?: string, token?: string, subscription?: any}} [device]
   * @returns {Promise<number>} how many were removed
   */
  async unregister({ kind, deviceId, token, subscription } = {}) {
    const params = { kind, device_id: deviceId, token, subscription };
    return (await this._call("POST", "/push/unregister", params)).removed;
  }
}
