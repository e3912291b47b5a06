export type ClientOptions = {
    /**
     * the HTTP address of the server
     */
    url: string;
    storage?: Storage | undefined;
    deviceId?: string | undefined;
    platformId?: number | undefined;
    /**
     * the class to use; `ws` in Node before 22
     */
    WebSocket?: any;
    fetch?: typeof fetch | undefined;
    gapWaitMs?: number | undefined;
    ackDelayMs?: number | undefined;
    ackTimeoutMs?: number | undefined;
    heartbeatMs?: number | undefined;
    connectTimeoutMs?: number | undefined;
    backoffMinMs?: number | undefined;
    backoffMaxMs?: number | undefined;
    provisionalMs?: number | undefined;
    windowSize?: number | undefined;
    maxConversations?: number | undefined;
    maxInFlight?: number | undefined;
    maxPending?: number | undefined;
};
export type ClientEvents = {
    state: StateChange;
    session: Session | null;
    message: {
        message: PlacedMessage;
        conversation: Conversation;
    };
    sent: {
        message: PlacedMessage;
        conversation: Conversation;
    };
    groupEvent: {
        message: PlacedMessage;
        conversation: Conversation;
    };
    provisional: {
        message: Message;
        conversation: Conversation;
    };
    withdrawn: {
        serverMsgId: string;
        reason: string;
        conversation: Conversation;
    };
    recalled: {
        serverMsgId: string;
        seq: number;
        by: string;
        conversation: Conversation;
    };
    outgoing: OutgoingMessage;
    receipt: {
        type: "delivered" | "read";
        userId: string;
        seq: number;
        serverMsgId: string;
        conversation: Conversation;
    };
    typing: {
        userId: string;
        on: boolean;
        conversation: Conversation;
    };
    presence: {
        users: OnlineUser[];
    };
    conversations: Conversation[];
    kicked: {
        reason: string;
    };
    error: NexoError;
};
import type { Storage } from "./types.js";
import type { StateChange } from "./types.js";
import type { Session } from "./types.js";
import type { PlacedMessage } from "./types.js";
import type { Conversation } from "./conversation.js";
import type { Message } from "./types.js";
import type { OutgoingMessage } from "./outgoing.js";
import type { OnlineUser } from "./types.js";
import type { NexoError } from "./errors.js";
