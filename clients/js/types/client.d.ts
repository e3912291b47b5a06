/** @import { Conversation } from "./conversation.js" */
/** @import { ConversationState } from "./core/conversation-state.js" */
/** @import { ClientOptions } from "./core/options.js" */
/** @import { ClientEvents } from "./events.js" */
/** @import { OutgoingMessage } from "./outgoing-message.js" */
/** @import { ConversationOrId, MessageOrId } from "./message-calls.js" */
/** @import { Forwarded, SearchPage, SendOptions, Session, State, StateChange, Storage, User } from "./types.js" */
/** @extends {Emitter<ClientEvents>} */
export class NexoClient extends Emitter<ClientEvents> {
    /** @param {ClientOptions} options */
    constructor(options: ClientOptions);
    _options: import("./core/options.js").Options;
    _clock: () => number;
    _ids: MessageIds;
    _http: Http;
    _locks: Locks;
    /** @type {Storage} */
    storage: Storage;
    _WebSocket: any;
    _sessions: Sessions;
    /** @type {Driver | null} */
    _driver: Driver | null;
    _views: ConversationViews;
    _outgoing: OutgoingMessages;
    /** @type {ConversationList | null} */
    _conversationList: ConversationList | null;
    _tokenRefresh: TokenRefresh;
    _instanceId: string;
    _isStarted: boolean;
    _unwatch: () => void;
    /** @type {InboxStream | null} */
    _inbox: InboxStream | null;
    users: Users;
    contacts: Contacts;
    groups: Groups;
    calls: Calls;
    devices: Devices;
    push: Push;
    account: Account;
    _repeated: RepeatedCalls;
    _messageCalls: MessageCalls;
    /** Conversations whose deletions are being loaded. @type {Set<ConversationState>} */
    _loadingDeleted: Set<ConversationState>;
    presence: Presence;
    /** @returns {Session | null} */
    get session(): Session | null;
    get userId(): string | null;
    /**
     * Does not sign in.
     * @param {{userId?: string, password: string, nickname?: string, avatar?: string, extra?: any, code?: string}} account
     * @returns {Promise<User>}
     */
    register(account: {
        userId?: string;
        password: string;
        nickname?: string;
        avatar?: string;
        extra?: any;
        code?: string;
    }): Promise<User>;
    /** @param {{userId: string, password: string}} credentials */
    login({ userId, password }: {
        userId: string;
        password: string;
    }): Promise<Session>;
    /**
     * Continues a saved session, or the one in the storage. With `expectUser`, a session of another user is not continued but
     * deleted from the storage.
     * @param {{session?: Session, expectUser?: string} | Session} [options]
     * @returns {Promise<boolean>} whether there was one
     */
    restore(options?: {
        session?: Session;
        expectUser?: string;
    } | Session): Promise<boolean>;
    /** All other sessions of the user end. @param {{oldPassword: string, newPassword: string}} change */
    changePassword({ oldPassword, newPassword }: {
        oldPassword: string;
        newPassword: string;
    }): Promise<void>;
    /** Ends the session on the server, and deletes everything stored of the user. */
    logout(): Promise<void>;
    _forgetAll(): Promise<void>;
    /** @returns {State} */
    get state(): State;
    /** `{state, reason, retryAt}`, as the event has it. @returns {StateChange} */
    get stateChange(): StateChange;
    /**
     * Connects, and stays connected. Resolves when everything that was missed is here for the first time. Without a session it
     * signs in by `getToken`, if there is one, or else continues the stored session.
     * @returns {Promise<void>}
     */
    connect(): Promise<void>;
    /**
     * Resolves when everything that was sent is saved. Rejects with the error of a message that failed, with the reason when the
     * client is closed, or with `timeout`.
     * @param {number} [timeoutMs]
     */
    flush(timeoutMs?: number): Promise<void>;
    /**
     * Disconnects. What the server has not saved stays in the outbox; `connect` continues with it.
     * @returns {Promise<OutgoingMessage[]>} what the server has not saved
     */
    close(): Promise<OutgoingMessage[]>;
    _whenOnline(): Promise<any>;
    /** The live list: pinned first, then the newest activity. @returns {Conversation[]} */
    get conversations(): Conversation[];
    get totalUnread(): number;
    /** The messages that were sent and are not saved yet, in order. @returns {OutgoingMessage[]} */
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
     * Sends copies of messages to other conversations, or with `merge` one message that holds them. Tried until the server has
     * answered. At most 100 messages and 20 targets, and 200 copies.
     * @param {readonly MessageOrId[]} messages
     * @param {readonly ConversationOrId[]} targets
     * @param {{merge?: boolean, title?: string, clientMsgId?: string}} [options]
     * @returns {Promise<Forwarded[]>} one for each target
     */
    forward(messages: readonly MessageOrId[], targets: readonly ConversationOrId[], options?: {
        merge?: boolean;
        title?: string;
        clientMsgId?: string;
    }): Promise<Forwarded[]>;
    /**
     * Searches all conversations or one, newest first.
     * @param {string} q
     * @param {{conversationId?: string, senderId?: string, msgType?: number, after?: number, before?: number, limit?: number, cursor?: string}} [options]
     * @returns {Promise<SearchPage>}
     */
    search(q: string, options?: {
        conversationId?: string;
        senderId?: string;
        msgType?: number;
        after?: number;
        before?: number;
        limit?: number;
        cursor?: string;
    }): Promise<SearchPage>;
    /** Puts a message before the moderators. @param {MessageOrId} message @param {string} reason @returns {Promise<string>} the id of the report */
    report(message: MessageOrId, reason: string): Promise<string>;
    /**
     * The events of these names from now on, for `for await`: until `close`, or until the server ends the session, which throws
     * the error with its reason.
     * @param {(keyof ClientEvents)[]} names
     */
    events(...names: (keyof ClientEvents)[]): import("./emitter.js").EventStream<any>;
    /**
     * The messages of other users for `for await`, to be called before `connect`. What is not handled when the process ends is
     * received again by the next one with the same storage. It ends as `events` do.
     */
    inbox(): InboxStream;
    get _hasInbox(): boolean;
    /**
     * Any call of the HTTP API, with its own names.
     * @param {string} method
     * @param {string} path
     * @param {Record<string, any>} [params]
     * @returns {Promise<any>}
     */
    call(method: string, path: string, params?: Record<string, any>): Promise<any>;
    /**
     * The address of a message's file, or of a smaller picture of it, which needs no token for an hour or two; null when there
     * is none.
     * @param {import("./types.js").Message} message
     * @param {"" | "small" | "medium"} [preview]
     */
    fileUrl(message: import("./types.js").Message, preview?: "" | "small" | "medium"): string | null;
    _callRaw(method: string, path: string, headers: Record<string, string>, body?: Blob): Promise<Headers>;
    /** @param {string} path */
    _download(path: string): Promise<any>;
    /**
     * @template R
     * @param {(authorization: {Authorization: string}) => Promise<R>} request
     * @returns {Promise<R>}
     */
    _signed<R>(request: (authorization: {
        Authorization: string;
    }) => Promise<R>): Promise<R>;
    /** @param {Session} session */
    _begin(session: Session): Promise<Session>;
    _leave(): Promise<void>;
    _forgetUser(): void;
    /** @returns {import("./driver.js").DriverHost} */
    _driverHost(): import("./driver.js").DriverHost;
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
    /** What the user has deleted on other devices, as far as this one does not know it. @param {ConversationState} state */
    _loadDeleted(state: ConversationState): Promise<void>;
    /**
     * @param {ConversationState} state
     * @param {any} content
     * @param {SendOptions} options
     * @param {{upload: import("./types.js").Upload, blob: Blob | null} | null} [file]
     */
    _enqueue(state: ConversationState, content: any, options: SendOptions, file?: {
        upload: import("./types.js").Upload;
        blob: Blob | null;
    } | null): OutgoingMessage;
    /** @param {OutgoingMessage} outgoing */
    _outgoingChanged(outgoing: OutgoingMessage): void;
    /** @param {string} conversationId */
    _pendingOf(conversationId: string): OutgoingMessage[];
    /** @param {string} conversationId */
    _typistsIn(conversationId: string): string[];
    /** @param {ConversationState} state @param {number} seq */
    _markRead(state: ConversationState, seq: number): void;
    /** @param {ConversationState} state */
    _touch(state: ConversationState): void;
    /** Only while signed in: it is not kept. @param {object} frame @returns {boolean} whether it was sent */
    _sendFrame(frame: object): boolean;
    _now(): number;
    /** @param {any[]} rows of the API */
    _applyRows(rows: any[]): void;
    _needDriver(): Driver;
}
import type { ClientEvents } from "./events.js";
import { Emitter } from "./emitter.js";
import { MessageIds } from "./core/ids.js";
import { Http } from "./http.js";
import { Locks } from "./locks.js";
import type { Storage } from "./types.js";
import { Sessions } from "./sessions.js";
import { Driver } from "./driver.js";
import { ConversationViews } from "./conversation-views.js";
import { OutgoingMessages } from "./outgoing-message.js";
import { ConversationList } from "./conversation-list.js";
import { TokenRefresh } from "./token-refresh.js";
import { InboxStream } from "./inbox-stream.js";
import { Users } from "./users.js";
import { Contacts } from "./contacts.js";
import { Groups } from "./groups.js";
import { Calls } from "./calls.js";
import { Devices } from "./devices.js";
import { Push } from "./devices.js";
import { Account } from "./account.js";
import { RepeatedCalls } from "./repeated-calls.js";
import { MessageCalls } from "./message-calls.js";
import type { ConversationState } from "./core/conversation-state.js";
import { Presence } from "./presence.js";
import type { Session } from "./types.js";
import type { User } from "./types.js";
import type { State } from "./types.js";
import type { StateChange } from "./types.js";
import type { OutgoingMessage } from "./outgoing-message.js";
import type { Conversation } from "./conversation.js";
import type { MessageOrId } from "./message-calls.js";
import type { ConversationOrId } from "./message-calls.js";
import type { Forwarded } from "./types.js";
import type { SearchPage } from "./types.js";
import type { SendOptions } from "./types.js";
import type { ClientOptions } from "./core/options.js";
