export class RepeatedCalls {
    /**
     * @param {object} options
     * @param {number} options.backoffMinMs
     * @param {number} options.backoffMaxMs
     * @param {number} options.maxPending
     * @param {() => number} options.random
     */
    constructor(options: {
        backoffMinMs: number;
        backoffMaxMs: number;
        maxPending: number;
        random: () => number;
    });
    _options: {
        backoffMinMs: number;
        backoffMaxMs: number;
        maxPending: number;
        random: () => number;
    };
    /** What is under way or waits, by lane. @type {Map<string, Promise<any>>} */
    _lanes: Map<string, Promise<any>>;
    _count: number;
    _round: number;
    /** @type {Set<() => void>} */
    _sleeping: Set<() => void>;
    /**
     * @template R
     * @param {string} lane
     * @param {() => Promise<R>} call is the same each time: the server knows a repetition by its id
     * @returns {Promise<R>}
     */
    run<R>(lane: string, call: () => Promise<R>): Promise<R>;
    /** The connection is back: tries at once. */
    wake(): void;
    /** Gives up all calls that wait: they fail with `closed`. */
    stop(): void;
    /**
     * @template R
     * @param {() => Promise<R>} call
     * @param {number} round
     * @returns {Promise<R>}
     */
    _repeat<R>(call: () => Promise<R>, round: number): Promise<R>;
    /** @param {number} ms @param {number} round @returns {Promise<void>} */
    _sleep(ms: number, round: number): Promise<void>;
}
