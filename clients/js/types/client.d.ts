/** @import { Chat } from "./core/chat.js" */
/** @import { ClientEvents, ClientOptions } from "./interface.js" */
/** @import { OutboxItem, PlacedMessage, SendOptions, Session, State, StateChange, Storage, User } from "./types.js" */
/** @extends {Emitter<ClientEvents>} */
export class NexoClient extends Emitter<ClientEvents> {
    /** @param {ClientOptions} options */
    constructor(options: ClientOptions);
    _options: import("./core/options.js").EngineOptions;
    _clock: () => number;
    _ids: MessageIds;
    _http: Http;
    _locks: Locks;
    /** @type {Storage} */
    storage: Storage;
    _WebSocket: any;
    _sessions: Sessions;
    /** @type {Shell | null} */
    _shell: Shell | null;
    /** @type {Map<string, Conversation>} */
    _views: Map<string, Conversation>;
    /** Not yet among the messages. @type {Map<string, OutgoingMessage>} */
    _outgoing: Map<string, OutgoingMessage>;
    /** @type {Set<Chat>} */
    _dirty: Set<Chat>;
    /** @type {Conversation[] | null} */
    _list: Conversation[] | null;
    /** @type {Listing | null} */
    _listing: Listing | null;
    _renewal: Renewal;
    _instanceId: string;
    _isStarted: boolean;
    _unwatch: () => void;
    users: Users;
    groups: Groups;
    presence: Presence;
    /** @returns {Session | null} */
    get session(): Session | null;
    get userId(): string | null;
    /**
     * Does not sign in.
     * @param {{userId?: string, password: string, nickname?: string, avatar?: string, extra?: any}} account
     * @returns {Promise<User>}
     */
    register(account: {
        userId?: string;
        password: string;
        nickname?: string;
        avatar?: string;
        extra?: any;
    }): Promise<User>;
    /** @param {{userId: string, password: string}} credentials */
    login({ userId, password }: {
        userId: string;
        password: string;
    }): Promise<Session>;
    /**
     * Go on with a session that was saved, or with the one in the storage.
     * @param {Session} [session]
     * @returns {Promise<boolean>} whether there was one
     */
    restore(session?: Session): Promise<boolean>;
    /** All other sessions of the user end. @param {{oldPassword: string, newPassword: string}} change */
    changePassword({ oldPassword, newPassword }: {
        oldPassword: string;
        newPassword: string;
    }): Promise<void>;
    /** End the session on the server, and forget what is stored of the user. */
    logout(): Promise<void>;
    /** @returns {State} */
    get state(): State;
    /** `{state, reason, retryAt}`, as the event has it. @returns {StateChange} */
    get stateChange(): StateChange;
    /**
     * Connect, and stay so. Resolves when everything that was missed is here for the first time.
     * @returns {Promise<void>}
     */
    connect(): Promise<void>;
    /** Disconnect. What is in the outbox stays there; `connect` goes on. */
    close(): Promise<void>;
    _whenOnline(): Promise<any>;
    /** The live list: pinned first, then the newest activity. @returns {Conversation[]} */
    get conversations(): Conversation[];
    get totalUnread(): number;
    /** Everything that was sent and is not saved yet, in order. @returns {OutgoingMessage[]} */
    get pending(): OutgoingMessage[];
    /** @param {string} conversationId */
    conversation(conversationId: string): Conversation;
    /** @param {string} userId */
    chatWith(userId: string): Conversation;
    /** @param {string} groupId */
    group(groupId: string): Conversation;
    /**
     * The next page of the list, with last messages and settings. The first one is loaded by `connect`.
     * @param {number} [limit]
     * @returns {Promise<boolean>} whether there are more
     */
    loadConversations(limit?: number): Promise<boolean>;
    /**
     * Any call of the HTTP API, with its own names.
     * @param {string} method
     * @param {string} path
     * @param {Record<string, any>} [params]
     * @returns {Promise<any>}
     */
    call(method: string, path: string, params?: Record<string, any>): Promise<any>;
    /** @param {Session} session */
    _begin(session: Session): Promise<Session>;
    _leave(): Promise<void>;
    _forgetUser(): void;
    /** @returns {import("./shell.js").ShellHost} */
    _shellHost(): import("./shell.js").ShellHost;
    /** @param {Session | null} session */
    _sessionChanged(session: Session | null): void;
    /** @param {boolean} isExpired */
    _prepareToken(isExpired: boolean): Promise<void>;
    /** @param {string} reason @param {boolean} forgetSession */
    _ended(reason: string, forgetSession: boolean): Promise<void>;
    /** @param {string} name @param {any} payload */
    _pass(name: string, payload: any): void;
    /** @param {unknown} error */
    _failed(error: unknown): void;
    /** Told once, at the end of this turn. @param {Chat} chat */
    _changed(chat: Chat): void;
    _tellChanges(): void;
    /** @param {Chat} chat */
    _view(chat: Chat): Conversation;
    /**
     * @param {Chat} chat
     * @param {any} content
     * @param {SendOptions} options
     */
    _enqueue(chat: Chat, content: any, { msgType, mentions, replyTo, extra, clientMsgId }: SendOptions): OutgoingMessage;
    /** @param {OutboxItem} item */
    _outgoingOf(item: OutboxItem): OutgoingMessage;
    /** @param {string} clientMsgId */
    _cancel(clientMsgId: string): boolean;
    /** @param {OutboxItem} item @param {boolean} isAccepted */
    _itemChanged(item: OutboxItem, isAccepted: boolean): void;
    /** @param {OutboxItem} item @param {PlacedMessage} message */
    _itemSaved(item: OutboxItem, message: PlacedMessage): void;
    /** @param {string} conversationId */
    _pendingOf(conversationId: string): OutgoingMessage[];
    /** @param {string} conversationId */
    _typistsIn(conversationId: string): string[];
    /** @param {Chat} chat @param {number} seq */
    _markRead(chat: Chat, seq: number): void;
    /** @param {Chat} chat */
    _touch(chat: Chat): void;
    /** Only while signed in: it is not kept. @param {object} frame */
    _sendFrame(frame: object): void;
    _now(): number;
    /** @param {any[]} rows of the API */
    _applyRows(rows: any[]): void;
    _needShell(): Shell;
}
import type { ClientEvents } from "./interface.js";
import { Emitter } from "./emitter.js";
import { MessageIds } from "./core/ids.js";
import { Http } from "./http.js";
import { Locks } from "./locks.js";
import type { Storage } from "./types.js";
import { Sessions } from "./sessions.js";
import { Shell } from "./shell.js";
import { Conversation } from "./conversation.js";
import { OutgoingMessage } from "./outgoing.js";
import type { Chat } from "./core/chat.js";
import { Listing } from "./listing.js";
import { Renewal } from "./renewal.js";
import { Users } from "./users.js";
import { Groups } from "./groups.js";
import { Presence } from "./presence.js";
import type { Session } from "./types.js";
import type { User } from "./types.js";
import type { State } from "./types.js";
import type { StateChange } from "./types.js";
import type { SendOptions } from "./types.js";
import type { OutboxItem } from "./types.js";
import type { PlacedMessage } from "./types.js";
import type { ClientOptions } from "./interface.js";
