/** What messages and events say, in words: for the list, for the log, for screen readers and notifications. */

import { h } from "./dom.js";
import { fileOf, lengthText, nameOf } from "./files.js";
import { lastingText, shortName } from "./format.js";
import { rich, t } from "./i18n.js";
import { plainText } from "./richtext.js";

export const TEXT = 1;
export const IMAGE = 2;
export const VIDEO = 3;
export const AUDIO = 4;
export const FILE = 5;
export const QUOTE = 7;
export const MERGED = 8;
export const RECALL_EVENT = 100;
export const FIRST_EVENT = 100;
export const PIN_EVENT = 112;
export const CALL = 120;
/** A message whose time is over has this status. */
export const EXPIRED = 2;
/** Events that only change a message: recalled, edited, its reactions. */
const CHANGES = new Set([RECALL_EVENT, 110, 111]);

/** @param {any} message */
export const isEvent = (message) => message.msgType >= FIRST_EVENT && message.msgType !== CALL;
/** @param {any} message */
export const isChange = (message) => CHANGES.has(message.msgType);
/** @param {any} message */
export const isText = (message) => message.msgType === TEXT || message.msgType === QUOTE;

const KINDS = { 2: "kind_image", 3: "kind_video", 4: "kind_audio", 5: "kind_file", 8: "kind_merged" };

const LINE_CHARS = 600;

/** More of it is not seen in one line, and drawing it takes time. */
const oneLine = (text) => plainText(text.slice(0, LINE_CHARS));

/** The content in one line. @param {any} message or a quote with `text` */
export function contentLine(message) {
  if (message.status === EXPIRED) return t("expired_one");
  if (isText(message) && typeof message.content === "string") return oneLine(message.content);
  if (message.msgType === CALL) return callLine(message.content ?? {}, false);
  const content = fileOf(message);
  const length = content.duration_ms > 0 ? lengthText(content.duration_ms) : "";
  const caption = typeof content.text === "string" ? oneLine(content.text) : "";
  if (message.msgType === AUDIO && length) return t("voice_message", { t: length });
  if (message.msgType === VIDEO && length && !caption) return t("video_length", { t: length });
  if (message.msgType === FILE && nameOf(content) && !caption) return t("file_named", { name: nameOf(content) });
  const kind = t(KINDS[message.msgType] ?? "kind_custom");
  const more = caption || (message.msgType === MERGED ? content.title : content.file_id || content.local ? "" : content.name);
  return more ? t("announce_message", { name: kind, text: more }) : kind;
}

/** What became of a call. @param {any} call @param {boolean} isMine whether one made it */
export function callLine(call, isMine) {
  const isVideo = call.kind === "video";
  const length = lengthText(call.duration_ms ?? 0);
  if (call.outcome === "completed") return t(isVideo ? "call_video" : "call_voice", { t: length });
  if (call.outcome === "rejected") return t("call_declined");
  if (isMine) return t("call_no_answer");
  return t(isVideo ? "call_missed_video" : "call_missed_voice");
}

/** @param {any} model @param {string} userId */
export function whoIs(model, userId) {
  return userId === model.userId ? t("you") : model.people.name(userId);
}

/** @param {any} model @param {any} message a recalled one */
export function recalledLine(model, message) {
  if (message.senderId === model.userId) return t("you_recalled");
  return t("x_recalled", { name: model.people.name(message.senderId) });
}

/** The words for an event: text and `<b>` names. @param {any} model @param {any} message @returns {any[]} */
export function eventParts(model, message) {
  const body = message.content ?? {};
  const me = model.userId;
  const name = (id) => h("b", null, id === me ? t("you_object") : shortName(model.people.name(id)));
  const subject = (id) => h("b", null, id === me ? t("you") : shortName(model.people.name(id)));
  const names = (ids) => joinNames((ids ?? []).map(name));
  const own = body.by === me ? "_you" : "";
  switch (message.msgType) {
    case 100:
      return [body.by === me ? t("you_recalled") : t("x_recalled", { name: model.people.name(body.by) })];
    case 101:
      return rich(`event_created${own}`, { by: subject(body.by), name: h("b", null, body.name) });
    case 102:
      return joinedParts(body, me, subject, name, names);
    case 103:
      return rich(body.user_id === me ? "event_left_you" : "event_left", { who: subject(body.user_id) });
    case 104:
      if (body.user_ids?.includes(me)) return rich("event_removed_me", { by: subject(body.by) });
      return rich(`event_removed${own}`, { by: subject(body.by), who: names(body.user_ids) });
    case 105:
      if (body.to === me) return rich("event_owner_me", { from: subject(body.from) });
      return rich(body.from === me ? "event_owner_you" : "event_owner", { from: subject(body.from), to: name(body.to) });
    case 106:
      return roleParts(body, own, me, subject, name);
    case 107:
      return updatedParts(body, own, subject);
    case 108:
      return rich(`event_dismissed${own}`, { by: subject(body.by) });
    case 109:
      return mutedParts(body, message.senderId, me, subject, name);
    case PIN_EVENT:
      return rich(`event_${body.on ? "pinned" : "unpinned"}${own}`, { by: subject(body.by) });
    default:
      return [t("event_other")];
  }
}

function joinedParts(body, me, subject, name, names) {
  const ids = body.user_ids ?? [];
  const alone = ids.length === 1 && (!body.by || body.by === ids[0]);
  if (alone) return rich(ids[0] === me ? "event_joined_you" : "event_joined", { who: subject(ids[0]) });
  if (ids.length === 1 && ids[0] === me) return rich("event_invited_me", { by: subject(body.by) });
  if (ids.length === 1) return rich("event_joined_by", { who: subject(ids[0]), by: name(body.by) });
  return rich(body.by === me ? "event_invited_you" : "event_invited", { by: subject(body.by), who: names(ids) });
}

function roleParts(body, own, me, subject, name) {
  const made = body.role === "admin" ? "made" : "unmade";
  if (body.user_id === me) return rich(`event_${made}_me`, { by: subject(body.by) });
  return rich(`event_${made}${own}`, { by: subject(body.by), who: name(body.user_id) });
}

function updatedParts(body, own, subject) {
  const changes = Array.isArray(body.changes) ? body.changes : Object.keys(body.changes ?? {});
  const newName = Array.isArray(body.changes) ? undefined : body.changes?.name;
  const ttl = Array.isArray(body.changes) ? undefined : body.changes?.message_ttl_s;
  if (ttl === 0) return rich(`event_ttl_off${own}`, { by: subject(body.by) });
  if (ttl > 0) return rich(`event_ttl${own}`, { by: subject(body.by), t: lastingText(ttl) });
  if (newName !== undefined) return rich(`event_renamed${own}`, { by: subject(body.by), name: h("b", null, newName) });
  if (changes.includes("announcement")) return rich(`event_announced${own}`, { by: subject(body.by) });
  return rich(`event_updated${own}`, { by: subject(body.by) });
}

/** Who did it is the event's sender; the server's own events have none. */
function mutedParts(body, by, me, subject, name) {
  const lifted = body.until === 0;
  const what = lifted ? "unmuted" : "muted";
  const own = by === me ? "_by_you" : "_by";
  if (!body.user_id) return by ? rich(`event_all_${what}${own}`, { by: subject(by) }) : [t(`event_all_${what}`)];
  if (by && by !== body.user_id) return rich(`event_${what}${own}`, { by: subject(by), who: name(body.user_id) });
  const who = { who: subject(body.user_id) };
  return rich(body.user_id === me ? `event_${what}_you` : `event_${what}`, who);
}

/** "A, B and C", in the language's way. @param {any[]} parts */
function joinNames(parts) {
  const shown = parts.length > 5 ? [...parts.slice(0, 4), h("b", null, t("n_others", { n: parts.length - 4 }))] : parts;
  return shown.flatMap((part, at) => {
    if (at === 0) return [part];
    return [at === shown.length - 1 ? t("list_and") : t("list_comma"), part];
  });
}

/** @param {any[]} parts */
export function plain(parts) {
  return parts
    .flat(3)
    .map((part) => (part instanceof Node ? part.textContent : String(part)))
    .join("");
}

const SIGNS = { [AUDIO]: "mic", [VIDEO]: "video", [FILE]: "file" };

/** Someone has brought the user into the group: that matters more than how it is written in the log. @param {any} model @param {any} message */
function addedBy(model, message) {
  const { by, user_ids: ids } = message.content ?? {};
  if (!by || by === model.userId) return "";
  return message.msgType === 101 || (message.msgType === 102 && ids?.includes(model.userId)) ? by : "";
}

/** The last message of a conversation for the list: `{who, text, sign}`. @param {any} model @param {any} conversation @param {any} message */
export function previewOf(model, conversation, message) {
  const added = isEvent(message) && conversation.type === "group" ? addedBy(model, message) : "";
  if (added) return { who: "", text: t("added_you", { name: shortName(model.people.name(added)) }), sign: "" };
  if (isEvent(message)) return { who: "", text: plain(eventParts(model, message)), sign: "" };
  if (message.status === 1) return { who: "", text: recalledLine(model, message), sign: "" };
  const isMine = message.senderId === model.userId;
  if (message.msgType === CALL) return { who: "", text: callLine(message.content ?? {}, isMine), sign: callSign(message.content ?? {}, isMine) };
  const inGroup = conversation.type === "group" && message.senderId !== model.userId;
  return { who: inGroup ? t("prefix", { name: shortName(model.people.name(message.senderId)) }) : "", text: contentLine(message), sign: message.status === 0 ? (SIGNS[message.msgType] ?? "") : "" };
}

/** @param {any} call @param {boolean} isMine */
function callSign(call, isMine) {
  const isMissed = !isMine && call.outcome !== "completed" && call.outcome !== "rejected";
  return `${call.kind === "video" ? "video" : "phone"}${isMissed ? " missed" : ""}`;
}

/** Why something was refused, for people. @param {any} error */
export function errorText(error) {
  const reason = error?.reason ?? "internal_error";
  if (reason === "too_many_requests") return t("err_too_many_requests", { s: Math.max(1, Math.ceil((error.retryAfterMs ?? 1000) / 1000)) });
  const key = `err_${reason}`;
  return t(KNOWN_ERRORS.has(reason) ? key : "err_other");
}

const KNOWN_ERRORS = new Set([
  "network", "timeout", "offline", "closed", "server_busy", "internal_error", "blocked", "content_rejected", "speak_muted", "not_group_member",
  "member_not_active", "group_not_available", "group_not_found", "user_not_found", "no_permission", "group_full",
  "group_members_too_few", "owner_cannot_leave", "recall_timeout", "not_message_sender", "message_not_found", "user_exists", "registration_closed",
  "invalid_credentials", "cannot_send_to_self", "body_too_long", "session_invalid", "bad_user_id", "bad_password", "bad_nickname",
  "bad_avatar", "bad_name", "bad_group_id", "bad_content", "join_request_not_found", "edit_timeout", "not_editable", "bad_emoji",
  "too_many_reactions", "too_many_pins", "not_forwardable", "too_many_deleted", "file_too_large", "file_type_refused", "bad_file",
  "quota_exceeded", "upload_expired", "file_not_found", "file_changed",
]);
