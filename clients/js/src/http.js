// Calls of the HTTP API.

import { NexoError } from "./errors.js";

const TIMEOUT_MS = 15_000;

const RAW_TIMEOUT_MS = 60_000; // the end of an upload is answered when the server has examined the file

const DOWNLOAD_TIMEOUT_MS = 600_000;

export class Http {
  /**
   * @param {string} url
   * @param {typeof globalThis.fetch} fetch
   * @param {number} [timeoutMs]
   */
  constructor(url, fetch, timeoutMs = TIMEOUT_MS) {
    this._url = url.replace(/\/+$/, "");
    this._fetch = fetch;
    this._timeoutMs = timeoutMs;
  }

  get socketUrl() {
    return `${this._url.replace(/^http/, "ws")}/ws`;
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {Record<string, any>} params names of the API
   * @param {string} [token]
   * @param {object} [how]
   * @param {string} [how.userId] the user for whom a backend acts
   * @param {number} [how.waitS] how long the server may take longer than usual
   * @returns {Promise<any>} what is in `data`
   */
  async call(method, path, params, token, { userId, waitS = 0 } = {}) {
    const hasBody = method === "POST" || method === "PUT" || (method === "DELETE" && path === "/user"); // a password is no part of an address
    const query = hasBody ? "" : encodeQuery(params);
    /** @type {Record<string, string>} */
    const headers = {};
    if (hasBody) headers["Content-Type"] = "application/json";
    if (token) headers.Authorization = `Bearer ${token}`;
    if (userId !== undefined) headers["Nexo-User"] = userId;
    const timeoutMs = this._timeoutMs + waitS * 1000;
    const body = hasBody ? JSON.stringify(params) : undefined;
    const { status, reply } = await this._request(this._url + path + query, { method, headers, body }, timeoutMs).catch((error) => {
      // the server has closed an idle connection: a GET can be repeated
      if (method !== "GET" || error.reason !== "network") throw error;
      return this._request(this._url + path + query, { method, headers }, timeoutMs);
    });
    if (reply?.err_code === 0) return reply.data;
    const reason = typeof reply?.err_msg === "string" ? reply.err_msg : "bad_reply";
    const retryAfterMs = reply?.retry_after_ms ?? reply?.data?.retry_after_ms ?? 0;
    throw new NexoError(reason, reply?.detail ?? `HTTP ${status}`, { status, retryAfterMs });
  }

  get url() {
    return this._url;
  }

  /**
   * A request that is not JSON.
   * @param {string} method
   * @param {string} path
   * @param {Record<string, string>} headers
   * @param {Blob} [body]
   * @returns {Promise<Headers>} of the answer
   */
  async callRaw(method, path, headers, body) {
    const { status, reply, headers: answered } = await this._request(this._url + path, { method, headers, body }, Math.max(this._timeoutMs, RAW_TIMEOUT_MS));
    if (status < 400) return answered;
    const reason = typeof reply?.err_msg === "string" ? reply.err_msg : status >= 500 ? "server_busy" : "refused";
    throw new NexoError(reason, reply?.detail ?? `HTTP ${status}`, { status, retryAfterMs: reply?.retry_after_ms ?? 0 });
  }

  /**
   * The content of an answer that is not JSON.
   * @param {string} path
   * @param {Record<string, string>} headers
   * @returns {Promise<Blob>}
   */
  async download(path, headers) {
    const { status, reply, content } = await this._request(this._url + path, { method: "GET", headers }, DOWNLOAD_TIMEOUT_MS, true);
    if (content && status < 400) return content;
    const reason = typeof reply?.err_msg === "string" ? reply.err_msg : "bad_reply";
    throw new NexoError(reason, reply?.detail ?? `HTTP ${status}`, { status, retryAfterMs: reply?.retry_after_ms ?? 0 });
  }

  /** @param {string} url @param {RequestInit} init @param {number} timeoutMs @param {boolean} [isFile] */
  async _request(url, init, timeoutMs, isFile = false) {
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(), timeoutMs);
    try {
      const fetch = this._fetch; // not as a method: browsers refuse a fetch with a foreign `this`
      const response = await fetch(url, { ...init, signal: abort.signal, cache: "no-store" });
      if (isFile && response.ok) return { status: response.status, reply: null, headers: response.headers, content: await response.blob() };
      const text = await response.text();
      return { status: response.status, reply: parse(text), headers: response.headers };
    } catch (error) {
      if (abort.signal.aborted) throw new NexoError("timeout", "The server did not answer in time");
      throw new NexoError("network", error instanceof Error ? error.message : String(error));
    } finally {
      clearTimeout(timer);
    }
  }
}

/** @param {string} text */
function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null; // a proxy's page, not Nexo's answer
  }
}

/** @param {Record<string, any>} params */
function encodeQuery(params) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== null) query.set(name, Array.isArray(value) ? value.join(",") : String(value));
  }
  const text = query.toString();
  return text ? `?${text}` : "";
}
