// What a product's own backend does with its key: `NexoBackend`, from "nexo-im-client/backend". docs/clients.md describes it.

import { ActingUser } from "./acting-user.js";
import { BackendEvents } from "./backend-events.js";
import { camel, snake } from "./camel-case.js";
import { NexoError } from "./errors.js";
import { Http } from "./http.js";

export { NexoError } from "./errors.js";
export { verifyWebhook } from "./webhooks.js";

/** @import { BackendCall } from "./acting-user.js" */
/** @import { BackendUser, IssuedToken, PutUser, User } from "./types.js" */

/** A Nexo server as the backend of a product uses it, with a key that `nexo key add` printed. */
export class NexoBackend {
  /**
   * @param {string} url
   * @param {string} key
   * @param {{timeoutMs?: number, fetch?: typeof globalThis.fetch}} [options]
   */
  constructor(url, key, { timeoutMs = 10_000, fetch = globalThis.fetch } = {}) {
    this._http = new Http(checkedUrl(url), fetch, timeoutMs);
    this._key = checkedKey(key);
    const call = this._call.bind(this);
    this.users = new BackendUsers(call);
    this.tokens = new BackendTokens(call);
    this.sessions = new BackendSessions(call);
  }

  /**
   * Any call of the HTTP API by the key, with its own names.
   * @param {string} method
   * @param {string} path
   * @param {Record<string, any>} [params]
   * @returns {Promise<any>}
   */
  call(method, path, params = {}) {
    return this._call(method, path, params);
  }

  /** @type {BackendCall} */
  _call(method, path, params, how) {
    return this._http.call(method, path, params, this._key, how);
  }

  /** The calls of a user, done by the key: it needs the scope `act`. @param {string} userId */
  act(userId) {
    return new ActingUser(userId, this._call.bind(this));
  }

  /**
   * What happens after `cursor`, for `for await`: from now on without one, with `begin` from the oldest that is kept.
   * @param {string | null} [cursor]
   * @param {{types?: readonly string[], limit?: number, waitS?: number}} [options] types such as `message.saved`; none are all
   */
  events(cursor = null, options = {}) {
    return new BackendEvents(this._call.bind(this), cursor, options);
  }

  /** For symmetry with other SDKs: there is nothing to close. */
  async close() {}
}

/** @param {string} url */
function checkedUrl(url) {
  if (!/^https?:\/\//.test(url)) throw new NexoError("bad_url", "Begin the address of the server with http:// or https://");
  return url;
}

/** The key without the line end of the file that it was read from. The error does not show the key. @param {string} key */
function checkedKey(key) {
  const text = String(key).trim();
  if (!/^[!-~]+$/.test(text)) throw new NexoError("bad_key", "Pass the key as `nexo key add` printed it: it is empty, or has other characters");
  return text;
}

/** `backend.users`: needs the scope `users`. */
export class BackendUsers {
  /** @param {BackendCall} call */
  constructor(call) {
    this._call = call;
  }

  /**
   * Creates users, or changes those that exist, at most 1000. They need no password.
   * @param {readonly PutUser[]} users
   * @returns {Promise<User[]>}
   */
  async put(users) {
    return camel(await this._call("PUT", "/server/users", { users: users.map((user) => snake(user)) })).users;
  }

  /** @param {string} userId @returns {Promise<BackendUser>} */
  async get(userId) {
    return camel(await this._call("GET", pathOf(userId), {}));
  }

  /** Ends the user's connections and refuses new ones. @param {string} userId @param {string} [reason] */
  async disable(userId, reason = "") {
    await this._call("POST", `${pathOf(userId)}/disable`, { reason });
  }

  /** @param {string} userId */
  async enable(userId) {
    await this._call("POST", `${pathOf(userId)}/enable`, {});
  }
}

/** `backend.tokens`: needs the scope `tokens`. */
export class BackendTokens {
  /** @param {BackendCall} call */
  constructor(call) {
    this._call = call;
  }

  /**
   * An access token with which a client of the user signs in.
   * @param {string} userId
   * @param {{platformId?: number, deviceId?: string, ttlS?: number, refresh?: boolean}} [options]
   * @returns {Promise<IssuedToken>}
   */
  async create(userId, options = {}) {
    return camel(await this._call("POST", "/server/tokens", snake({ userId, ...options })));
  }
}

/** `backend.sessions`: needs the scope `tokens`. */
export class BackendSessions {
  /** @param {BackendCall} call */
  constructor(call) {
    this._call = call;
  }

  /**
   * Ends the sessions of a user, or those of one device.
   * @param {string} userId
   * @param {string} [deviceId]
   * @returns {Promise<number>} how many
   */
  async revoke(userId, deviceId) {
    return (await this._call("POST", "/server/sessions/revoke", snake({ userId, deviceId }))).revoked;
  }
}

/** @param {string} userId */
function pathOf(userId) {
  return `/server/users/${encodeURIComponent(userId)}`;
}
