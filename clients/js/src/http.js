// Calls of the HTTP API.

import { NexoError } from "./errors.js";

const TIMEOUT_MS = 15_000;

export class Http {
  /**
   * @param {string} url
   * @param {typeof globalThis.fetch} fetch
   */
  constructor(url, fetch) {
    this._url = url.replace(/\/+$/, "");
    this._fetch = fetch;
  }

  get socketUrl() {
    return `${this._url.replace(/^http/, "ws")}/ws`;
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {Record<string, any>} params names of the API
   * @param {string} [token]
   * @returns {Promise<any>} what is in `data`
   */
  async call(method, path, params, token) {
    const hasBody = method === "POST" || method === "PUT";
    const query = hasBody ? "" : encodeQuery(params);
    /** @type {Record<string, string>} */
    const headers = {};
    if (hasBody) headers["Content-Type"] = "application/json";
    if (token) headers.Authorization = `Bearer ${token}`;
    const body = hasBody ? JSON.stringify(params) : undefined;
    const { status, reply } = await this._request(this._url + path + query, { method, headers, body }).catch((error) => {
      // an idle connection that the server closed meanwhile: asking again does no harm
      if (method !== "GET" || error.reason !== "network") throw error;
      return this._request(this._url + path + query, { method, headers });
    });
    if (reply?.err_code === 0) return reply.data;
    const reason = typeof reply?.err_msg === "string" ? reply.err_msg : "bad_reply";
    const retryAfterMs = reply?.retry_after_ms ?? reply?.data?.retry_after_ms ?? 0;
    throw new NexoError(reason, reply?.detail ?? `HTTP ${status}`, { status, retryAfterMs });
  }

  /** @param {string} url @param {RequestInit} init */
  async _request(url, init) {
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(), TIMEOUT_MS);
    try {
      const fetch = this._fetch; // not as a method: browsers refuse a fetch with a foreign `this`
      const response = await fetch(url, { ...init, signal: abort.signal, cache: "no-store" });
      const text = await response.text();
      return { status: response.status, reply: parse(text) };
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
