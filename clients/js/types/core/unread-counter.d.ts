/** @typedef {(low: number, high: number) => number | null} Count how many lie in (low, high]; null: not known here */
export class UnreadCounter {
    value: number;
    /** What is counted lies above the read cursor and not above this. */
    at: number;
    /** The value is a guess until the server is asked. */
    isStale: boolean;
    /**
     * The server's count of what lies in (readSeq, headSeq], as of some moment.
     * @param {number} value
     * @param {number} readSeq
     * @param {number} headSeq
     * @param {number} cursor this device's read cursor, at least readSeq
     * @param {Count} count
     */
    set(value: number, readSeq: number, headSeq: number, cursor: number, count: Count): void;
    /** One more, if it was not counted by the server already. @param {number} seq @param {boolean} counts */
    given(seq: number, counts: boolean): void;
    /**
     * The read cursor has moved.
     * @param {number} from
     * @param {number} to
     * @param {Count} count
     */
    read(from: number, to: number, count: Count): void;
}
/**
 * how many lie in (low, high]; null: not known here
 */
export type Count = (low: number, high: number) => number | null;
