/** @import { Link } from "./core/link.js" */
/**
 * @param {(react: (link: Link) => void) => void} drive
 * @param {() => number} clock
 * @returns {() => void} stops listening
 */
export function watchNetwork(drive: (react: (link: Link) => void) => void, clock: () => number): () => void;
import type { Link } from "./core/link.js";
