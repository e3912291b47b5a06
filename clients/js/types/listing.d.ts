export class Listing {
    /**
     * @param {Call} call
     * @param {Shell} shell
     * @param {() => number} clock
     * @param {(error: unknown) => void} failed
     */
    constructor(call: Call, shell: Shell, clock: () => number, failed: (error: unknown) => void);
    _call: import("./users.js").Call;
    _shell: Shell;
    _clock: () => number;
    _failed: (error: unknown) => void;
    _cursor: string;
    _hasMore: boolean;
    /** @type {Set<string>} */
    _seen: Set<string>;
    /** @type {Promise<boolean> | null} */
    _loading: Promise<boolean> | null;
    /** @type {ReturnType<typeof setTimeout> | null} */
    _again: ReturnType<typeof setTimeout> | null;
    _round: number;
    /** From the beginning, in the background: it is an extra, SYNC has what counts. */
    reload(): void;
    stop(): void;
    /** The next page; whether there are more. @param {number} [limit] */
    more(limit?: number): Promise<boolean>;
    /** @param {number} limit */
    _load(limit: number): Promise<boolean>;
    /** @param {number} limit */
    _fetch(limit: number): Promise<any>;
    /** @param {any[]} rows of the API */
    apply(rows: any[]): void;
}
export type Call = import("./users.js").Call;
import type { Shell } from "./shell.js";
