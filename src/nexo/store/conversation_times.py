"""Times of a conversation: how long its messages are shown, and the place of a date in it."""

from __future__ import annotations

from nexo.core import policy
from nexo.core.model import Kind, MsgType
from nexo.errors import NexoError
from nexo.ports import GroupChange
from nexo.store import rows
from nexo.store.conversations import append_event, lock_conversation, lock_member, save_conversation
from nexo.store.engine import NOW, Script, do, proof
from nexo.store.engine import rows as query
from nexo.store.history import open_view
from nexo.store.sql import Sql


def set_ttl(sql: Sql, user_id: str, conversation_id: str, ttl_s: int, event_id: int) -> Script[GroupChange]:
    """Sets the time for messages that are sent from now on, and appends event 107, so that all members learn of it."""
    view = yield from open_view(user_id, conversation_id)
    if view.conversation is None:
        raise NexoError("conversation_not_found")
    conversation = yield from lock_conversation(sql, conversation_id)
    assert conversation is not None
    if (yield proof("SELECT 1 FROM messages WHERE server_msg_id=?", event_id)):
        ((*row,),) = yield query(f"SELECT {rows.columns(rows.MESSAGE)} FROM messages WHERE server_msg_id=?", event_id)
        return GroupChange(rows.message(row, conversation_id), [], [], conversation.member_epoch)
    member = yield from lock_member(sql, conversation.id, user_id)
    assert member is not None
    if conversation.kind == Kind.GROUP:
        policy.check_open(conversation)
        policy.check_manager(policy.check_active(member))
    elif member.blocked:
        raise NexoError("blocked")
    if conversation.message_ttl_s == ttl_s:
        return GroupChange(None, [], [], conversation.member_epoch)
    content = {"changes": {"message_ttl_s": ttl_s}, "by": user_id}
    event = yield from append_event(conversation, event_id, MsgType.GROUP_UPDATED, content, user_id, (yield NOW))
    yield from save_conversation(conversation)
    yield do("UPDATE conversations SET message_ttl_s=? WHERE id=?", ttl_s, conversation.id)
    return GroupChange(event, [], [], conversation.member_epoch)


def seq_at(user_id: str, conversation_id: str, time_ms: int) -> Script[int | None]:
    """Returns the first seq at or after a time that is shown to the user; None if there is none. Times ascend with
    seqs, so few rows are read."""
    view = yield from open_view(user_id, conversation_id)
    for low, high in view.shown:
        assert view.conversation is not None
        if (yield from _send_at(view.conversation.id, high)) < time_ms:
            continue
        while low < high:
            middle = (low + high) // 2
            if (yield from _send_at(view.conversation.id, middle)) < time_ms:
                low = middle + 1
            else:
                high = middle
        return low
    return None


def _send_at(conv: int, seq: int) -> Script[int]:
    ((send_at,),) = yield query("SELECT send_at FROM messages WHERE conv=? AND seq=?", conv, seq)
    return int(send_at)
