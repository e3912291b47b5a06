/** @import { Contact, ContactRequest, ContactStatus } from "./types.js" */
export class Contacts {
    /** @param {import("./users.js").Call} call */
    constructor(call: import("./users.js").Call);
    _call: import("./users.js").Call;
    /**
     * @param {{cursor?: string, limit?: number}} [page]
     * @returns {Promise<{contacts: Contact[], nextCursor: string, hasMore: boolean}>}
     */
    list({ cursor, limit }?: {
        cursor?: string;
        limit?: number;
    }): Promise<{
        contacts: Contact[];
        nextCursor: string;
        hasMore: boolean;
    }>;
    /**
     * Open requests: those you have received, or those you have sent.
     * @param {{sent?: boolean, cursor?: string, limit?: number}} [page]
     * @returns {Promise<{requests: ContactRequest[], nextCursor: string, hasMore: boolean}>}
     */
    requests({ sent, cursor, limit }?: {
        sent?: boolean;
        cursor?: string;
        limit?: number;
    }): Promise<{
        requests: ContactRequest[];
        nextCursor: string;
        hasMore: boolean;
    }>;
    /** One who has asked you before becomes a contact at once. @param {string} userId @param {string} [message] @returns {Promise<ContactStatus>} */
    request(userId: string, message?: string): Promise<ContactStatus>;
    /** @param {string} userId @param {boolean} accept @returns {Promise<ContactStatus>} */
    decide(userId: string, accept: boolean): Promise<ContactStatus>;
    /** Ends the contact, for both. @param {string} userId */
    remove(userId: string): Promise<void>;
    /** Your own name for a contact. @param {string} userId @param {string} remark @returns {Promise<Contact>} */
    remark(userId: string, remark: string): Promise<Contact>;
}
import type { Contact } from "./types.js";
import type { ContactRequest } from "./types.js";
import type { ContactStatus } from "./types.js";
