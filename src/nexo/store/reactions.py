"""Reactions to messages: the events that announce them, at most one a second per message, and who gave them.

A reaction marks its change in its own transaction (`reaction_batch.py`). Any instance turns the marks of a message
into an event 111, so a crash loses none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from nexo.core import message_events
from nexo.core.emoji import check_emoji
from nexo.core.message_events import CHANGES_SHOWN_MAX
from nexo.core.model import Conversation, Message, MessageStatus, MsgType
from nexo.ids import check_user_id
from nexo.ports import GivenReaction, MessageEvent, ReactionsWritten
from nexo.store import rows
from nexo.store.conversations import append_quiet, lock_conversation
from nexo.store.engine import NOW, Script, do
from nexo.store.engine import rows as query
from nexo.store.history import find_message
from nexo.store.paging import decode_cursor, encode_cursor
from nexo.store.sql import Sql

EVENT_EVERY_MS = 1000
_TABLES = ("reactions", "reaction_counts", "reaction_marks", "reaction_changes")

_encode = msgspec.json.Encoder().encode


class ReactionsPage(NamedTuple):
    reactions: list[GivenReaction]
    next_cursor: str
    has_more: bool


def forget_reactions(server_msg_id: int) -> Script[None]:
    """Deletes all about the reactions of a message whose row is locked."""
    for table in _TABLES:
        yield do(f"DELETE FROM {table} WHERE server_msg_id=?", server_msg_id)


# -- events ------------------------------------------------------------------------------------------------


def find_marked(older_ms: int, limit: int) -> Script[list[int]]:
    """Returns messages with changes that no event has announced for so long."""
    now_ms = yield NOW
    found = yield query(
        f"SELECT DISTINCT server_msg_id FROM reaction_marks WHERE at<=? LIMIT {int(limit)}", now_ms - older_ms
    )
    return [row[0] for row in found]


def write_event(sql: Sql, server_msg_id: int, event_id: int) -> Script[ReactionsWritten]:
    """Appends the event of all marked changes of a message, unless the last one is younger than a second."""
    found = yield query(
        "SELECT c.conversation_id FROM messages m JOIN conversations c ON c.id=m.conv WHERE m.server_msg_id=?",
        server_msg_id,
    )
    if not found:
        yield do("DELETE FROM reaction_marks WHERE server_msg_id=?", server_msg_id)
        return ReactionsWritten(None)
    name = found[0][0]
    conversation = yield from lock_conversation(sql, name)
    assert conversation is not None
    written = yield query(f"SELECT {rows.columns(rows.MESSAGE)} FROM messages WHERE server_msg_id=?", event_id)
    if written:  # by an earlier run of this script, whose commit had no answer
        return (yield from _written_before(rows.message(written[0], name), server_msg_id, conversation))
    ((*row,),) = yield query(
        f"SELECT {rows.columns(rows.MESSAGE)} FROM messages WHERE server_msg_id=?{sql.for_update}", server_msg_id
    )
    message = rows.message(row, name)
    marks = yield query(
        f"SELECT user_id,emoji,is_on FROM reaction_marks WHERE server_msg_id=? LIMIT {CHANGES_SHOWN_MAX + 1}",
        server_msg_id,
    )
    if not marks:
        return ReactionsWritten(None)
    now_ms = yield NOW
    ((last_at,),) = yield query("SELECT MAX(at) FROM reaction_changes WHERE server_msg_id=?", server_msg_id)
    if last_at is not None and now_ms - last_at < EVENT_EVERY_MS:
        return ReactionsWritten(None, max(1, EVENT_EVERY_MS - (now_ms - last_at)))
    content = {"server_msg_id": str(server_msg_id), "seq": message.seq}
    event = yield from append_quiet(conversation, event_id, MsgType.REACTIONS, content, message.sender_id, now_ms)
    counts = yield from _counts(server_msg_id)
    added = removed = None
    if len(marks) <= CHANGES_SHOWN_MAX:
        added, removed = (
            _encode(
                [{"emoji": emoji, "user_id": user_id} for user_id, emoji, is_on in marks if bool(is_on) is on]
            ).decode()
            for on in (True, False)
        )
    yield do(
        "INSERT INTO reaction_changes (server_msg_id,seq,at,reactions,added,removed) VALUES (?,?,?,?,?,?)",
        server_msg_id,
        event.seq,
        now_ms,
        counts,
        added,
        removed,
    )
    yield do("DELETE FROM reaction_marks WHERE server_msg_id=?", server_msg_id)
    message_events.add_reactions(event, counts, added, removed)
    return ReactionsWritten(MessageEvent(event, conversation.member_epoch))


def _counts(server_msg_id: int) -> Script[str]:
    found = yield query(
        "SELECT emoji,counted FROM reaction_counts WHERE server_msg_id=? ORDER BY since,emoji", server_msg_id
    )
    return _encode([{"emoji": emoji, "count": counted} for emoji, counted in found]).decode()


def _written_before(event: Message, server_msg_id: int, conversation: Conversation) -> Script[ReactionsWritten]:
    found = yield query(
        "SELECT reactions,added,removed FROM reaction_changes WHERE server_msg_id=? AND seq=?", server_msg_id, event.seq
    )
    if found:  # none: the message was recalled meanwhile
        message_events.add_reactions(event, *found[0])
    return ReactionsWritten(MessageEvent(event, conversation.member_epoch))


# -- reading -----------------------------------------------------------------------------------------------


def given(user_id: str, server_msg_id: int, cursor: str | None, limit: int) -> Script[ReactionsPage]:
    """Returns the users that reacted to a message, by their ids. A member that has left gets the reactions up to
    then."""
    message, view = yield from find_message(user_id, server_msg_id)
    where = ""
    params: list[Any] = [server_msg_id]
    if view.member is not None and view.member.to_seq is not None:
        ((left_at,),) = yield query(
            "SELECT left_at FROM members WHERE conv=? AND user_id=?", view.member.conv, view.member.user_id
        )
        where += " AND at<=?"
        params.append(left_at)
    if cursor:
        last_user, last_emoji = decode_cursor(cursor, tuple[str, str])
        check_user_id(last_user, "cursor")
        check_emoji(last_emoji)
        where += " AND (user_id>? OR (user_id=? AND emoji>?))"
        params += [last_user, last_user, last_emoji]
    if message.status != MessageStatus.NORMAL:
        return ReactionsPage([], "", False)
    found = yield query(
        f"SELECT emoji,user_id,at FROM reactions WHERE server_msg_id=?{where} ORDER BY user_id,emoji LIMIT ?",
        *params,
        limit + 1,
    )
    page = [GivenReaction(*row) for row in found[:limit]]
    has_more = len(found) > limit
    return ReactionsPage(page, encode_cursor((page[-1].user_id, page[-1].emoji)) if has_more else "", has_more)
