export class Renewal {
    /**
     * @param {Sessions} sessions
     * @param {() => number} clock
     * @param {() => number} random
     */
    constructor(sessions: Sessions, clock: () => number, random: () => number);
    _sessions: Sessions;
    _clock: () => number;
    _random: () => number;
    /** @type {ReturnType<typeof setTimeout> | null} */
    _timer: ReturnType<typeof setTimeout> | null;
    /** For the session there is now. */
    start(): void;
    stop(): void;
    /** @param {number} ms */
    _wait(ms: number): void;
    _renew(): void;
}
import type { Sessions } from "./sessions.js";
