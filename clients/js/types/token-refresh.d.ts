export class TokenRefresh {
    /**
     * @param {Sessions} sessions
     * @param {() => number} clock
     * @param {() => number} random
     * @param {(reason: string) => void} ended called when the application gives no token
     */
    constructor(sessions: Sessions, clock: () => number, random: () => number, ended: (reason: string) => void);
    _sessions: Sessions;
    _clock: () => number;
    _random: () => number;
    _ended: (reason: string) => void;
    /** @type {ReturnType<typeof setTimeout> | null} */
    _timer: ReturnType<typeof setTimeout> | null;
    /** Sets the timer for the current session. */
    start(): void;
    stop(): void;
    /** @param {number} ms */
    _wait(ms: number): void;
    _renew(): void;
}
import { Sessions } from "./sessions.js";
