export class Engine {
    /**
     * @param {string} userId
     * @param {Outputs} outputs
     * @param {Options} options
     * @param {() => number} clock
     */
    constructor(userId: string, outputs: Outputs, options: Options, clock: () => number);
    userId: string;
    _outputs: Outputs;
    _clock: () => number;
    _isOnline: boolean;
    /** @type {string[]} */
    _watchedUsers: string[];
    outbox: Outbox;
    /** @type {Inbox} */
    inbox: Inbox;
    /** @type {Connection} */
    connection: Connection;
    /** @type {import("../types.js").StateChange} */
    _emitted: import("../types.js").StateChange;
    get conversations(): Map<string, ConversationState>;
    /** @param {string} conversationId */
    conversation(conversationId: string): ConversationState;
    /** @returns {State} */
    get state(): State;
    get stateChange(): {
        state: State;
        reason: string | null;
        retryAt: number | null;
    };
    start(): void;
    /** Sends the acknowledgements that are waiting, and disconnects. */
    stop(): void;
    _connectionChanged(): void;
    _caughtUp(): void;
    _emitState(): void;
    _disconnected(): void;
    _authFrame(): {
        baselines?: Record<string, number> | undefined;
        type: string;
        token: string;
        deviceId: string;
    };
    /** When `tick` has to be called. */
    get deadline(): number;
    tick(): void;
    /** Sends what the outbox holds, as far as it may go out now. */
    pump(): void;
    /** @param {ConversationState} conversation @param {number} seq */
    markRead(conversation: ConversationState, seq: number): void;
    /** Replaces the subscription; it is repeated after a reconnect. @param {string[]} userIds */
    watchPresence(userIds: string[]): void;
    /** @param {any} frame */
    receive(frame: any): void;
    /** @param {string} name @param {any} frame @param {object} ids */
    _emitRequest(name: string, frame: any, ids: object): void;
    /** @param {number} now @param {any} frame */
    _receiveAuthOk(now: number, frame: any): void;
    /** @param {number} now @param {any} frame */
    _receiveAck(now: number, frame: any): void;
    /** @param {number} now @param {any} frame */
    _receiveSaved(now: number, frame: any): void;
    /** @param {string} clientMsgId */
    _itemChanged(clientMsgId: string): void;
    /** @param {number} now @param {any} frame */
    _receiveError(now: number, frame: any): void;
}
import type { Outputs } from "./outputs.js";
import { Outbox } from "./outbox.js";
import { Inbox } from "./inbox.js";
import { Connection } from "./connection.js";
import type { ConversationState } from "./conversation-state.js";
import type { State } from "../types.js";
import type { Options } from "./options.js";
