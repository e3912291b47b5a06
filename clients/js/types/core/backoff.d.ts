export class Backoff {
    /**
     * @param {number} minMs
     * @param {number} maxMs
     * @param {() => number} random
     */
    constructor(minMs: number, maxMs: number, random: () => number);
    _minMs: number;
    _maxMs: number;
    _random: () => number;
    attempts: number;
    /**
     * How long to wait before the next attempt.
     * @param {number} [hintMs] the server's hint: never less than that
     */
    next(hintMs?: number): number;
    /** Let the next pauses be no longer than after so many failures. @param {number} failures */
    limit(failures: number): void;
    reset(): void;
}
