export class Timeline {
    /** Everything up to here has been given; null until the conversation's place is known. @type {number | null} */
    syncedSeq: number | null;
    /** The newest seq heard of. */
    headSeq: number;
    /** Above a gap. @type {Map<number, PlacedMessage>} */
    _ahead: Map<number, PlacedMessage>;
    /** @type {Map<string, {message: Message, until: number}>} */
    _provisional: Map<string, {
        message: Message;
        until: number;
    }>;
    get isBehind(): boolean;
    get isPlaced(): boolean;
    /** @returns {Message[]} */
    get provisional(): Message[];
    /** @param {string} serverMsgId */
    findAhead(serverMsgId: string): PlacedMessage | undefined;
    /**
     * Sets the contiguous point. A message that arrived before the conversation was known is still given.
     * @param {number} seq
     * @returns {PlacedMessage[]} what can be given now
     */
    place(seq: number): PlacedMessage[];
    /** Forget where it stood: the server's history is shorter than what was given. @param {number} seq */
    restart(seq: number): void;
    /** @param {number} seq */
    learnHead(seq: number): void;
    /**
     * @param {PlacedMessage} message
     * @returns {PlacedMessage[]} what can be given now, in order
     */
    accept(message: PlacedMessage): PlacedMessage[];
    /**
     * Everything below `seq` is here or does not exist for this user.
     * @param {number} seq
     * @returns {PlacedMessage[]}
     */
    stepTo(seq: number): PlacedMessage[];
    /**
     * The end of a pull: there is nothing above, unless it arrived since.
     * @param {number} headSeq
     */
    settleHead(headSeq: number): void;
    _drain(): PlacedMessage[];
    /** @param {Message} message @param {number} until */
    holdProvisional(message: Message, until: number): void;
    /** @param {string | null} serverMsgId */
    dropProvisional(serverMsgId: string | null): boolean;
    /** @param {number} now @returns {boolean} whether any were dropped */
    expireProvisional(now: number): boolean;
}
import type { PlacedMessage } from "../types.js";
import type { Message } from "../types.js";
