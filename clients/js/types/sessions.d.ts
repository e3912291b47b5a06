export class Sessions {
    /** Whether an error means that the tokens are of no more use. @param {unknown} error */
    static isOver(error: unknown): boolean;
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
    constructor(http: Http, storage: Storage, locks: Locks, options: {
        deviceId: string | undefined;
        platformId: number;
        getToken: (() => Promise<string | null | undefined>) | undefined;
        clock: () => number;
        makeId: () => string;
        changed: (session: Session | null) => void;
    });
    _http: Http;
    _storage: Storage;
    _locks: Locks;
    _options: {
        deviceId: string | undefined;
        platformId: number;
        getToken: (() => Promise<string | null | undefined>) | undefined;
        clock: () => number;
        makeId: () => string;
        changed: (session: Session | null) => void;
    };
    /** @type {Session | null} */
    current: Session | null;
    /** @type {Promise<Session> | null} */
    _refreshing: Promise<Session> | null;
    /** @param {string} userId @param {string} password */
    login(userId: string, password: string): Promise<Session>;
    /** Whether the application gives tokens. */
    get canAsk(): boolean;
    /**
     * Signs in with a token of the application.
     * @param {string} [userId] whose it must be
     * @returns {Promise<Session>}
     */
    ask(userId?: string): Promise<Session>;
    _askToken(): Promise<string>;
    /**
     * @param {Session} [session] none: the one in the storage
     * @param {string} [expectUser] one of another user is deleted from the storage
     * @returns {Promise<Session | null>}
     */
    restore(session?: Session, expectUser?: string): Promise<Session | null>;
    /** The tokens after a change of the password. @param {any} data */
    replace(data: any): Promise<Session>;
    forget(): Promise<void>;
    /** The session is over, unless another tab has signed in since. */
    forgetIfStored(): Promise<void>;
    deviceId(): Promise<string>;
    /** Whether most of the token's time is over. */
    get isDue(): boolean;
    /**
     * A newer session than this one.
     * @param {Session} stale
     * @returns {Promise<Session>}
     */
    refresh(stale: Session): Promise<Session>;
    /** @param {Session} stale */
    _refresh(stale: Session): Promise<Session>;
    /** A session that another tab has stored. @param {Session} stale */
    _newerInStorage(stale: Session): Promise<Session | null>;
    /** @param {Session} session @param {boolean} isNew */
    _adopt(session: Session, isNew: boolean): Promise<Session>;
    /** @param {any} data @returns {Session} */
    _read(data: any): Session;
}
import type { Http } from "./http.js";
import type { Storage } from "./types.js";
import type { Locks } from "./locks.js";
import type { Session } from "./types.js";
