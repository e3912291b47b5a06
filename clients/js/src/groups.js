// Calls about groups: `client.groups`.

import { camel, snake } from "./camel-case.js";

/** @import { Group, GroupLink, LinkedGroup, Member } from "./types.js" */

export class Groups {
  /** @param {import("./users.js").Call} call */
  constructor(call) {
    this._call = call;
  }

  /**
   * @param {{name: string, memberIds: string[], avatar?: string, introduction?: string, joinPolicy?: string, extra?: any, groupType?: number}} group
   * @returns {Promise<Group>}
   */
  async create(group) {
    return camel(await this._call("POST", "/group/create", snake(group)));
  }

  /** @param {string} groupId @returns {Promise<Group>} */
  async info(groupId) {
    return camel(await this._call("GET", "/group/info", { group_id: groupId }));
  }

  /** @returns {Promise<Group[]>} the groups you are in */
  async list() {
    return camel(await this._call("GET", "/group/list", {})).groups;
  }

  /**
   * @param {string} groupId
   * @param {{cursor?: string, limit?: number}} [page]
   * @returns {Promise<{members: Member[], nextCursor: string, hasMore: boolean}>}
   */
  async members(groupId, { cursor, limit } = {}) {
    return camel(await this._call("GET", "/group/members", snake({ groupId, cursor, limit })));
  }

  /** @param {string} groupId @param {string} [message] @returns {Promise<{status: "joined" | "pending"}>} */
  async join(groupId, message) {
    return camel(await this._call("POST", "/group/join", snake({ groupId, message })));
  }

  /** @param {string} groupId @returns {Promise<{userId: string, message: string, createdAt: number}[]>} */
  async joinRequests(groupId) {
    return camel(await this._call("GET", "/group/join_requests", { group_id: groupId })).requests;
  }

  /** @param {string} groupId @param {string} userId @param {boolean} accept */
  async decideJoin(groupId, userId, accept) {
    await this._call("POST", "/group/join_decide", snake({ groupId, userId, accept }));
  }

  /** @param {string} groupId */
  async quit(groupId) {
    await this._call("POST", "/group/quit", { group_id: groupId });
  }

  /** @param {string} groupId */
  async dismiss(groupId) {
    await this._call("POST", "/group/dismiss", { group_id: groupId });
  }

  /**
   * @param {string} groupId
   * @param {string[]} userIds
   * @returns {Promise<{added: string[], skipped: {userId: string, reason: string}[]}>}
   */
  async invite(groupId, userIds) {
    return camel(await this._call("POST", "/group/invite", snake({ groupId, userIds })));
  }

  /** @param {string} groupId @param {string} userId */
  async removeMember(groupId, userId) {
    await this._call("POST", "/group/remove_member", snake({ groupId, userId }));
  }

  /** @param {string} groupId @param {string} userId */
  async transferOwner(groupId, userId) {
    await this._call("POST", "/group/transfer_owner", snake({ groupId, userId }));
  }

  /** @param {string} groupId @param {string} userId @param {"admin" | "member"} role */
  async setMemberRole(groupId, userId, role) {
    await this._call("POST", "/group/set_member_role", snake({ groupId, userId, role }));
  }

  /**
   * @param {string} groupId
   * @param {{userId?: string, durationS: number}} mute without userId: all members; a duration of 0 unmutes, -1 mutes without end
   */
  async mute(groupId, { userId, durationS }) {
    await this._call("POST", "/group/mute", snake({ groupId, userId, durationS }));
  }

  /**
   * @param {string} groupId
   * @param {{name?: string, avatar?: string, introduction?: string, announcement?: string, joinPolicy?: string, extra?: any, groupType?: number}} changes
   * @returns {Promise<Group>}
   */
  async update(groupId, changes) {
    return camel(await this._call("PUT", "/group/update", snake({ groupId, ...changes })));
  }

  /**
   * What members see of yourself in this group.
   * @param {string} groupId
   * @param {{groupNickname?: string, groupAvatar?: string, extra?: any}} changes
   * @returns {Promise<Member>}
   */
  async updateMember(groupId, changes) {
    return camel(await this._call("PUT", "/group/member", snake({ groupId, ...changes })));
  }

  /**
   * An invite link; without an end where nothing else is named.
   * @param {string} groupId
   * @param {{expiresS?: number, uses?: number}} [limits]
   * @returns {Promise<GroupLink>}
   */
  async createLink(groupId, { expiresS, uses } = {}) {
    return camel(await this._call("POST", "/group/link", snake({ groupId, expiresS, uses })));
  }

  /** @param {string} groupId @returns {Promise<GroupLink[]>} the open ones */
  async links(groupId) {
    return camel(await this._call("GET", "/group/links", { group_id: groupId })).links;
  }

  /** The group that a link leads to. @param {string} code @returns {Promise<LinkedGroup>} */
  async linkInfo(code) {
    return camel(await this._call("GET", "/group/link", { code }));
  }

  /** @param {string} code */
  async revokeLink(code) {
    await this._call("POST", "/group/link/revoke", { code });
  }

  /** Joins by an invite link. @param {string} code @returns {Promise<string>} the id of the group */
  async joinByCode(code) {
    return (await this._call("POST", "/group/join", { code })).group_id;
  }
}
