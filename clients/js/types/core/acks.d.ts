/** @import { ConversationState } from "./conversation-state.js" */
/** @import { Timers } from "./timers.js" */
export class Acks {
    /**
     * @param {Timers} timers
     * @param {number} delayMs
     * @param {(frame: object) => void} send
     */
    constructor(timers: Timers, delayMs: number, send: (frame: object) => void);
    _timers: Timers;
    _delayMs: number;
    _send: (frame: object) => void;
    /** @type {Set<ConversationState>} */
    _waiting: Set<ConversationState>;
    /** Plans an acknowledgement if one is due. @param {number} now @param {ConversationState} conversation */
    note(now: number, conversation: ConversationState): void;
    flush(): void;
    /** The connection has gone: SYNC will show what the server knows. */
    clear(): void;
}
import type { Timers } from "./timers.js";
import type { ConversationState } from "./conversation-state.js";
