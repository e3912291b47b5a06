/** @import { NexoClient } from "./client.js" */
/** @import { ConversationState } from "./core/conversation-state.js" */
export class ConversationViews {
    /** @param {NexoClient} client @param {() => Iterable<ConversationState>} states */
    constructor(client: NexoClient, states: () => Iterable<ConversationState>);
    _client: NexoClient;
    _states: () => Iterable<ConversationState>;
    /** @type {Map<string, Conversation>} */
    _views: Map<string, Conversation>;
    /** @type {Set<ConversationState>} */
    _dirty: Set<ConversationState>;
    /** @type {Conversation[] | null} */
    _list: Conversation[] | null;
    /** Pinned first, then the newest activity. */
    get list(): Conversation[];
    /** @param {ConversationState} state */
    of(state: ConversationState): Conversation;
    /** Emits the changes once, at the end of the microtask. @param {ConversationState} state */
    changed(state: ConversationState): void;
    _emitChanges(): void;
    clear(): void;
}
import type { NexoClient } from "./client.js";
import type { ConversationState } from "./core/conversation-state.js";
import { Conversation } from "./conversation.js";
