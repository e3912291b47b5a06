// Nexo for browsers and Node. docs/clients.md tells how it works.

export { NexoClient } from "./client.js";
export { Conversation } from "./conversation.js";
export { NexoError } from "./errors.js";
export { OutgoingMessage } from "./outgoing.js";
export { IndexedDbStorage } from "./storage/indexeddb.js";
export { MemoryStorage } from "./storage/memory.js";
export { groupConversationId, groupOf, peerOf, singleConversationId } from "./core/ids.js";

/** @typedef {import("./types.js").Message} Message */
/** @typedef {import("./types.js").Session} Session */
/** @typedef {import("./types.js").StateChange} StateChange */
/** @typedef {import("./types.js").Storage} Storage */
/** @typedef {import("./types.js").SendOptions} SendOptions */
/** @typedef {import("./types.js").Receipts} Receipts */
/** @typedef {import("./types.js").User} User */
/** @typedef {import("./types.js").Group} Group */
/** @typedef {import("./types.js").Member} Member */
/** @typedef {import("./interface.js").ClientOptions} ClientOptions */
/** @typedef {import("./interface.js").ClientEvents} ClientEvents */
