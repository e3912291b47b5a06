/** @import { Group, GroupLink, LinkedGroup, Member } from "./types.js" */
export class Groups {
    /** @param {import("./users.js").Call} call */
    constructor(call: import("./users.js").Call);
    _call: import("./users.js").Call;
    /**
     * @param {{name: string, memberIds: string[], avatar?: string, introduction?: string, joinPolicy?: string, extra?: any, groupType?: number}} group
     * @returns {Promise<Group>}
     */
    create(group: {
        name: string;
        memberIds: string[];
        avatar?: string;
        introduction?: string;
        joinPolicy?: string;
        extra?: any;
        groupType?: number;
    }): Promise<Group>;
    /** @param {string} groupId @returns {Promise<Group>} */
    info(groupId: string): Promise<Group>;
    /** @returns {Promise<Group[]>} the groups you are in */
    list(): Promise<Group[]>;
    /**
     * @param {string} groupId
     * @param {{cursor?: string, limit?: number}} [page]
     * @returns {Promise<{members: Member[], nextCursor: string, hasMore: boolean}>}
     */
    members(groupId: string, { cursor, limit }?: {
        cursor?: string;
        limit?: number;
    }): Promise<{
        members: Member[];
        nextCursor: string;
        hasMore: boolean;
    }>;
    /** @param {string} groupId @param {string} [message] @returns {Promise<{status: "joined" | "pending"}>} */
    join(groupId: string, message?: string): Promise<{
        status: "joined" | "pending";
    }>;
    /** @param {string} groupId @returns {Promise<{userId: string, message: string, createdAt: number}[]>} */
    joinRequests(groupId: string): Promise<{
        userId: string;
        message: string;
        createdAt: number;
    }[]>;
    /** @param {string} groupId @param {string} userId @param {boolean} accept */
    decideJoin(groupId: string, userId: string, accept: boolean): Promise<void>;
    /** @param {string} groupId */
    quit(groupId: string): Promise<void>;
    /** @param {string} groupId */
    dismiss(groupId: string): Promise<void>;
    /**
     * @param {string} groupId
     * @param {string[]} userIds
     * @returns {Promise<{added: string[], skipped: {userId: string, reason: string}[]}>}
     */
    invite(groupId: string, userIds: string[]): Promise<{
        added: string[];
        skipped: {
            userId: string;
            reason: string;
        }[];
    }>;
    /** @param {string} groupId @param {string} userId */
    removeMember(groupId: string, userId: string): Promise<void>;
    /** @param {string} groupId @param {string} userId */
    transferOwner(groupId: string, userId: string): Promise<void>;
    /** @param {string} groupId @param {string} userId @param {"admin" | "member"} role */
    setMemberRole(groupId: string, userId: string, role: "admin" | "member"): Promise<void>;
    /**
     * @param {string} groupId
     * @param {{userId?: string, durationS: number}} mute without userId: all members; a duration of 0 unmutes, -1 mutes without end
     */
    mute(groupId: string, { userId, durationS }: {
        userId?: string;
        durationS: number;
    }): Promise<void>;
    /**
     * @param {string} groupId
     * @param {{name?: string, avatar?: string, introduction?: string, announcement?: string, joinPolicy?: string, extra?: any, groupType?: number}} changes
     * @returns {Promise<Group>}
     */
    update(groupId: string, changes: {
        name?: string;
        avatar?: string;
        introduction?: string;
        announcement?: string;
        joinPolicy?: string;
        extra?: any;
        groupType?: number;
    }): Promise<Group>;
    /**
     * What members see of yourself in this group.
     * @param {string} groupId
     * @param {{groupNickname?: string, groupAvatar?: string, extra?: any}} changes
     * @returns {Promise<Member>}
     */
    updateMember(groupId: string, changes: {
        groupNickname?: string;
        groupAvatar?: string;
        extra?: any;
    }): Promise<Member>;
    /**
     * An invite link; without an end where nothing else is named.
     * @param {string} groupId
     * @param {{expiresS?: number, uses?: number}} [limits]
     * @returns {Promise<GroupLink>}
     */
    createLink(groupId: string, { expiresS, uses }?: {
        expiresS?: number;
        uses?: number;
    }): Promise<GroupLink>;
    /** @param {string} groupId @returns {Promise<GroupLink[]>} the open ones */
    links(groupId: string): Promise<GroupLink[]>;
    /** The group that a link leads to. @param {string} code @returns {Promise<LinkedGroup>} */
    linkInfo(code: string): Promise<LinkedGroup>;
    /** @param {string} code */
    revokeLink(code: string): Promise<void>;
    /** Joins by an invite link. @param {string} code @returns {Promise<string>} the id of the group */
    joinByCode(code: string): Promise<string>;
}
import type { Group } from "./types.js";
import type { Member } from "./types.js";
import type { GroupLink } from "./types.js";
import type { LinkedGroup } from "./types.js";
