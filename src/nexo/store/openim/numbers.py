"""Reading messages by number. Every script asks the visibility gate first, as those in `store/history.py` do.

A number is at most its seq, and less by the events before it. So it is looked for in a few rows after its own number,
or by halving where a conversation has many events.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nexo.core.model import FIRST_EVENT, ConversationStatus, Message
from nexo.core.numbering import NumberedMessage, NumberedMessages, NumberHead
from nexo.core.unread import countable_sql, unread_sql, visible_countable, visible_countable_sql
from nexo.core.visibility import clip, last_activity_sql, visible_head_sql
from nexo.errors import NexoError
from nexo.ids import peer_in
from nexo.store import rows
from nexo.store.engine import Script
from nexo.store.engine import rows as query
from nexo.store.hiding import not_deleted_by
from nexo.store.history import ConversationView, cut, open_view
from nexo.store.reader_view import complete
from nexo.store.sql import Sql

EVENTS_SCANNED = 500  # with more of them, the place of a number is found by halving
HEADS_MAX = 2000
_MESSAGE = rows.columns(rows.MESSAGE)


def heads(sql: Sql, user_id: str, conversation_ids: Sequence[str] | None) -> Script[list[NumberHead]]:
    """Returns the conversations of a user in numbers, the newest first; all of them or the named ones."""
    where = ""
    params: tuple[Any, ...] = ()
    if conversation_ids is not None:
        chosen = sql.one_of("c.conversation_id", conversation_ids)
        where, params = f"AND {chosen.sql}", chosen.params
    head_seq, updated = visible_head_sql("m", "c"), last_activity_sql("m", "c")
    found = yield query(
        f"SELECT c.conversation_id,{visible_countable_sql('m', 'c')},x.countable_no,{unread_sql('m', 'c')},"
        f"{updated},{head_seq} FROM members m JOIN conversations c ON c.id=m.conv "
        f"LEFT JOIN messages x ON x.conv=m.conv AND x.seq={sql.greatest}(m.from_seq-1,m.cleared_seq) "
        f"WHERE m.user_id=? AND c.status<>{int(ConversationStatus.DELETED)} AND {head_seq}>0 {where} "
        f"ORDER BY {updated} DESC LIMIT {HEADS_MAX}",
        user_id,
        *params,
    )
    return [NumberHead(row[0], row[1], (row[2] or 0) + 1, row[3], row[4], row[5]) for row in found]


def _seqs_around(view: ConversationView, begin: int, end: int) -> Script[tuple[int, int]]:
    """Returns seqs between which all messages with these numbers are."""
    assert view.conversation is not None
    conversation = view.conversation
    events = conversation.head_seq - conversation.countable
    if events <= EVENTS_SCANNED:
        return begin, min(conversation.head_seq, end + events)
    low = yield from _first_seq(conversation.id, begin, begin, min(conversation.head_seq, begin + events))
    high = yield from _first_seq(conversation.id, end, end, min(conversation.head_seq, end + events))
    return low, high


def _first_seq(conv: int, number: int, low: int, high: int) -> Script[int]:
    """Returns the first seq in [low, high] with at least this number, by halving."""
    while low < high:
        middle = (low + high) // 2
        found = yield query("SELECT countable_no FROM messages WHERE conv=? AND seq=?", conv, middle)
        if found and found[0][0] < number:
            low = middle + 1
        else:
            high = middle
    return low


def pull(
    sql: Sql, user_id: str, conversation_id: str, begin: int, end: int, limit: int, max_bytes: int
) -> Script[NumberedMessages]:
    """Returns the last `limit` messages with numbers in [begin, end], ascending."""
    view = yield from open_view(user_id, conversation_id)
    if view.conversation is None or view.member is None:
        return NumberedMessages()
    head = visible_countable(view.member, view.conversation)
    begin, end = max(1, begin), min(end, head)
    if begin > end:
        return NumberedMessages(end_number=head)
    low, high = yield from _seqs_around(view, begin, end)
    kept = not_deleted_by(view.member)
    found: list[tuple[int, Message]] = []
    for first, last in reversed(clip(view.shown, low, high)):
        for row in (
            yield query(
                f"SELECT countable_no,{_MESSAGE} FROM messages WHERE conv=? AND seq>=? AND seq<=? "
                f"AND countable_no>=? AND countable_no<=? AND {countable_sql()} AND {kept.sql} "
                "ORDER BY seq DESC LIMIT ?",
                view.conversation.id,
                first,
                last,
                begin,
                end,
                *kept.params,
                limit + 1 - len(found),
            )
        ):
            found.append((row[0], rows.message(tuple(row)[1:], conversation_id)))
        if len(found) > limit:
            break
    given = yield from _finish(sql, user_id, view, found[:limit], max_bytes)
    return NumberedMessages(given[::-1], is_end=len(given) == len(found), end_number=head)


def pull_list(
    sql: Sql, user_id: str, conversation_id: str, numbers: Sequence[int], max_bytes: int
) -> Script[NumberedMessages]:
    """Returns the messages with these numbers, ascending, and which of them exist but are not shown."""
    view = yield from open_view(user_id, conversation_id)
    if view.conversation is None or view.member is None:
        return NumberedMessages()
    head = visible_countable(view.member, view.conversation)
    wanted = sorted({number for number in numbers if 1 <= number <= head})
    if not wanted:
        return NumberedMessages(end_number=head)
    low, high = yield from _seqs_around(view, wanted[0], wanted[-1])
    kept, chosen = not_deleted_by(view.member), sql.one_of("countable_no", wanted, "bigint")
    found: list[tuple[int, Message]] = []
    for first, last in clip(view.shown, low, high):
        for row in (
            yield query(
                f"SELECT countable_no,{_MESSAGE} FROM messages WHERE conv=? AND seq>=? AND seq<=? AND {chosen.sql} "
                f"AND {countable_sql()} AND {kept.sql} ORDER BY seq",
                view.conversation.id,
                first,
                last,
                *chosen.params,
                *kept.params,
            )
        ):
            found.append((row[0], rows.message(tuple(row)[1:], conversation_id)))
    given = yield from _finish(sql, user_id, view, found, max_bytes)
    shown = {number for number, _ in found}
    return NumberedMessages(given, [number for number in wanted if number not in shown], end_number=head)


def _finish(
    sql: Sql, user_id: str, view: ConversationView, found: list[tuple[int, Message]], max_bytes: int
) -> Script[list[NumberedMessage]]:
    """Complete messages for their reader, as many as fit, with whether each was read: by the peer, or by the user."""
    assert view.conversation is not None
    assert view.member is not None
    conversation_id, member = view.conversation.conversation_id, view.member
    messages = [message for _, message in found]
    yield from complete(sql, user_id, messages, {conversation_id: view.shown})
    peer_id, peer_read = peer_in(conversation_id, user_id), 0
    if peer_id is not None and any(message.sender_id == user_id for message in messages):
        read = yield query("SELECT read_seq FROM members WHERE conv=? AND user_id=?", member.conv, peer_id)
        peer_read = read[0][0] if read else 0
    count = len(cut(messages, max_bytes))
    return [
        NumberedMessage(
            number, message, message.seq <= (peer_read if message.sender_id == user_id else member.read_seq)
        )
        for number, message in found[:count]
    ]


def pull_events(
    sql: Sql, user_id: str, conversation_id: str, begin_seq: int, end_seq: int, limit: int
) -> Script[list[Message]]:
    """Returns the first events in a range of seqs, ascending."""
    view = yield from open_view(user_id, conversation_id)
    found: list[Message] = []
    if view.conversation is None:
        return found
    for first, last in clip(view.shown, max(1, begin_seq), end_seq):
        for row in (
            yield query(
                f"SELECT {_MESSAGE} FROM messages WHERE conv=? AND seq>=? AND seq<=? AND msg_type>={FIRST_EVENT} "
                "ORDER BY seq LIMIT ?",
                view.conversation.id,
                first,
                last,
                limit - len(found),
            )
        ):
            found.append(rows.message(tuple(row), conversation_id))
    yield from complete(sql, user_id, found, {conversation_id: view.shown})
    return found


def numbered(sql: Sql, server_msg_ids: Sequence[int]) -> Script[dict[int, tuple[int, Message]]]:
    """Returns messages by id with their numbers, for notifications that name them. Their content is not for readers:
    no gate is asked."""
    chosen = sql.one_of("m.server_msg_id", server_msg_ids, "bigint")
    found = yield query(
        f"SELECT m.countable_no,c.conversation_id,{rows.columns(rows.MESSAGE, 'm')} FROM messages m "
        f"JOIN conversations c ON c.id=m.conv WHERE {chosen.sql}",
        *chosen.params,
    )
    made = ((row[0], rows.message(tuple(row)[2:], row[1])) for row in found)
    return {message.server_msg_id: (number, message) for number, message in made}


def numbers_between(conversation_id: str, sender_id: str, after: int, seq: int, limit: int) -> Script[list[int]]:
    """Returns the numbers of a sender's last messages after a seq and up to another one, newest first."""
    found = yield query(
        "SELECT m.countable_no FROM messages m JOIN conversations c ON c.id=m.conv WHERE c.conversation_id=? "
        f"AND m.seq<=? AND m.seq>? AND m.sender_id=? AND {countable_sql('m')} ORDER BY m.seq DESC LIMIT ?",
        conversation_id,
        seq,
        max(after, seq - 4 * limit),
        sender_id,
        limit,
    )
    return [row[0] for row in found]


def number_at(conversation_id: str, seq: int) -> Script[int]:
    """Returns how many messages a conversation has up to a seq."""
    found = yield query(
        "SELECT m.countable_no FROM messages m JOIN conversations c ON c.id=m.conv "
        "WHERE c.conversation_id=? AND m.seq<=? ORDER BY m.seq DESC LIMIT 1",
        conversation_id,
        seq,
    )
    return found[0][0] if found else 0


def places(sql: Sql, user_id: str, conversation_id: str, numbers: Sequence[int]) -> Script[dict[int, tuple[int, int]]]:
    """Returns seq and id of the visible messages with these numbers."""
    view = yield from open_view(user_id, conversation_id)
    if view.conversation is None or view.member is None:
        raise NexoError("conversation_not_found")
    head = visible_countable(view.member, view.conversation)
    wanted = sorted({min(number, head) for number in numbers if number >= 1})
    found: dict[int, tuple[int, int]] = {}
    if not wanted:
        return found
    low, high = yield from _seqs_around(view, wanted[0], wanted[-1])
    chosen = sql.one_of("countable_no", wanted, "bigint")
    for first, last in clip(view.ranges, low, high):
        for number, seq, server_msg_id in (
            yield query(
                "SELECT countable_no,seq,server_msg_id FROM messages WHERE conv=? AND seq>=? AND seq<=? "
                f"AND {chosen.sql} AND {countable_sql()} ORDER BY seq",
                view.conversation.id,
                first,
                last,
                *chosen.params,
            )
        ):
            found[number] = (seq, server_msg_id)
    return found
