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
    constructor(url: string, key: string, { timeoutMs, fetch }?: {
        timeoutMs?: number;
        fetch?: typeof globalThis.fetch;
    });
    _http: Http;
    _key: string;
    users: BackendUsers;
    tokens: BackendTokens;
    sessions: BackendSessions;
    /**
     * Any call of the HTTP API by the key, with its own names.
     * @param {string} method
     * @param {string} path
     * @param {Record<string, any>} [params]
     * @returns {Promise<any>}
     */
    call(method: string, path: string, params?: Record<string, any>): Promise<any>;
    _call(method: string, path: string, params: Record<string, any>, how?: {
        userId?: string;
        waitS?: number;
    }): Promise<any>;
    /** The calls of a user, done by the key: it needs the scope `act`. @param {string} userId */
    act(userId: string): ActingUser;
    /**
     * What happens after `cursor`, for `for await`: from now on without one, with `begin` from the oldest that is kept.
     * @param {string | null} [cursor]
     * @param {{types?: readonly string[], limit?: number, waitS?: number}} [options] types such as `message.saved`; none are all
     */
    events(cursor?: string | null, options?: {
        types?: readonly string[];
        limit?: number;
        waitS?: number;
    }): BackendEvents;
    /** For symmetry with other SDKs: there is nothing to close. */
    close(): Promise<void>;
}
/** `backend.users`: needs the scope `users`. */
export class BackendUsers {
    /** @param {BackendCall} call */
    constructor(call: BackendCall);
    _call: BackendCall;
    /**
     * Creates users, or changes those that exist, at most 1000. They need no password.
     * @param {readonly PutUser[]} users
     * @returns {Promise<User[]>}
     */
    put(users: readonly PutUser[]): Promise<User[]>;
    /** @param {string} userId @returns {Promise<BackendUser>} */
    get(userId: string): Promise<BackendUser>;
    /** Ends the user's connections and refuses new ones. @param {string} userId @param {string} [reason] */
    disable(userId: string, reason?: string): Promise<void>;
    /** @param {string} userId */
    enable(userId: string): Promise<void>;
}
/** `backend.tokens`: needs the scope `tokens`. */
export class BackendTokens {
    /** @param {BackendCall} call */
    constructor(call: BackendCall);
    _call: BackendCall;
    /**
     * An access token with which a client of the user signs in.
     * @param {string} userId
     * @param {{platformId?: number, deviceId?: string, ttlS?: number, refresh?: boolean}} [options]
     * @returns {Promise<IssuedToken>}
     */
    create(userId: string, options?: {
        platformId?: number;
        deviceId?: string;
        ttlS?: number;
        refresh?: boolean;
    }): Promise<IssuedToken>;
}
/** `backend.sessions`: needs the scope `tokens`. */
export class BackendSessions {
    /** @param {BackendCall} call */
    constructor(call: BackendCall);
    _call: BackendCall;
    /**
     * Ends the sessions of a user, or those of one device.
     * @param {string} userId
     * @param {string} [deviceId]
     * @returns {Promise<number>} how many
     */
    revoke(userId: string, deviceId?: string): Promise<number>;
}
import { Http } from "./http.js";
import { ActingUser } from "./acting-user.js";
import { BackendEvents } from "./backend-events.js";
import type { BackendCall } from "./acting-user.js";
import type { PutUser } from "./types.js";
import type { User } from "./types.js";
import type { BackendUser } from "./types.js";
import type { IssuedToken } from "./types.js";
