// The types that the SDK returns and takes. Field names are those of the HTTP API in camelCase.

/**
 * @typedef {object} Quote
 * @property {string} serverMsgId
 * @property {string} senderId
 * @property {number} msgType
 * @property {string} text
 */

/**
 * @typedef {object} Reaction
 * @property {string} emoji
 * @property {number} count
 * @property {boolean} mine
 */

/**
 * @typedef {object} ForwardedFrom
 * @property {string} senderId
 * @property {number} sendAt
 */

/**
 * A message or an event (`msgType` from 100 on). Never modified: a change makes a new object.
 * @typedef {object} Message
 * @property {string | null} serverMsgId null for a recall event that was received as MESSAGE_REVOKED
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
 * @property {number} status 0, 1 when recalled, 2 when expired
 * @property {number | null} recalledAt
 * @property {number | null} editedAt
 * @property {readonly Reaction[]} reactions
 * @property {ForwardedFrom | null} forwardedFrom
 * @property {number | null} expiresAt
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

/**
 * @typedef {object} HistoryPage
 * @property {Message[]} messages
 * @property {number} headSeq
 * @property {number} nextSeq
 * @property {boolean} hasMore
 */

/**
 * The answer to a send of a backend. `content` is what was stored when the word filter changed it.
 * @typedef {object} SentMessage
 * @property {string} serverMsgId
 * @property {string | null} clientMsgId
 * @property {string} conversationId
 * @property {"saved" | "accepted"} status `accepted`: it has no place yet
 * @property {number | null} seq
 * @property {number | null} sendAt
 * @property {any} content
 */

/**
 * A user to be created or changed.
 * @typedef {object} PutUser
 * @property {string} userId
 * @property {string} [nickname]
 * @property {string} [avatar]
 * @property {any} [extra]
 */

/**
 * @typedef {User & {disabled: boolean, disabledReason: string}} BackendUser
 */

/**
 * @typedef {object} IssuedToken
 * @property {string} userId
 * @property {string} accessToken
 * @property {number} expiresAt
 * @property {string} refreshToken empty unless it was asked for
 * @property {number} platformId
 * @property {string} deviceId
 */

/**
 * `data` has the names of the HTTP API.
 * @typedef {object} BackendEvent
 * @property {string} eventId
 * @property {string} type
 * @property {number} at
 * @property {string | null} conversationId
 * @property {string | null} userId
 * @property {any} data
 * @property {string | null} cursor the place to continue from once this event was handled
 */

/** @typedef {"offline" | "connecting" | "syncing" | "online" | "closed"} State */

/**
 * @typedef {object} StateChange
 * @property {State} state
 * @property {string | null} reason
 * @property {number | null} retryAt
 */

/** @typedef {"uploading" | "sending" | "accepted" | "saved" | "delivered" | "read" | "failed"} SendState */

/**
 * @typedef {object} Failure
 * @property {string} reason
 * @property {string} detail
 */

/**
 * One entry of SYNC.
 * @typedef {object} SyncEntry
 * @property {string} conversationId
 * @property {number} headSeq
 * @property {number} minSeq
 * @property {number} readSeq
 * @property {number} deliveredSeq
 * @property {number} unread
 * @property {number} [deletedRev] from 0.2 on; then settings that are left out have their default values
 * @property {boolean} [pinned]
 * @property {number} [recvMsgOpt]
 * @property {boolean} [hidden]
 * @property {boolean} [archived]
 * @property {number} [silentUntil]
 * @property {boolean} [markedUnread]
 * @property {number} [messageTtlS]
 * @property {any} [draft]
 * @property {any} [extra]
 */

/**
 * What a user has set for a conversation.
 * @typedef {object} ConversationSettings
 * @property {boolean} pinned
 * @property {number} recvMsgOpt
 * @property {boolean} archived
 * @property {number} silentUntil
 * @property {boolean} markedUnread
 * @property {number} messageTtlS for all members
 * @property {Draft | null} draft
 * @property {any} extra
 */

/**
 * A text that the user has begun to write.
 * @typedef {object} Draft
 * @property {string} text
 * @property {string | null} [replyTo]
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
 * @property {number} [deletedRev]
 * @property {boolean} [archived]
 * @property {number} [silentUntil]
 * @property {boolean} [markedUnread]
 * @property {number} [messageTtlS]
 * @property {any} [draft]
 * @property {any} [extra]
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
 * @property {number} [expiresS] its content is shown for so many seconds
 * @property {string} [clientMsgId] messages with the same id of one user are stored once
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
 * @property {number} [expiresS]
 * @property {number} createdAt
 * @property {boolean} wasSent it may have reached the server
 * @property {Failure | null} error
 * @property {string} [owner] the client that sends it
 * @property {Upload} [upload] of its file, until that is complete
 * @property {number} [uploadedBytes] of its file, in this process
 */

/**
 * A file that is being uploaded, as the outbox keeps it.
 * @typedef {object} Upload
 * @property {string} name
 * @property {number | null} size null before the file of a path was opened
 * @property {string} path empty: its bytes are in the storage
 * @property {number} modifiedMs of the file of a path
 * @property {string} address where it continues; empty before it has begun
 */

/**
 * @typedef {object} FileOptions
 * @property {string} [name]
 * @property {string} [caption]
 * @property {string} [address] of an upload of this file that has begun already
 * @property {(uploaded: number, size: number) => void} [onProgress] bytes that the server has, and bytes of the file
 * @property {number} [msgType]
 * @property {readonly string[]} [mentions]
 * @property {string | null} [replyTo]
 * @property {any} [extra]
 * @property {number} [expiresS]
 * @property {string} [clientMsgId]
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
 * @property {number} [lastSeenAt] where you may see it, and only from `users.online`
 */

/**
 * Who sees when you were there last, and whether you are connected.
 * @typedef {object} Privacy
 * @property {"everybody" | "contacts" | "nobody"} lastSeen
 */

/**
 * @typedef {object} User
 * @property {string} userId
 * @property {string} nickname
 * @property {string} avatar
 * @property {any} extra
 * @property {number} createdAt
 * @property {number} [lastSeenAt] where you may see it
 * @property {Privacy} [privacy] of yourself
 * @property {boolean} [deleted] the account was closed
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
 * @property {number} groupType
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
 * @property {string} groupNickname
 * @property {string} groupAvatar
 * @property {string} inviterId
 * @property {any} extra
 */

/**
 * An invite link of a group; null: without an end.
 * @typedef {object} GroupLink
 * @property {string} code
 * @property {string} groupId
 * @property {string} creatorId
 * @property {number} createdAt
 * @property {number | null} expiresAt
 * @property {number | null} uses
 * @property {number} used
 */

/**
 * The group that an invite link leads to.
 * @typedef {object} LinkedGroup
 * @property {string} groupId
 * @property {string} name
 * @property {string} avatar
 * @property {number} memberCount
 * @property {boolean} isMember
 */

/**
 * @typedef {object} Contact
 * @property {string} userId
 * @property {string} nickname
 * @property {string} avatar
 * @property {string} remark your own name for the contact
 * @property {number} createdAt
 */

/**
 * `userId` is the other user.
 * @typedef {object} ContactRequest
 * @property {string} requestId
 * @property {string} userId
 * @property {string} message
 * @property {number} createdAt
 */

/**
 * @typedef {object} ContactStatus
 * @property {"pending" | "accepted" | "refused"} status
 * @property {string} requestId
 */

/**
 * One of the user's sessions.
 * @typedef {object} Device
 * @property {string} sessionId
 * @property {string} deviceId
 * @property {number} platformId
 * @property {string} address
 * @property {number} createdAt
 * @property {number} lastSeenAt
 * @property {boolean} current the session of this client
 */

/**
 * @typedef {object} AccountExport
 * @property {string} exportId
 * @property {"running" | "done" | "too_large"} status
 * @property {number} messages
 * @property {number} size
 * @property {number} createdAt
 * @property {number} expiresAt
 */

/**
 * `seq` is that of the event.
 * @typedef {object} EditResult
 * @property {string} serverMsgId
 * @property {string} conversationId
 * @property {number} seq
 * @property {number | null} editedAt
 * @property {any} content what was stored, when the word filter changed it
 */

/**
 * @typedef {object} GivenReaction
 * @property {string} emoji
 * @property {string} userId
 * @property {number} at
 */

/**
 * @typedef {object} ReactionsPage
 * @property {GivenReaction[]} reactions
 * @property {string} nextCursor
 * @property {boolean} hasMore
 */

/**
 * Newest first. `nextSeq` is the `beforeSeq` of the next page.
 * @typedef {object} MediaPage
 * @property {PlacedMessage[]} messages
 * @property {number} nextSeq
 * @property {boolean} hasMore
 */

/**
 * `ranges` are the places in `snippet` that match: pairs of numbers of characters, the second excluded.
 * @typedef {object} SearchResult
 * @property {PlacedMessage} message
 * @property {string} snippet
 * @property {[number, number][]} ranges
 */

/**
 * @typedef {object} SearchPage
 * @property {SearchResult[]} results
 * @property {string} nextCursor
 * @property {boolean} hasMore
 */

/**
 * What became of a forward to one target.
 * @typedef {object} Forwarded
 * @property {string} conversationId
 * @property {string[]} serverMsgIds
 * @property {string | null} error the name of an error
 */

/**
 * Where the session, the outbox and the baselines are kept. Values are plain JSON values.
 * Changes of one key take effect in the order in which they were asked for.
 * @typedef {object} Storage
 * @property {(key: string) => Promise<any>} get undefined when there is none
 * @property {(key: string, value: any) => Promise<void>} set
 * @property {(key: string) => Promise<void>} delete
 * @property {(prefix: string) => Promise<[string, any][]>} entries by key
 * @property {boolean} [keepsBlobs] it can also keep objects with a `Blob` in them
 * @property {() => Promise<void>} [close] called when the client is closed; it may be used again after that
 */

export {};

/**
 * A call in `calls.list`.
 * @typedef {object} CallRecord
 * @property {string} callId
 * @property {string} conversationId
 * @property {string} callerId
 * @property {string} calleeId
 * @property {"audio" | "video"} kind
 * @property {"ringing" | "active" | "ended"} state
 * @property {"completed" | "missed" | "rejected" | "canceled" | "failed" | null} outcome
 * @property {number} createdAt
 * @property {number | null} answeredAt
 * @property {number | null} endedAt
 * @property {number} durationMs
 * @property {string | null} serverMsgId of the message about it
 */

/**
 * @typedef {object} IceServer
 * @property {string[]} urls
 * @property {string} [username]
 * @property {string} [credential]
 */
