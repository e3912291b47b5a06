/** Who can be mentioned in a group, and who is in a text. */

import { t } from "../i18n.js";

const ALL = /(^|\s)@all(\s|$|[.,!?])/;
const MENTIONS_MAX = 100;

/** @param {any} model @param {any} conversation @returns {{userId: string, name: string}[]} */
export function mentionable(model, conversation) {
  const members = model.groups.members(conversation.groupId)?.list ?? [];
  const found = members.filter(({ userId }) => userId !== model.userId).map(({ userId }) => ({ userId, name: model.nameIn(conversation.groupId, userId) }));
  found.sort((a, b) => a.name.localeCompare(b.name));
  if (model.groups.isManager(conversation.groupId)) found.push({ userId: "@all", name: t("everyone") });
  return found;
}

/**
 * Those whose name still stands in the text; and those whose user id was typed by hand.
 * @param {any} model @param {any} conversation @param {string} text
 * @param {Map<string, string>} chosen from the list, by user id
 * @returns {string[]}
 */
export function mentionsIn(model, conversation, text, chosen) {
  if (conversation.type !== "group") return [];
  if (model.groups.isManager(conversation.groupId) && ALL.test(text)) return ["@all"];
  const members = model.groups.members(conversation.groupId)?.byId ?? new Map();
  const ids = new Set();
  for (const [userId, name] of chosen) if (text.includes(`@${name}`)) ids.add(userId);
  for (const [, userId] of text.matchAll(/@([A-Za-z0-9._@-]{1,64})/g)) if (members.has(userId)) ids.add(userId);
  for (const userId of members.keys()) if (text.includes(`@${model.people.name(userId)}`) || text.includes(`@${model.nameIn(conversation.groupId, userId)}`)) ids.add(userId);
  ids.delete(model.userId);
  return [...ids].slice(0, MENTIONS_MAX);
}
