/** @import { OnlineUser, Privacy, User } from "./types.js" */
/** @typedef {(method: string, path: string, params: Record<string, any>) => Promise<any>} Call */
export class Users {
    /** @param {Call} call */
    constructor(call: Call);
    _call: Call;
    /** @param {string} [userId] none: yourself @returns {Promise<User>} */
    info(userId?: string): Promise<User>;
    /** By the beginning of the id or nickname. @param {string} q @returns {Promise<User[]>} */
    search(q: string): Promise<User[]>;
    /**
     * @param {{nickname?: string, avatar?: string, extra?: any, privacy?: Privacy}} changes
     * @returns {Promise<User>}
     */
    update({ nickname, avatar, extra, privacy }: {
        nickname?: string;
        avatar?: string;
        extra?: any;
        privacy?: Privacy;
    }): Promise<User>;
    /** @param {string[]} userIds @returns {Promise<OnlineUser[]>} */
    online(userIds: string[]): Promise<OnlineUser[]>;
    /** @param {string} userId @returns {Promise<string[]>} all users that are blocked now */
    block(userId: string): Promise<string[]>;
    /** @param {string} userId @returns {Promise<string[]>} all users that are blocked now */
    unblock(userId: string): Promise<string[]>;
    /** @returns {Promise<string[]>} */
    blocks(): Promise<string[]>;
}
export type Call = (method: string, path: string, params: Record<string, any>) => Promise<any>;
import type { User } from "./types.js";
import type { Privacy } from "./types.js";
import type { OnlineUser } from "./types.js";
