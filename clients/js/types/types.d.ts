export type Quote = {
    serverMsgId: string;
    senderId: string;
    msgType: number;
    text: string;
};
/**
 * A message or an event (`msgType` from 100 on). Never changed: what becomes of it is another object.
 */
export type Message = {
    /**
     * null for a recall event that came as MESSAGE_REVOKED
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
     * 0, or 1 when recalled
     */
    status: number;
    recalledAt: number | null;
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
export type State = "offline" | "connecting" | "syncing" | "online" | "closed";
export type StateChange = {
    state: State;
    reason: string | null;
    retryAt: number | null;
};
export type SendState = "sending" | "accepted" | "saved" | "delivered" | "read" | "failed";
export type Failure = {
    reason: string;
    detail: string;
};
/**
 * One entry of SYNC, as it comes.
 */
export type SyncEntry = {
    conversationId: string;
    headSeq: number;
    minSeq: number;
    readSeq: number;
    deliveredSeq: number;
    unread: number;
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
     * your own: the same one is stored once, whoever sends it again, and when
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
};
export type User = {
    userId: string;
    nickname: string;
    avatar: string;
    extra: any;
    createdAt: number;
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
     * called when the client is closed; it may be used again after that
     */
    close?: (() => Promise<void>) | undefined;
};
