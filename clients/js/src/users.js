// Calls about users: `client.users`.

import { camel, snake } from "./camel-case.js";

/** @import { OnlineUser, Privacy, User } from "./types.js" */
/** @typedef {(method: string, path: string, params: Record<string, any>) => Promise<any>} Call */

export class Users {
  /** @param {Call} call */
  constructor(call) {
    this._call = call;
  }

  /** @param {string} [userId] none: yourself @returns {Promise<User>} */
  async info(userId) {
    return camel(await this._call("GET", "/user/info", snake({ userId })));
  }

  /** By the beginning of the id or nickname. @param {string} q @returns {Promise<User[]>} */
  async search(q) {
    return camel(await this._call("GET", "/user/search", { q })).users;
  }

  /**
   * @param {{nickname?: string, avatar?: string, extra?: any, privacy?: Privacy}} changes
   * @returns {Promise<User>}
   */
  async update({ nickname, avatar, extra, privacy }) {
    const changes = { nickname, avatar, extra, privacy: privacy && snake(privacy) };
    return camel(await this._call("PUT", "/user/update", snake(changes)));
  }

  /** @param {string[]} userIds @returns {Promise<OnlineUser[]>} */
  async online(userIds) {
    return camel(await this._call("GET", "/user/online", { user_ids: userIds })).users;
  }

  /** @param {string} userId @returns {Promise<string[]>} all users that are blocked now */
  async block(userId) {
    return (await this._call("POST", "/user/block", { user_id: userId })).user_ids;
  }

  /** @param {string} userId @returns {Promise<string[]>} all users that are blocked now */
  async unblock(userId) {
    return (await this._call("POST", "/user/unblock", { user_id: userId })).user_ids;
  }

  /** @returns {Promise<string[]>} */
  async blocks() {
    return (await this._call("GET", "/user/blocks", {})).user_ids;
  }
}
