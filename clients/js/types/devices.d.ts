/** @import { Device } from "./types.js" */
export class Devices {
    /** @param {import("./users.js").Call} call */
    constructor(call: import("./users.js").Call);
    _call: import("./users.js").Call;
    /** @returns {Promise<Device[]>} */
    list(): Promise<Device[]>;
    /** Signs one out. @param {string} sessionId */
    revoke(sessionId: string): Promise<void>;
    /** Signs all out but this one. @returns {Promise<number>} how many */
    revokeOthers(): Promise<number>;
}
export class Push {
    /** @param {import("./users.js").Call} call */
    constructor(call: import("./users.js").Call);
    _call: import("./users.js").Call;
    /**
     * The kinds that the server sends, and the key for browsers (`applicationServerKey`).
     * @returns {Promise<{kinds: string[], web: {publicKey: string} | null}>}
     */
    config(): Promise<{
        kinds: string[];
        web: {
            publicKey: string;
        } | null;
    }>;
    /**
     * Registers this device; it ends with the session.
     * @param {{kind: string, deviceId: string, token?: string, subscription?: any, lang?: string}} device
     * @returns {Promise<void>}
     */
    register({ kind, deviceId, token, subscription, lang }: {
        kind: string;
        deviceId: string;
        token?: string;
        subscription?: any;
        lang?: string;
    }): Promise<void>;
    /**
     * Ends the registration of this session, or of the device that is named.
     * @param {{kind?: string, deviceId?: string, token?: string, subscription?: any}} [device]
     * @returns {Promise<number>} how many were removed
     */
    unregister({ kind, deviceId, token, subscription }?: {
        kind?: string;
        deviceId?: string;
        token?: string;
        subscription?: any;
    }): Promise<number>;
}
import type { Device } from "./types.js";
