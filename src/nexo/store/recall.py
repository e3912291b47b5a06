"""Recalling a message: the row stays, everything it said goes, and an event tells those who have it."""

from __future__ import annotations

from typing import NamedTuple

from nexo.core import policy
from nexo.core.content import blank_content
from nexo.core.model import Kind, MemberStatus, Message, MessageStatus, MsgType
from nexo.core.visibility import is_visible
from nexo.errors import NexoError
from nexo.store import rows
from nexo.store.conversations import append_event, lock_conversation, lock_member, read_ranges, save_conversation
from nexo.store.engine import NOW, Script, do, proof
from nexo.store.engine import rows as query
from nexo.store.sql import Sql


class Recalled(NamedTuple):
    server_msg_id: int
    conversation_id: str
    seq: int  # of the event
    event: Message | None  # None when it was recalled before
    member_epoch: int = 0


def recall(
    sql: Sql, user_id: str, server_msg_id: int, event_id: int, window_s: int, admin_recall: bool
) -> Script[Recalled]:
    found = yield query(
        "SELECT c.conversation_id FROM messages m JOIN conversations c ON c.id=m.conv WHERE m.server_msg_id=?",
        server_msg_id,
    )
    if not found:
        raise NexoError("message_not_found")
    name = found[0][0]
    conversation = yield from lock_conversation(sql, name)
    assert conversation is not None
    member = yield from lock_member(sql, conversation.id, user_id)
    ((*row, recall_seq),) = yield query(
        f"SELECT {rows.columns(rows.MESSAGE)},recall_seq FROM messages WHERE server_msg_id=?", server_msg_id
    )
    message = rows.message(row, name)
    ranges = yield from read_ranges(member, conversation)
    if member is None or not is_visible(ranges, message.seq):
        raise NexoError("message_not_found")
    if conversation.kind == Kind.GROUP:
        policy.check_open(conversation)
        if member.status != MemberStatus.NORMAL:
            raise NexoError("member_not_active")
    now_ms = yield NOW
    if message.status == MessageStatus.RECALLED:
        # answered as before, also after the window has closed; still not to everybody
        policy.check_may_recall(message, member, conversation.kind, message.send_at, window_s, admin_recall)
        event = None
        if (yield proof("SELECT 1 FROM messages WHERE server_msg_id=?", event_id)):  # by us, just now
            ((*row,),) = yield query(
                f"SELECT {rows.columns(rows.MESSAGE)} FROM messages WHERE server_msg_id=?", event_id
            )
            event = rows.message(row, name)
        return Recalled(server_msg_id, name, recall_seq, event, conversation.member_epoch)
    policy.check_may_recall(message, member, conversation.kind, now_ms, window_s, admin_recall)
    content = {"server_msg_id": str(server_msg_id), "seq": message.seq, "by": user_id}
    event = yield from append_event(conversation, event_id, MsgType.RECALLED, content, user_id, now_ms)
    yield from save_conversation(conversation)
    yield do(
        "UPDATE messages SET status=?,recalled_at=?,recall_seq=?,content=?,extra=NULL,mentions=NULL,reply_to=NULL "
        "WHERE server_msg_id=?",
        int(MessageStatus.RECALLED),
        event.send_at,
        event.seq,
        blank_content(message.msg_type),
        server_msg_id,
    )
    return Recalled(server_msg_id, name, event.seq, event, conversation.member_epoch)
