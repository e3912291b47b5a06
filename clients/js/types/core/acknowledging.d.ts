/** @import { Chat } from "./chat.js" */
/** @import { Timers } from "./timers.js" */
export class Acknowledging {
    /**
     * @param {Timers} timers
     * @param {number} delayMs
     * @param {(frame: object) => void} send
     */
    constructor(timers: Timers, delayMs: number, send: (frame: object) => void);
    _timers: Timers;
    _delayMs: number;
    _send: (frame: object) => void;
    /** @type {Set<Chat>} */
    _waiting: Set<Chat>;
    /** See whether there is something to tell of it. @param {number} now @param {Chat} chat */
    note(now: number, chat: Chat): void;
    flush(): void;
    /** The connection has gone: SYNC will show what the server knows. */
    clear(): void;
}
import type { Timers } from "./timers.js";
import type { Chat } from "./chat.js";
