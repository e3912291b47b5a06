export class NexoError extends Error {
    /**
     * @param {string} reason
     * @param {string} [detail]
     * @param {object} [more]
     * @param {number} [more.status] of HTTP
     * @param {number} [more.retryAfterMs]
     */
    constructor(reason: string, detail?: string, { status, retryAfterMs }?: {
        status?: number | undefined;
        retryAfterMs?: number | undefined;
    });
    reason: string;
    detail: string;
    status: number;
    retryAfterMs: number;
    /** Whether trying again may help. */
    get isTransient(): boolean;
}
