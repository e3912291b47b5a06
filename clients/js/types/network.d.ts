/** @import { Connection } from "./core/connection.js" */
/**
 * @param {(react: (link: Connection) => void) => void} drive
 * @param {() => number} clock
 * @returns {() => void} stops listening
 */
export function watchNetwork(drive: (react: (link: Connection) => void) => void, clock: () => number): () => void;
import type { Connection } from "./core/connection.js";
