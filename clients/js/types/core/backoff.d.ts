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
     * @param {number} [hintMs] the server's own wish: never less than that, and spread
     */
    next(hintMs?: number): number;
    reset(): void;
}
