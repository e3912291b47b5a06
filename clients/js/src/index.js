// Nexo for browsers and Node. docs/clients.md describes it.

export { Call } from "./calls.js";
export { NexoClient } from "./client.js";
export { Conversation } from "./conversation.js";
export { NexoError } from "./errors.js";
export { InboxMessage } from "./inbox-stream.js";
export { OutgoingMessage } from "./outgoing-message.js";
export { IndexedDbStorage } from "./storage/indexeddb.js";
export { MemoryStorage } from "./storage/memory.js";
export { groupConversationId, groupOf, peerOf, singleConversationId } from "./core/ids.js";

/** @typedef {import("./types.js").Message} Message */
/** @typedef {import("./types.js").Reaction} Reaction */
/** @typedef {import("./types.js").Draft} Draft */
/** @typedef {import("./types.js").Session} Session */
/** @typedef {import("./types.js").StateChange} StateChange */
/** @typedef {import("./types.js").Storage} Storage */
/** @typedef {import("./types.js").SendOptions} SendOptions */
/** @typedef {import("./types.js").Receipts} Receipts */
/** @typedef {import("./types.js").User} User */
/** @typedef {import("./types.js").Group} Group */
/** @typedef {import("./types.js").Member} Member */
/** @typedef {import("./types.js").GroupLink} GroupLink */
/** @typedef {import("./types.js").Contact} Contact */
/** @typedef {import("./types.js").ContactRequest} ContactRequest */
/** @typedef {import("./types.js").Device} Device */
/** @typedef {import("./types.js").SearchPage} SearchPage */
/** @typedef {import("./types.js").MediaPage} MediaPage */
/** @typedef {import("./types.js").Forwarded} Forwarded */
/** @typedef {import("./core/options.js").ClientOptions} ClientOptions */
/** @typedef {import("./events.js").ClientEvents} ClientEvents */
