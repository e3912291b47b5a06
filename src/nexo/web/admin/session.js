/** An administrator's session: signed in with a password, kept for this tab, and renewed before it ends. */

const KEY = "nexo.admin";
const PLATFORM_ADMIN = 10;
const RENEW_BEFORE_MS = 60_000;

export class Refused extends Error {
  /** @param {string} name @param {string} detail */
  constructor(name, detail) {
    super(detail || name);
    this.name = name;
  }
}

async function send(method, path, { body, token } = {}) {
  const headers = {};
  if (token) headers.authorization = `Bearer ${token}`;
  if (body) headers["content-type"] = "application/json";
  const response = await fetch(path, { method, headers, body: body && JSON.stringify(body), cache: "no-store" });
  const answer = await response.json();
  if (answer.err_code) throw new Refused(answer.err_msg, answer.detail);
  return answer.data;
}

export class Session {
  #tokens = null;

  constructor() {
    try {
      this.#tokens = JSON.parse(sessionStorage.getItem(KEY) ?? "null");
    } catch {
      // storage is closed to this page: sign in again after a reload
    }
  }

  get isThere() {
    return this.#tokens !== null;
  }

  /** @param {string} userId @param {string} password */
  async signIn(userId, password) {
    this.#keep(await send("POST", "/auth/login", { body: { user_id: userId, password, platform_id: PLATFORM_ADMIN } }));
  }

  async signOut() {
    const token = this.#tokens?.access_token;
    this.forget();
    if (token) await send("POST", "/auth/logout", { token, body: {} }).catch(() => {});
  }

  forget() {
    this.#keep(null);
  }

  /** @param {number} since */
  stats(since) {
    return this.call("GET", `/admin/stats?since=${since}`);
  }

  /** @param {string} method @param {string} path @param {any} [body] */
  async call(method, path, body) {
    if (Date.now() > this.#tokens.expires_at - RENEW_BEFORE_MS) await this.#renew();
    try {
      return await send(method, path, { body, token: this.#tokens.access_token });
    } catch (error) {
      if (!(error instanceof Refused) || error.name !== "token_expired") throw error;
      await this.#renew();
      return send(method, path, { body, token: this.#tokens.access_token });
    }
  }

  async #renew() {
    this.#keep(await send("POST", "/auth/refresh", { body: { refresh_token: this.#tokens.refresh_token } }));
  }

  #keep(tokens) {
    this.#tokens = tokens;
    try {
      if (tokens) sessionStorage.setItem(KEY, JSON.stringify(tokens));
      else sessionStorage.removeItem(KEY);
    } catch {
      // for this page only, then
    }
  }
}
