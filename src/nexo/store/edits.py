"""Edits a message: the row gets its new content, the old one is kept, and a bare event notifies the members.

The event's row carries client_msg_id and hash of the request, so an edit is repeated as safely as a send.
"""

from __future__ import annotations

from nexo.core import message_events, policy
from nexo.core.message_fields import encode_names
from nexo.core.model import Conversation, Member, MemberStatus, Message, MsgType
from nexo.core.moderation import VersionCause
from nexo.core.visibility import is_visible
from nexo.errors import NexoError
from nexo.ids import AT_ALL
from nexo.ports import EditResult, MessageEdit, MessageEvent
from nexo.store import message_versions, rows
from nexo.store.conversations import append_quiet, lock_members, read_ranges
from nexo.store.engine import NOW, Script, do, many
from nexo.store.engine import rows as query
from nexo.store.expiry import hide_expired
from nexo.store.recall import LockedMessage, lock_message
from nexo.store.sql import Sql

EDITS_MAX = 100


def edit(sql: Sql, wanted: MessageEdit, event_id: int, window_s: int, retention_ms: int) -> Script[EditResult]:
    """Changes the content of a message by its sender. Repeated: the answer of the first time."""
    draft, user_id = wanted.draft, wanted.draft.sender_id
    found = yield from lock_message(sql, wanted.server_msg_id)
    conversation, message, _ = found
    before = yield from _edited_before(wanted, found, event_id)
    if before is not None:
        return before
    members = yield from lock_members(sql, conversation.id, list({user_id, *_names(wanted)}))
    member = members.get(user_id)
    ranges = yield from read_ranges(member, conversation)
    if member is None or not is_visible(ranges, message.seq):
        raise NexoError("message_not_found")
    yield from hide_expired([message], retention_ms)
    now_ms = yield NOW
    policy.check_may_edit(message, user_id, now_ms, window_s)
    policy.check_may_send(conversation, member, now_ms)
    if draft.rejected:
        raise NexoError("content_rejected")
    mentions, added = yield from _mentions(wanted, message, conversation, members)
    if draft.content == message.content and mentions == message.mentions:
        seq = message.seq
        if message.edited_at is not None:
            ((seq,),) = yield query("SELECT edit_seq FROM messages WHERE server_msg_id=?", message.server_msg_id)
        return EditResult(*_place(message), seq, message.edited_at, message.content, None)
    if (yield from message_versions.count_edits(message.server_msg_id)) >= EDITS_MAX:
        raise NexoError("not_editable", f"A message can be edited {EDITS_MAX} times")
    edited_at = max(now_ms, conversation.last_send_at + 1)
    content = {"server_msg_id": str(message.server_msg_id), "seq": message.seq, "edited_at": edited_at, "by": user_id}
    event = yield from append_quiet(
        conversation,
        event_id,
        MsgType.EDITED,
        content,
        user_id,
        now_ms,
        mentions=added,
        request=(draft.client_msg_id, draft.request_hash),
    )
    yield from message_versions.keep(message, edited_at, user_id, VersionCause.EDIT, event.seq)
    yield do(
        "UPDATE messages SET content=?,mentions=?,edited_at=?,edit_seq=? WHERE server_msg_id=?",
        draft.content,
        encode_names(mentions) if mentions else None,
        edited_at,
        event.seq,
        message.server_msg_id,
    )
    yield from _count_mentions(conversation, event, added)
    message_events.add_edit(event, draft.content, mentions)
    published = MessageEvent(event, conversation.member_epoch)
    return EditResult(*_place(message), event.seq, edited_at, draft.content, published)


def _place(message: Message) -> tuple[int, str]:
    return message.server_msg_id, message.conversation_id


def _names(wanted: MessageEdit) -> list[str]:
    return [user_id for user_id in wanted.mentions or () if user_id != AT_ALL]


def _edited_before(wanted: MessageEdit, found: LockedMessage, event_id: int) -> Script[EditResult | None]:
    """Returns the answer to a request whose event is stored; with the event if an earlier run of this script stored it,
    because it was not published then."""
    draft = wanted.draft
    rows_found = yield query(
        f"SELECT request_hash,{rows.columns(rows.MESSAGE)} FROM messages WHERE sender_id=? AND client_msg_id=?",
        draft.sender_id,
        draft.client_msg_id,
    )
    if not rows_found:
        return None
    request_hash, *row = rows_found[0]
    if bytes(request_hash or b"") != draft.request_hash:
        raise NexoError("client_msg_id_reused")
    conversation, message, _ = found
    event = rows.message(row, message.conversation_id)
    event.client_msg_id = None
    published = None
    edited_at = message_events.content_of(event)["edited_at"]
    if event.server_msg_id == event_id:
        message_events.add_edit(event, message.content, message.mentions)
        published = MessageEvent(event, conversation.member_epoch)
    return EditResult(*_place(message), event.seq, edited_at, message.content, published)


def _mentions(
    wanted: MessageEdit, message: Message, conversation: Conversation, members: dict[str, Member]
) -> Script[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Returns the mentions after the edit and the newly mentioned users: members who may see the message."""
    before = message.mentions
    if wanted.mentions is None:
        return before, ()
    if AT_ALL in wanted.mentions:
        if AT_ALL not in before:
            raise NexoError("no_permission", f"{AT_ALL} cannot be added to a message")
        return before, ()
    kept: list[str] = []
    added: list[str] = []
    for user_id in wanted.mentions:
        if user_id in before:
            kept.append(user_id)
            continue
        member = members.get(user_id)
        if member is None or member.status != MemberStatus.NORMAL:
            continue
        if not is_visible((yield from read_ranges(member, conversation)), message.seq):
            continue
        kept.append(user_id)
        if user_id != message.sender_id and AT_ALL not in before:
            added.append(user_id)
    return tuple(kept), tuple(added)


def _count_mentions(conversation: Conversation, event: Message, added: tuple[str, ...]) -> Script[None]:
    """Counts the added mentions at the event's seq."""
    if not added:
        return
    conv = conversation.id
    insert = "INSERT INTO mentions (conv,user_id,seq,sender_id) VALUES (?,?,?,?)"
    yield many(insert, [(conv, user_id, event.seq, event.sender_id) for user_id in added])
    yield many(
        "UPDATE members SET mention_unread=mention_unread+1 WHERE conv=? AND user_id=?",
        [(conv, user_id) for user_id in sorted(added)],
    )
