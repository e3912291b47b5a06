"""Recalls a message: the row stays without its content, and an event notifies the members."""

from __future__ import annotations

from typing import NamedTuple

from nexo.core import policy
from nexo.core.content import blank_content
from nexo.core.files import FILE_TYPES
from nexo.core.model import Conversation, Kind, MemberStatus, Message, MessageStatus, MsgType
from nexo.core.moderation import VersionCause
from nexo.core.visibility import is_visible
from nexo.errors import NexoError
from nexo.ports import RecallResult
from nexo.store import message_versions, rows
from nexo.store.conversations import append_event, lock_conversation, lock_member, read_ranges, save_conversation
from nexo.store.engine import NOW, Script, do, proof
from nexo.store.engine import rows as query
from nexo.store.expiry import is_over
from nexo.store.files.uses import end as end_uses
from nexo.store.pins import forget_pin
from nexo.store.reactions import forget_reactions
from nexo.store.sql import Sql

_BLANK = ",".join(f"{name}=NULL" for name in rows.BLANKED)


class LockedMessage(NamedTuple):
    """A message whose conversation is locked, so that nothing else recalls or edits it."""

    conversation: Conversation
    message: Message
    recall_seq: int | None


def lock_message(sql: Sql, server_msg_id: int) -> Script[LockedMessage]:
    found = yield query(
        "SELECT c.conversation_id FROM messages m JOIN conversations c ON c.id=m.conv WHERE m.server_msg_id=?",
        server_msg_id,
    )
    if not found:
        raise NexoError("message_not_found")
    name = found[0][0]
    conversation = yield from lock_conversation(sql, name)
    assert conversation is not None
    ((*row, recall_seq),) = yield query(
        f"SELECT {rows.columns(rows.MESSAGE)},recall_seq FROM messages WHERE server_msg_id=?", server_msg_id
    )
    return LockedMessage(conversation, rows.message(row, name), recall_seq)


def check_not_expired(message: Message, now_ms: int) -> None:
    if message.status == MessageStatus.EXPIRED or is_over(message, now_ms):
        raise NexoError("message_not_found", "The message has expired")


def recall(
    sql: Sql, user_id: str, server_msg_id: int, event_id: int, window_s: int, admin_recall: bool, keep: bool
) -> Script[RecallResult]:
    """Recalls a message by a member of its conversation. With `keep` its original stays for moderators."""
    found = yield from lock_message(sql, server_msg_id)
    conversation, message, _ = found
    member = yield from lock_member(sql, conversation.id, user_id)
    ranges = yield from read_ranges(member, conversation)
    if member is None or not is_visible(ranges, message.seq):
        raise NexoError("message_not_found")
    if conversation.kind == Kind.GROUP:
        policy.check_open(conversation)
        if member.status != MemberStatus.NORMAL:
            raise NexoError("member_not_active")
    now_ms = yield NOW
    check_not_expired(message, now_ms)
    if message.status == MessageStatus.RECALLED:
        # answered as before, also after the window has closed; permission is still checked
        policy.check_may_recall(message, member, conversation.kind, message.send_at, window_s, admin_recall)
        return (yield from recalled_before(found, event_id))
    policy.check_may_recall(message, member, conversation.kind, now_ms, window_s, admin_recall)
    return (yield from blank(found, event_id, user_id, user_id, now_ms, keep))


def recalled_before(found: LockedMessage, event_id: int) -> Script[RecallResult]:
    """Returns the answer for a message that is recalled, with its event if an earlier run of this script did it."""
    conversation, message, recall_seq = found
    event = None
    if (yield proof("SELECT 1 FROM messages WHERE server_msg_id=?", event_id)):
        ((*row,),) = yield query(f"SELECT {rows.columns(rows.MESSAGE)} FROM messages WHERE server_msg_id=?", event_id)
        event = rows.message(row, message.conversation_id)
    assert recall_seq is not None
    return RecallResult(message.server_msg_id, message.conversation_id, recall_seq, event, conversation.member_epoch)


def blank(found: LockedMessage, event_id: int, by: str, actor: str, now_ms: int, keep: bool) -> Script[RecallResult]:
    """Appends the event, which names `by`, and removes the content. With `keep` the original is kept, with `actor` as
    the one who replaced it."""
    conversation, message, _ = found
    content = {"server_msg_id": str(message.server_msg_id), "seq": message.seq, "by": by}
    event = yield from append_event(conversation, event_id, MsgType.RECALLED, content, by, now_ms)
    yield from save_conversation(conversation)
    if keep:
        yield from message_versions.keep(message, now_ms, actor, VersionCause.RECALL)
    else:
        yield from message_versions.forget(message.server_msg_id)
    if message.msg_type in FILE_TYPES:
        yield from end_uses(message.server_msg_id, now_ms)
    yield do(
        f"UPDATE messages SET status=?,recalled_at=?,recall_seq=?,content=?,{_BLANK} WHERE server_msg_id=?",
        int(MessageStatus.RECALLED),
        event.send_at,
        event.seq,
        blank_content(message.msg_type),
        message.server_msg_id,
    )
    yield from forget_reactions(message.server_msg_id)
    yield from forget_pin(conversation.id, message.server_msg_id)
    return RecallResult(message.server_msg_id, message.conversation_id, event.seq, event, conversation.member_epoch)
