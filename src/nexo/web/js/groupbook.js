/** What is known of the user's groups: their names and rules, and the members of those that are looked at. */

import { Emitter, soon } from "./emitter.js";

const PAGE = 200;
const PAGES_MAX = 10; // members beyond are shown on demand
const AFTER_EVENT_MS = 250;

/**
 * @typedef {{userId: string, role: "owner" | "admin" | "member", nickname: string, joinedAt: number, mutedUntil: number}} Member
 * @typedef {{list: Member[], byId: Map<string, Member>, nextCursor: string}} Members
 */

export class GroupBook extends Emitter {
  #infos = new Map();
  /** @type {Map<string, Members>} */
  #members = new Map();
  #requests = new Map();
  #asked = new Set();
  #mine = null;
  #timers = new Map();
  #changed = soon(() => this.emit("change"));

  /** @param {any} client @param {import("./people.js").People} people @param {(groupId: string) => boolean} isOpen */
  constructor(client, people, isOpen) {
    super();
    this.client = client;
    this.people = people;
    this.isOpen = isOpen;
    client.on("groupEvent", ({ message }) => this.#happened(message.groupId));
  }

  /** All groups of the user in one call. */
  async loadMine() {
    const groups = await this.client.groups.list();
    this.#mine = new Set(groups.map((group) => group.groupId));
    for (const group of groups) this.#infos.set(group.groupId, group);
    this.#changed();
  }

  /** What was known at the last start. @param {any[]} groups */
  putBack(groups) {
    for (const group of groups) if (!this.#infos.has(group.groupId)) this.#infos.set(group.groupId, group);
  }

  /** @param {string} groupId @returns {any | null} */
  info(groupId) {
    const found = this.#infos.get(groupId);
    if (!found && this.#mine && !this.#asked.has(groupId)) {
      this.#asked.add(groupId);
      this.refresh(groupId).catch(() => {});
    }
    return found ?? null;
  }

  /** @param {string} groupId */
  name(groupId) {
    return this.info(groupId)?.name || groupId;
  }

  /** @param {string} groupId @returns {Members | null} */
  members(groupId) {
    return this.#members.get(groupId) ?? null;
  }

  /** @param {string} groupId @returns {Member | null} */
  me(groupId) {
    return this.#members.get(groupId)?.byId.get(this.people.me) ?? null;
  }

  /** Not a member any more, as far as is known. @param {string} groupId */
  hasLeft(groupId) {
    return this.#mine !== null && !this.#mine.has(groupId);
  }

  /** @param {string} groupId */
  isManager(groupId) {
    return this.info(groupId)?.ownerId === this.people.me || this.me(groupId)?.role === "admin";
  }

  /** @param {string} groupId @returns {any[]} */
  requests(groupId) {
    return this.#requests.get(groupId) ?? [];
  }

  /** @param {string} groupId */
  async refresh(groupId) {
    try {
      this.#infos.set(groupId, await this.client.groups.info(groupId));
    } finally {
      this.#changed();
    }
  }

  /** @param {string} groupId */
  async loadMembers(groupId) {
    const list = [];
    let cursor = "";
    for (let page = 0; page < PAGES_MAX; page += 1) {
      const found = await this.client.groups.members(groupId, { cursor: cursor || undefined, limit: PAGE });
      list.push(...found.members);
      cursor = found.hasMore ? found.nextCursor : "";
      if (!cursor) break;
    }
    this.#keep(groupId, list, cursor);
  }

  /** @param {string} groupId */
  async loadMoreMembers(groupId) {
    const known = this.#members.get(groupId);
    if (!known?.nextCursor) return;
    const found = await this.client.groups.members(groupId, { cursor: known.nextCursor, limit: PAGE });
    this.#keep(groupId, [...known.list, ...found.members], found.hasMore ? found.nextCursor : "");
  }

  #keep(groupId, list, nextCursor) {
    this.#members.set(groupId, { list, byId: new Map(list.map((member) => [member.userId, member])), nextCursor });
    // Where someone has a name for this group, it stands in the place of the usual one.
    for (const member of list) if (!member.groupNickname) this.people.learn({ userId: member.userId, nickname: member.nickname });
    this.#changed();
  }

  /** @param {string} groupId */
  async loadRequests(groupId) {
    this.#requests.set(groupId, await this.client.groups.joinRequests(groupId));
    this.#changed();
  }

  /** Everything of a group that is looked at, as it is now. @param {string} groupId */
  async look(groupId) {
    if (this.hasLeft(groupId)) {
      await this.refresh(groupId).catch(() => {});
      return;
    }
    await Promise.allSettled([this.refresh(groupId), this.loadMembers(groupId)]);
    if (this.isManager(groupId) && this.info(groupId)?.status === 0) await this.loadRequests(groupId).catch(() => {});
  }

  /** Many events are one change: the group is asked for again once they have come. */
  #happened(groupId) {
    if (!groupId || this.#timers.has(groupId)) return;
    const timer = setTimeout(async () => {
      this.#timers.delete(groupId);
      await this.loadMine().catch(() => {});
      this.#asked.delete(groupId);
      if (!this.isOpen(groupId)) this.#members.delete(groupId);
      else await this.look(groupId);
    }, AFTER_EVENT_MS);
    this.#timers.set(groupId, timer);
  }
}
