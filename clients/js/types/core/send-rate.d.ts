export class SendRate {
    _intervalMs: number;
    _nextAt: number;
    _slowedAt: number;
    /** When the next one may go. */
    get nextAt(): number;
    /** @param {number} now */
    mayGo(now: number): boolean;
    /** @param {number} now */
    sent(now: number): void;
    /** @param {number} now @param {number} retryAfterMs */
    slowDown(now: number, retryAfterMs: number): void;
    worked(): void;
}
