// The session: signing in, keeping it in the storage, and refreshing it once for all who wait, in this tab and others.

import { NexoError } from "./errors.js";

/** @import { Http } from "./http.js" */
/** @import { Locks } from "./locks.js" */
/** @import { Session, Storage } from "./types.js" */

const KEY = "session";
const DEVICE_KEY = "device";
const SPENT = 0.8; // of a token's time, when it is refreshed

export class Sessions {
  /**
   * @param {Http} http
   * @param {Storage} storage
   * @param {Locks} locks
   * @param {object} options
   * @param {string | undefined} options.deviceId
   * @param {number} options.platformId
   * @param {() => number} options.clock
   * @param {() => string} options.makeId
   * @param {(session: Session | null) => void} options.changed
   */
  constructor(http, storage, locks, options) {
    this._http = http;
    this._storage = storage;
    this._locks = locks;
    this._options = options;
    /** @type {Session | null} */
    this.current = null;
    /** @type {Promise<Session> | null} */
    this._refreshing = null;
  }

  /** @param {string} userId @param {string} password */
  async login(userId, password) {
    const data = await this._http.call("POST", "/auth/login", {
      user_id: userId,
      password,
      platform_id: this._options.platformId,
      device_id: await this.deviceId(),
    });
    return this._adopt(this._read(data), true);
  }

  /**
   * @param {Session} [session] none: the one in the storage
   * @returns {Promise<Session | null>}
   */
  async restore(session) {
    const found = session ?? (await this._storage.get(KEY));
    if (!found) return null;
    return this._adopt(found, session !== undefined);
  }

  /** The tokens after a change of the password. @param {any} data */
  async replace(data) {
    return this._adopt(this._read(data), true);
  }

  async forget() {
    this.current = null;
    await this._storage.delete(KEY);
    this._options.changed(null);
  }

  /** The session is over, unless another tab has signed in since. */
  async forgetIfStored() {
    const token = this.current?.refreshToken;
    const stored = await this._storage.get(KEY).catch(() => undefined);
    this.current = null;
    if (stored?.refreshToken === token) await this._storage.delete(KEY).catch(() => {});
    this._options.changed(null);
  }

  async deviceId() {
    if (this._options.deviceId !== undefined) return this._options.deviceId;
    const stored = await this._storage.get(DEVICE_KEY);
    if (stored) return /** @type {string} */ (stored);
    const made = this._options.makeId();
    await this._storage.set(DEVICE_KEY, made);
    return made;
  }

  /** Whether most of the token's time is over. */
  get isDue() {
    return this.current !== null && this.current.refreshAt <= this._options.clock();
  }

  /**
   * A newer session than this one.
   * @param {Session} stale
   * @returns {Promise<Session>}
   */
  refresh(stale) {
    const current = this.current;
    if (current === null) return Promise.reject(new NexoError("unauthorized", "Sign in first"));
    // access tokens of the same second may be equal, refresh tokens never are
    if (current.refreshToken !== stale.refreshToken) return Promise.resolve(current);
    this._refreshing ??= this._locks
      .run(`nexo refresh ${current.userId}`, () => this._refresh(current))
      .finally(() => (this._refreshing = null));
    return this._refreshing;
  }

  /** @param {Session} stale */
  async _refresh(stale) {
    const before = await this._newerInStorage(stale);
    if (before) return this._adopt(before, false);
    try {
      const data = await this._http.call("POST", "/auth/refresh", { refresh_token: stale.refreshToken });
      return await this._adopt(this._read(data), true);
    } catch (error) {
      const after = await this._newerInStorage(stale);
      if (after) return this._adopt(after, false);
      throw error;
    }
  }

  /** What another tab got. @param {Session} stale */
  async _newerInStorage(stale) {
    /** @type {Session | undefined} */
    const stored = await this._storage.get(KEY).catch(() => undefined);
    const isNewer = stored?.userId === stale.userId && stored.refreshToken !== stale.refreshToken;
    return isNewer && stored.refreshAt > this._options.clock() ? stored : null;
  }

  /** @param {Session} session @param {boolean} isNew */
  async _adopt(session, isNew) {
    this.current = session;
    if (isNew) await this._storage.set(KEY, session);
    this._options.changed(session);
    return session;
  }

  /** @param {any} data @returns {Session} */
  _read(data) {
    const now = this._options.clock();
    return {
      userId: data.user_id,
      accessToken: data.access_token,
      refreshToken: data.refresh_token,
      expiresAt: data.expires_at,
      refreshAt: now + SPENT * lifetimeMs(data, now),
      platformId: data.platform_id,
      deviceId: data.device_id,
    };
  }
}

/**
 * How long a token lasts, by its own account: the server's clock need not be this device's.
 * @param {any} data
 * @param {number} now
 */
function lifetimeMs(data, now) {
  try {
    const payload = data.access_token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/");
    const claims = JSON.parse(atob(payload));
    const lifetime = (claims.exp - claims.iat) * 1000;
    if (lifetime > 0) return lifetime;
  } catch {
    // not that kind of token
  }
  return Math.max(0, data.expires_at - now);
}
