export type Quote = {
    serverMsgId: string;
    senderId: string;
    msgType: number;
    text: string;
};
export type Reaction = {
    emoji: string;
    count: number;
    mine: boolean;
};
export type ForwardedFrom = {
    senderId: string;
    sendAt: number;
};
/**
 * A message or an event (`msgType` from 100 on). Never modified: a change makes a new object.
 */
export type Message = {
    /**
     * null for a recall event that was received as MESSAGE_REVOKED
     */
    serverMsgId: string | null;
    clientMsgId: string | null;
    conversationId: string;
    /**
     * null while provisional
     */
    seq: number | null;
    senderId: string;
    recvId: string | null;
    groupId: string | null;
    msgType: number;
    content: any;
    mentions: readonly string[];
    replyTo: string | null;
    quote: Quote | null;
    extra: any;
    /**
     * 0, 1 when recalled, 2 when expired
     */
    status: number;
    recalledAt: number | null;
    editedAt: number | null;
    reactions: readonly Reaction[];
    forwardedFrom: ForwardedFrom | null;
    expiresAt: number | null;
    sendAt: number;
    /**
     * it mentions you
     */
    important: boolean;
    silent: boolean;
    provisional: boolean;
};
export type PlacedMessage = Message & {
    seq: number;
};
export type Session = {
    userId: string;
    accessToken: string;
    refreshToken: string;
    /**
     * by the server's clock
     */
    expiresAt: number;
    /**
     * by this device's clock
     */
    refreshAt: number;
    platformId: number;
    deviceId: string;
};
export type HistoryPage = {
    messages: Message[];
    headSeq: number;
    nextSeq: number;
    hasMore: boolean;
};
/**
 * The answer to a send of a backend. `content` is what was stored when the word filter changed it.
 */
export type SentMessage = {
    serverMsgId: string;
    clientMsgId: string | null;
    conversationId: string;
    /**
     * `accepted`: it has no place yet
     */
    status: "saved" | "accepted";
    seq: number | null;
    sendAt: number | null;
    content: any;
};
/**
 * A user to be created or changed.
 */
export type PutUser = {
    userId: string;
    nickname?: string | undefined;
    avatar?: string | undefined;
    extra?: any;
};
export type BackendUser = User & {
    disabled: boolean;
    disabledReason: string;
};
export type IssuedToken = {
    userId: string;
    accessToken: string;
    expiresAt: number;
    /**
     * empty unless it was asked for
     */
    refreshToken: string;
    platformId: number;
    deviceId: string;
};
/**
 * `data` has the names of the HTTP API.
 */
export type BackendEvent = {
    eventId: string;
    type: string;
    at: number;
    conversationId: string | null;
    userId: string | null;
    data: any;
    /**
     * the place to continue from once this event was handled
     */
    cursor: string | null;
};
export type State = "offline" | "connecting" | "syncing" | "online" | "closed";
export type StateChange = {
    state: State;
    reason: string | null;
    retryAt: number | null;
};
export type SendState = "uploading" | "sending" | "accepted" | "saved" | "delivered" | "read" | "failed";
export type Failure = {
    reason: string;
    detail: string;
};
/**
 * One entry of SYNC.
 */
export type SyncEntry = {
    conversationId: string;
    headSeq: number;
    minSeq: number;
    readSeq: number;
    deliveredSeq: number;
    unread: number;
    /**
     * from 0.2 on; then settings that are left out have their default values
     */
    deletedRev?: number | undefined;
    pinned?: boolean | undefined;
    recvMsgOpt?: number | undefined;
    hidden?: boolean | undefined;
    archived?: boolean | undefined;
    silentUntil?: number | undefined;
    markedUnread?: boolean | undefined;
    messageTtlS?: number | undefined;
    draft?: any;
    extra?: any;
};
/**
 * What a user has set for a conversation.
 */
export type ConversationSettings = {
    pinned: boolean;
    recvMsgOpt: number;
    archived: boolean;
    silentUntil: number;
    markedUnread: boolean;
    /**
     * for all members
     */
    messageTtlS: number;
    draft: Draft | null;
    extra: any;
};
/**
 * A text that the user has begun to write.
 */
export type Draft = {
    text: string;
    replyTo?: string | null | undefined;
};
/**
 * One row of the conversation list.
 */
export type ListRow = {
    conversationId: string;
    lastMessage: Message | null;
    headSeq: number;
    minSeq: number;
    readSeq: number;
    deliveredSeq: number;
    unread: number;
    unreadMentions: number;
    pinned: boolean;
    recvMsgOpt: number;
    updatedAt: number;
    peerReadSeq?: number | undefined;
    peerDeliveredSeq?: number | undefined;
    deletedRev?: number | undefined;
    archived?: boolean | undefined;
    silentUntil?: number | undefined;
    markedUnread?: boolean | undefined;
    messageTtlS?: number | undefined;
    draft?: any;
    extra?: any;
};
/**
 * A page of messages, as PULL_OK and the HTTP API give it.
 */
export type Page = {
    messages: PlacedMessage[];
    headSeq: number;
    nextSeq: number;
    hasMore: boolean;
};
export type SendOptions = {
    msgType?: number | undefined;
    mentions?: readonly string[] | undefined;
    replyTo?: string | null | undefined;
    extra?: any;
    /**
     * its content is shown for so many seconds
     */
    expiresS?: number | undefined;
    /**
     * messages with the same id of one user are stored once
     */
    clientMsgId?: string | undefined;
};
/**
 * A message on its way, as it is stored.
 */
export type OutboxItem = {
    clientMsgId: string;
    /**
     * sorts by when it was made
     */
    order: string;
    conversationId: string;
    recvId: string | null;
    groupId: string | null;
    msgType: number;
    content: any;
    mentions: readonly string[];
    replyTo: string | null;
    extra: any;
    expiresS?: number | undefined;
    createdAt: number;
    /**
     * it may have reached the server
     */
    wasSent: boolean;
    error: Failure | null;
    /**
     * the client that sends it
     */
    owner?: string | undefined;
    /**
     * of its file, until that is complete
     */
    upload?: Upload | undefined;
    /**
     * of its file, in this process
     */
    uploadedBytes?: number | undefined;
};
/**
 * A file that is being uploaded, as the outbox keeps it.
 */
export type Upload = {
    name: string;
    /**
     * null before the file of a path was opened
     */
    size: number | null;
    /**
     * empty: its bytes are in the storage
     */
    path: string;
    /**
     * of the file of a path
     */
    modifiedMs: number;
    /**
     * where it continues; empty before it has begun
     */
    address: string;
};
export type FileOptions = {
    name?: string | undefined;
    caption?: string | undefined;
    /**
     * of an upload of this file that has begun already
     */
    address?: string | undefined;
    /**
     * bytes that the server has, and bytes of the file
     */
    onProgress?: ((uploaded: number, size: number) => void) | undefined;
    msgType?: number | undefined;
    mentions?: readonly string[] | undefined;
    replyTo?: string | null | undefined;
    extra?: any;
    expiresS?: number | undefined;
    clientMsgId?: string | undefined;
};
export type Receipts = {
    read: string[];
    delivered: string[];
    pending: string[];
    readCount: number;
    deliveredCount: number;
};
export type OnlineUser = {
    userId: string;
    online: boolean;
    platforms: number[];
    /**
     * where you may see it, and only from `users.online`
     */
    lastSeenAt?: number | undefined;
};
/**
 * Who sees when you were there last, and whether you are connected.
 */
export type Privacy = {
    lastSeen: "everybody" | "contacts" | "nobody";
};
export type User = {
    userId: string;
    nickname: string;
    avatar: string;
    extra: any;
    createdAt: number;
    /**
     * where you may see it
     */
    lastSeenAt?: number | undefined;
    /**
     * of yourself
     */
    privacy?: Privacy | undefined;
    /**
     * the account was closed
     */
    deleted?: boolean | undefined;
};
export type Group = {
    groupId: string;
    conversationId: string;
    name: string;
    avatar: string;
    introduction: string;
    announcement: string;
    creatorId: string;
    ownerId: string;
    groupType: number;
    memberCount: number;
    status: number;
    joinPolicy: string;
    muteUntil: number;
    extra: any;
    createdAt: number;
};
export type Member = {
    userId: string;
    role: "owner" | "admin" | "member";
    nickname: string;
    joinedAt: number;
    mutedUntil: number;
    groupNickname: string;
    groupAvatar: string;
    inviterId: string;
    extra: any;
};
/**
 * An invite link of a group; null: without an end.
 */
export type GroupLink = {
    code: string;
    groupId: string;
    creatorId: string;
    createdAt: number;
    expiresAt: number | null;
    uses: number | null;
    used: number;
};
/**
 * The group that an invite link leads to.
 */
export type LinkedGroup = {
    groupId: string;
    name: string;
    avatar: string;
    memberCount: number;
    isMember: boolean;
};
export type Contact = {
    userId: string;
    nickname: string;
    avatar: string;
    /**
     * your own name for the contact
     */
    remark: string;
    createdAt: number;
};
/**
 * `userId` is the other user.
 */
export type ContactRequest = {
    requestId: string;
    userId: string;
    message: string;
    createdAt: number;
};
export type ContactStatus = {
    status: "pending" | "accepted" | "refused";
    requestId: string;
};
/**
 * One of the user's sessions.
 */
export type Device = {
    sessionId: string;
    deviceId: string;
    platformId: number;
    address: string;
    createdAt: number;
    lastSeenAt: number;
    /**
     * the session of this client
     */
    current: boolean;
};
export type AccountExport = {
    exportId: string;
    status: "running" | "done" | "too_large";
    messages: number;
    size: number;
    createdAt: number;
    expiresAt: number;
};
/**
 * `seq` is that of the event.
 */
export type EditResult = {
    serverMsgId: string;
    conversationId: string;
    seq: number;
    editedAt: number | null;
    /**
     * what was stored, when the word filter changed it
     */
    content: any;
};
export type GivenReaction = {
    emoji: string;
    userId: string;
    at: number;
};
export type ReactionsPage = {
    reactions: GivenReaction[];
    nextCursor: string;
    hasMore: boolean;
};
/**
 * Newest first. `nextSeq` is the `beforeSeq` of the next page.
 */
export type MediaPage = {
    messages: PlacedMessage[];
    nextSeq: number;
    hasMore: boolean;
};
/**
 * `ranges` are the places in `snippet` that match: pairs of numbers of characters, the second excluded.
 */
export type SearchResult = {
    message: PlacedMessage;
    snippet: string;
    ranges: [number, number][];
};
export type SearchPage = {
    results: SearchResult[];
    nextCursor: string;
    hasMore: boolean;
};
/**
 * What became of a forward to one target.
 */
export type Forwarded = {
    conversationId: string;
    serverMsgIds: string[];
    /**
     * the name of an error
     */
    error: string | null;
};
/**
 * Where the session, the outbox and the baselines are kept. Values are plain JSON values.
 * Changes of one key take effect in the order in which they were asked for.
 */
export type Storage = {
    /**
     * undefined when there is none
     */
    get: (key: string) => Promise<any>;
    set: (key: string, value: any) => Promise<void>;
    delete: (key: string) => Promise<void>;
    /**
     * by key
     */
    entries: (prefix: string) => Promise<[string, any][]>;
    /**
     * it can also keep objects with a `Blob` in them
     */
    keepsBlobs?: boolean | undefined;
    /**
     * called when the client is closed; it may be used again after that
     */
    close?: (() => Promise<void>) | undefined;
};
/**
 * A call in `calls.list`.
 */
export type CallRecord = {
    callId: string;
    conversationId: string;
    callerId: string;
    calleeId: string;
    kind: "audio" | "video";
    state: "ringing" | "active" | "ended";
    outcome: "completed" | "missed" | "rejected" | "canceled" | "failed" | null;
    createdAt: number;
    answeredAt: number | null;
    endedAt: number | null;
    durationMs: number;
    /**
     * of the message about it
     */
    serverMsgId: string | null;
};
export type IceServer = {
    urls: string[];
    username?: string | undefined;
    credential?: string | undefined;
};
