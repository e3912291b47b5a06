"""Pinned messages of a conversation: a row for each message that was ever pinned, with the event of its last change."""

from __future__ import annotations

from typing import NamedTuple

from nexo.core import policy
from nexo.core.model import Message, MessageStatus, MsgType
from nexo.core.visibility import is_visible
from nexo.errors import NexoError
from nexo.ports import MessageEvent, PinResult
from nexo.store import rows
from nexo.store.conversations import append_quiet, lock_conversation, lock_member, read_ranges
from nexo.store.engine import NOW, Script, do
from nexo.store.engine import rows as query
from nexo.store.expiry import hide_expired
from nexo.store.hiding import not_deleted_by
from nexo.store.history import ConversationView, find_message, open_view
from nexo.store.sql import Sql

PINS_MAX = 50


class PinsFound(NamedTuple):
    messages: list[Message]
    view: ConversationView


def pin(sql: Sql, user_id: str, server_msg_id: int, on: bool, event_id: int, retention_ms: int) -> Script[PinResult]:
    """Pins or unpins a message. Repeated: the same answer, and no other event."""
    message, _ = yield from find_message(user_id, server_msg_id)
    name = message.conversation_id
    conversation = yield from lock_conversation(sql, name)
    assert conversation is not None
    member = yield from lock_member(sql, conversation.id, user_id)
    ranges = yield from read_ranges(member, conversation)
    ((*row,),) = yield query(f"SELECT {rows.columns(rows.MESSAGE)} FROM messages WHERE server_msg_id=?", server_msg_id)
    message = rows.message(row, name)
    yield from hide_expired([message], retention_ms)
    if member is None or not is_visible(ranges, message.seq):
        raise NexoError("message_not_found")
    policy.check_may_touch(conversation, member)
    policy.check_may_pin(conversation, member)
    if message.is_event or message.status != MessageStatus.NORMAL:
        raise NexoError("message_not_found", "There is nothing to pin")
    found = yield query(
        "SELECT is_on,event_seq FROM pins WHERE conv=? AND server_msg_id=?", conversation.id, server_msg_id
    )
    was_on, event_seq = (bool(found[0][0]), found[0][1]) if found else (False, message.seq)
    if was_on is on:
        published = None
        event = yield query(f"SELECT {rows.columns(rows.MESSAGE)} FROM messages WHERE server_msg_id=?", event_id)
        if event:  # by an earlier run of this script, whose commit had no answer
            published = MessageEvent(rows.message(event[0], name), conversation.member_epoch)
        return PinResult(server_msg_id, name, event_seq, published)
    if on:
        ((count,),) = yield query("SELECT COUNT(*) FROM pins WHERE conv=? AND is_on=1", conversation.id)
        if count >= PINS_MAX:
            raise NexoError("too_many_pins", f"A conversation has at most {PINS_MAX} pinned messages")
    now_ms = yield NOW
    content = {"server_msg_id": str(server_msg_id), "seq": message.seq, "on": on, "by": user_id}
    made = yield from append_quiet(conversation, event_id, MsgType.PINNED, content, user_id, now_ms)
    if found:
        yield do(
            "UPDATE pins SET is_on=?,event_seq=?,at=? WHERE conv=? AND server_msg_id=?",
            int(on),
            made.seq,
            now_ms,
            conversation.id,
            server_msg_id,
        )
    else:
        yield do(
            "INSERT INTO pins (conv,server_msg_id,is_on,event_seq,at) VALUES (?,?,?,?,?)",
            conversation.id,
            server_msg_id,
            int(on),
            made.seq,
            now_ms,
        )
    return PinResult(server_msg_id, name, made.seq, MessageEvent(made, conversation.member_epoch))


def forget_pin(conv: int, server_msg_id: int) -> Script[None]:
    """Deletes the pin of a message that is gone; its conversation is locked."""
    yield do("DELETE FROM pins WHERE conv=? AND server_msg_id=?", conv, server_msg_id)


def find_pins(user_id: str, conversation_id: str, retention_ms: int) -> Script[PinsFound]:
    """Returns the pinned messages that the user may see, the last pinned first; of a group that they have left, those
    that were pinned before."""
    view = yield from open_view(user_id, conversation_id)
    if view.conversation is None:
        return PinsFound([], view)
    kept = not_deleted_by(view.member, "m.seq")
    found = yield query(
        f"SELECT p.event_seq,{rows.columns(rows.MESSAGE, 'm')} FROM pins p "
        "JOIN messages m ON m.server_msg_id=p.server_msg_id "
        f"WHERE p.conv=? AND p.is_on=1 AND m.status=? AND {kept.sql} ORDER BY p.event_seq DESC",
        view.conversation.id,
        int(MessageStatus.NORMAL),
        *kept.params,
    )
    has_left = view.member is not None and view.member.to_seq is not None
    messages: list[Message] = []
    for event_seq, *row in found:
        message = rows.message(row, conversation_id)
        if is_visible(view.shown, message.seq) and (not has_left or is_visible(view.ranges, event_seq)):
            messages.append(message)
    yield from hide_expired(messages, retention_ms)
    return PinsFound([message for message in messages if message.status == MessageStatus.NORMAL], view)
