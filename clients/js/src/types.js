// The shapes that the SDK gives and takes. Names are those of the HTTP API in camelCase.

/**
 * @typedef {object} Quote
 * @property {string} serverMsgId
 * @property {string} senderId
 * @property {number} msgType
 * @property {string} text
 */

/**
 * A message or an event (`msgType` from 100 on). Never changed: what becomes of it is another object.
 * @typedef {object} Message
 * @property {string | null} serverMsgId null for a recall event that came as MESSAGE_REVOKED
 * @property {string | null} clientMsgId
 * @property {string} conversationId
 * @property {number | null} seq null while provisional
 * @property {string} senderId
 * @property {string | null} recvId
 * @property {string | null} groupId
 * @property {number} msgType
 * @property {any} content
 * @property {readonly string[]} mentions
 * @property {string | null} replyTo
 * @property {Quote | null} quote
 * @property {any} extra
 * @property {number} status 0, or 1 when recalled
 * @property {number | null} recalledAt
 * @property {number} sendAt
 * @property {boolean} important it mentions you
 * @property {boolean} silent
 * @property {boolean} provisional
 */

/**
 * @typedef {Message & {seq: number}} PlacedMessage
 */

/**
 * @typedef {object} Session
 * @property {string} userId
 * @property {string} accessToken
 * @property {string} refreshToken
 * @property {number} expiresAt by the server's clock
 * @property {number} refreshAt by this device's clock
 * @property {number} platformId
 * @property {string} deviceId
 */

/** @typedef {"offline" | "connecting" | "syncing" | "online" | "closed"} State */

/**
 * @typedef {object} StateChange
 * @property {State} state
 * @property {string | null} reason
 * @property {number | null} retryAt
 */

/** @typedef {"sending" | "accepted" | "saved" | "delivered" | "read" | "failed"} SendState */

/**
 * @typedef {object} Failure
 * @property {string} reason
 * @property {string} detail
 */

/**
 * One entry of SYNC, as it comes.
 * @typedef {object} SyncEntry
 * @property {string} conversationId
 * @property {number} headSeq
 * @property {number} minSeq
 * @property {number} readSeq
 * @property {number} deliveredSeq
 * @property {number} unread
 */

/**
 * One row of the conversation list.
 * @typedef {object} ListRow
 * @property {string} conversationId
 * @property {Message | null} lastMessage
 * @property {number} headSeq
 * @property {number} minSeq
 * @property {number} readSeq
 * @property {number} deliveredSeq
 * @property {number} unread
 * @property {number} unreadMentions
 * @property {boolean} pinned
 * @property {number} recvMsgOpt
 * @property {number} updatedAt
 * @property {number} [peerReadSeq]
 * @property {number} [peerDeliveredSeq]
 */

/**
 * A page of messages, as PULL_OK and the HTTP API give it.
 * @typedef {object} Page
 * @property {PlacedMessage[]} messages
 * @property {number} headSeq
 * @property {number} nextSeq
 * @property {boolean} hasMore
 */

/**
 * @typedef {object} SendOptions
 * @property {number} [msgType]
 * @property {readonly string[]} [mentions]
 * @property {string | null} [replyTo]
 * @property {any} [extra]
 * @property {string} [clientMsgId] your own: the same one is stored once, whoever sends it again, and when
 */

/**
 * A message on its way, as it is stored.
 * @typedef {object} OutboxItem
 * @property {string} clientMsgId
 * @property {string} order sorts by when it was made
 * @property {string} conversationId
 * @property {string | null} recvId
 * @property {string | null} groupId
 * @property {number} msgType
 * @property {any} content
 * @property {readonly string[]} mentions
 * @property {string | null} replyTo
 * @property {any} extra
 * @property {number} createdAt
 * @property {boolean} wasSent it may have reached the server
 * @property {Failure | null} error
 * @property {string} [owner] the client that sends it
 */

/**
 * @typedef {object} Receipts
 * @property {string[]} read
 * @property {string[]} delivered
 * @property {string[]} pending
 * @property {number} readCount
 * @property {number} deliveredCount
 */

/**
 * @typedef {object} OnlineUser
 * @property {string} userId
 * @property {boolean} online
 * @property {number[]} platforms
 */

/**
 * @typedef {object} User
 * @property {string} userId
 * @property {string} nickname
 * @property {string} avatar
 * @property {any} extra
 * @property {number} createdAt
 */

/**
 * @typedef {object} Group
 * @property {string} groupId
 * @property {string} conversationId
 * @property {string} name
 * @property {string} avatar
 * @property {string} introduction
 * @property {string} announcement
 * @property {string} creatorId
 * @property {string} ownerId
 * @property {number} memberCount
 * @property {number} status
 * @property {string} joinPolicy
 * @property {number} muteUntil
 * @property {any} extra
 * @property {number} createdAt
 */

/**
 * @typedef {object} Member
 * @property {string} userId
 * @property {"owner" | "admin" | "member"} role
 * @property {string} nickname
 * @property {number} joinedAt
 * @property {number} mutedUntil
 */

/**
 * Where the session, the outbox and the baselines are kept. Values are plain JSON values.
 * Changes of one key take effect in the order in which they were asked for.
 * @typedef {object} Storage
 * @property {(key: string) => Promise<any>} get undefined when there is none
 * @property {(key: string, value: any) => Promise<void>} set
 * @property {(key: string) => Promise<void>} delete
 * @property {(prefix: string) => Promise<[string, any][]>} entries by key
 * @property {() => Promise<void>} [close] called when the client is closed; it may be used again after that
 */

export {};
