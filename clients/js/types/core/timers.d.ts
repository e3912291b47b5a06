export class Timers {
    /** @type {Map<string, {at: number, run: (now: number) => void}>} */
    _timers: Map<string, {
        at: number;
        run: (now: number) => void;
    }>;
    _earliest: number;
    /** When to call `run` next; a little early at times, never late. */
    get next(): number;
    /** When it is due; Infinity when it is not set. @param {string} name */
    at(name: string): number;
    /** @param {string} name */
    has(name: string): boolean;
    /**
     * @param {string} name an earlier timer of that name is forgotten
     * @param {number} at
     * @param {(now: number) => void} run
     */
    set(name: string, at: number, run: (now: number) => void): void;
    /** @param {string} name */
    clear(name: string): void;
    clearAll(): void;
    /** @param {number} now */
    run(now: number): void;
}
