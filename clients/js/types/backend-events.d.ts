/**
 * Events in order, each at least once, without end. Errors that may pass are waited for; others are thrown.
 *
 * After an event was handled, its `cursor` is stored: a later run continues there. Pages are the unit of that, so a few events
 * may be received again; `eventId` identifies them. `cursor` of the iterator is the same for all events before the current one.
 */
export class BackendEvents {
    /**
     * @param {BackendCall} call
     * @param {string | null} cursor
     * @param {{types?: readonly string[], limit?: number, waitS?: number}} options
     */
    constructor(call: BackendCall, cursor: string | null, { types, limit, waitS }: {
        types?: readonly string[];
        limit?: number;
        waitS?: number;
    });
    cursor: string | null;
    _call: BackendCall;
    _options: {
        types: string | null;
        limit: number;
        waitS: number;
    };
    /** @type {BackendEvent[]} */
    _waiting: BackendEvent[];
    /** @type {BackendEvent | null} */
    _current: BackendEvent | null;
    _isOver: boolean;
    /** @returns {Promise<IteratorResult<BackendEvent, undefined>>} */
    next(): Promise<IteratorResult<BackendEvent, undefined>>;
    /** @returns {Promise<IteratorResult<BackendEvent, undefined>>} */
    return(): Promise<IteratorResult<BackendEvent, undefined>>;
    /**
     * Requests the next page. The first request without a cursor does not wait: its answer is the place from which a restart
     * continues.
     */
    _fetch(): Promise<void>;
    /** @param {any} page */
    _take(page: any): void;
    [Symbol.asyncIterator](): this;
}
import type { BackendCall } from "./acting-user.js";
import type { BackendEvent } from "./types.js";
