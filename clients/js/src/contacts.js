// Calls about contacts: `client.contacts`.

import { camel, snake } from "./camel-case.js";

/** @import { Contact, ContactRequest, ContactStatus } from "./types.js" */

export class Contacts {
  /** @param {import("./users.js").Call} call */
  constructor(call) {
    this._call = call;
  }

  /**
   * @param {{cursor?: string, limit?: number}} [page]
   * @returns {Promise<{contacts: Contact[], nextCursor: string, hasMore: boolean}>}
   */
  async list({ cursor, limit } = {}) {
    return camel(await this._call("GET", "/contact/list", snake({ cursor, limit })));
  }

  /**
   * Open requests: those you have received, or those you have sent.
   * @param {{sent?: boolean, cursor?: string, limit?: number}} [page]
   * @returns {Promise<{requests: ContactRequest[], nextCursor: string, hasMore: boolean}>}
   */
  async requests({ sent, cursor, limit } = {}) {
    return camel(await this._call("GET", "/contact/requests", snake({ sent, cursor, limit })));
  }

  /** One who has asked you before becomes a contact at once. @param {string} userId @param {string} [message] @returns {Promise<ContactStatus>} */
  async request(userId, message) {
    return camel(await this._call("POST", "/contact/request", snake({ userId, message })));
  }

  /** @param {string} userId @param {boolean} accept @returns {Promise<ContactStatus>} */
  async decide(userId, accept) {
    return camel(await this._call("POST", "/contact/decide", snake({ userId, accept })));
  }

  /** Ends the contact, for both. @param {string} userId */
  async remove(userId) {
    await this._call("POST", "/contact/remove", { user_id: userId });
  }

  /** Your own name for a contact. @param {string} userId @param {string} remark @returns {Promise<Contact>} */
  async remark(userId, remark) {
    return camel(await this._call("POST", "/contact/remark", snake({ userId, remark })));
  }
}
