export class Presence {
    /** @param {(userIds: string[]) => void} watch */
    constructor(watch: (userIds: string[]) => void);
    _watch: (userIds: string[]) => void;
    /** The newest subscription last. @type {Map<string, OnlineUser | null>} */
    _users: Map<string, OnlineUser | null>;
    /** Beyond a hundred the oldest subscriptions end. @param {string[]} userIds */
    subscribe(userIds: string[]): void;
    /** @param {string[]} userIds */
    unsubscribe(userIds: string[]): void;
    /** What is known of a user; null when nothing is. @param {string} userId */
    of(userId: string): OnlineUser | null;
    get watched(): string[];
    /** @param {OnlineUser[]} users */
    _learn(users: OnlineUser[]): void;
}
import type { OnlineUser } from "./types.js";
