// The session: signing in, its tokens in the storage, and one refresh for all concurrent callers, also in other tabs. Tokens are
// those of a login, or of the application's `getToken`.

import { NexoError } from "./errors.js";

/** @import { Http } from "./http.js" */
/** @import { Locks } from "./locks.js" */
/** @import { Session, Storage } from "./types.js" */

const KEY = "session";
const DEVICE_KEY = "device";
const SPENT = 0.8; // of a token's time, when it is refreshed
const LEAST_MS = 1000; // between two tokens
const NEVER_MS = Number.MAX_SAFE_INTEGER; // of a token that does not show when it expires

const OVER = new Set(["session_invalid", "unauthorized", "reauth_uid_mismatch", "user_disabled", "user_deleted"]);

export class Sessions {
  /**
   * @param {Http} http
   * @param {Storage} storage
   * @param {Locks} locks
   * @param {object} options
   * @param {string | undefined} options.deviceId
   * @param {number} options.platformId
   * @param {(() => Promise<string | null | undefined>) | undefined} options.getToken
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

  /** Whether the application gives tokens. */
  get canAsk() {
    return this._options.getToken !== undefined;
  }

  /**
   * Signs in with a token of the application.
   * @param {string} [userId] whose it must be
   * @returns {Promise<Session>}
   */
  async ask(userId) {
    const token = await this._askToken();
    const { user_id: found } = await this._http.call("GET", "/user/info", {}, token);
    if (userId !== undefined && found !== userId) {
      throw new NexoError("reauth_uid_mismatch", `getToken gave a token of ${found}, not of ${userId}`);
    }
    const deviceId = await this.deviceId();
    const { platformId } = this._options;
    const expiresAt = (claimsOf(token)?.exp ?? Infinity) * 1000;
    const data = { user_id: found, access_token: token, refresh_token: "", expires_at: Math.min(expiresAt, NEVER_MS) };
    const session = this._read({ ...data, platform_id: platformId, device_id: deviceId });
    // it may not be a new one; and the clock of this device may be wrong, which must not make it ask without end
    const now = this._options.clock();
    session.refreshAt = Math.min(session.refreshAt, now + Math.max(SPENT * (session.expiresAt - now), LEAST_MS));
    return this._adopt(session, true);
  }

  async _askToken() {
    let token;
    try {
      token = await this._options.getToken?.();
    } catch (error) {
      if (error instanceof NexoError) throw error;
      throw new NexoError("network", `getToken: ${error}`); // such as an unreachable backend of the product: tried again
    }
    if (!token) throw new NexoError("unauthorized", "getToken gave no token");
    return token;
  }

  /**
   * @param {Session} [session] none: the one in the storage
   * @param {string} [expectUser] one of another user is deleted from the storage
   * @returns {Promise<Session | null>}
   */
  async restore(session, expectUser) {
    const found = session ?? (await this._storage.get(KEY));
    if (!found) return null;
    if (expectUser !== undefined && found.userId !== expectUser) {
      await this._storage.delete(KEY);
      return null;
    }
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
    const ended = this.current;
    const stored = await this._storage.get(KEY).catch(() => undefined);
    this.current = null;
    if (stored && ended && !areOther(stored, ended)) await this._storage.delete(KEY).catch(() => {});
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
    if (areOther(current, stale)) return Promise.resolve(current);
    this._refreshing ??= this._locks
      .run(`nexo refresh ${current.userId}`, () => this._refresh(current))
      .finally(() => (this._refreshing = null));
    return this._refreshing;
  }

  /** @param {Session} stale */
  async _refresh(stale) {
    const before = await this._newerInStorage(stale);
    if (before) return this._adopt(before, false);
    if (stale.refreshToken) {
      try {
        const data = await this._http.call("POST", "/auth/refresh", { refresh_token: stale.refreshToken });
        return await this._adopt(this._read(data), true);
      } catch (error) {
        const after = await this._newerInStorage(stale);
        if (after) return this._adopt(after, false);
        if (!this.canAsk || !Sessions.isOver(error)) throw error;
      }
    }
    if (!this.canAsk) throw new NexoError("session_invalid", "The access token cannot be refreshed");
    return this.ask(stale.userId);
  }

  /** Whether an error means that the tokens are of no more use. @param {unknown} error */
  static isOver(error) {
    return error instanceof NexoError && OVER.has(error.reason);
  }

  /** A session that another tab has stored. @param {Session} stale */
  async _newerInStorage(stale) {
    /** @type {Session | undefined} */
    const stored = await this._storage.get(KEY).catch(() => undefined);
    const isNewer = stored?.userId === stale.userId && areOther(stored, stale);
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

/** Access tokens of the same second may be equal, refresh tokens never are, and may be missing. @param {Session} one @param {Session} other */
function areOther(one, other) {
  return one.refreshToken !== other.refreshToken || one.accessToken !== other.accessToken;
}

/**
 * The lifetime of a token, from its own claims: the server's clock may differ from this device's.
 * @param {any} data
 * @param {number} now
 */
function lifetimeMs(data, now) {
  const claims = claimsOf(data.access_token);
  const lifetime = (claims?.exp - claims?.iat) * 1000;
  return lifetime > 0 ? lifetime : Math.max(0, data.expires_at - now);
}

/** What a JWT states, not checked: the server does that. @param {string} token @returns {any} null for another kind of token */
function claimsOf(token) {
  try {
    return JSON.parse(atob(/** @type {string} */ (token.split(".")[1]).replace(/-/g, "+").replace(/_/g, "/")));
  } catch {
    return null;
  }
}
