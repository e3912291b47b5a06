// The one error class. `reason` is a name of docs/errors.md, or one of the SDK's own: network, timeout, bad_reply, …

const TRANSIENT = new Set([
  "network", "timeout", "bad_reply", "server_busy", "internal_error", "too_many_requests", "server_shutdown", "storage_full", "too_many_uploads",
]); // prettier-ignore

export class NexoError extends Error {
  /**
   * @param {string} reason
   * @param {string} [detail]
   * @param {object} [more]
   * @param {number} [more.status] of HTTP
   * @param {number} [more.retryAfterMs]
   */
  constructor(reason, detail = "", { status = 0, retryAfterMs = 0 } = {}) {
    super(detail ? `${reason}: ${detail}` : reason);
    this.name = "NexoError";
    this.reason = reason;
    this.detail = detail;
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }

  /** Whether trying again may help. */
  get isTransient() {
    return TRANSIENT.has(this.reason);
  }
}
