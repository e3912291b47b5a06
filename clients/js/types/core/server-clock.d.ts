export class ServerClock {
    _aheadMs: number;
    /**
     * A frame has named the server's present time, or one that has passed there.
     * @param {number} now
     * @param {number | undefined} serverMs
     * @param {boolean} isPresent
     */
    heard(now: number, serverMs: number | undefined, isPresent: boolean): void;
    /** The server's time. @param {number} now */
    at(now: number): number;
    /** When the server's clock shows that time, by this device's. @param {number} serverMs */
    when(serverMs: number): number;
}
