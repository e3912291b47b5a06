export type Outputs = {
    /**
     * opens a socket
     */
    open: () => void;
    /**
     * closes it
     */
    drop: (code: number) => void;
    needToken: (isExpired: boolean) => void;
    credentials: () => {
        token: string;
        deviceId: string;
    };
    send: (frame: object) => void;
    /**
     * an event; its `conversation` is a ConversationState
     */
    emit: (name: string, payload: any) => void;
    changed: (conversation: ConversationState) => void;
    /**
     * its state or error changed, and it has to be stored
     */
    itemChanged: (item: OutboxItem) => void;
    itemSaved: (item: OutboxItem, message: PlacedMessage) => void;
    /**
     * its message is among those of the conversation
     */
    itemGiven: (clientMsgId: string) => void;
    storeBaselines: (baselines: Map<string, number>) => void;
    /**
     * the connection is closed for good
     */
    ended: (reason: string, forgetSession: boolean) => void;
    /**
     * loads the first page of the conversation list
     */
    loadList: () => void;
    /**
     * loads what the user has deleted on other devices
     */
    loadDeleted: (conversation: ConversationState) => void;
};
import type { ConversationState } from "./conversation-state.js";
import type { OutboxItem } from "../types.js";
import type { PlacedMessage } from "../types.js";
