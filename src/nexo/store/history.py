"""Reading one conversation: by range, by list, backwards; and who has read a message.

Every script here asks the visibility gate (`open_view`) first and shows only what lies in its ranges.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from nexo.core.content import quote_text
from nexo.core.model import Conversation, Member, Message, MessageStatus, Page, Quote, Receipts
from nexo.core.visibility import Ranges, clip, is_visible
from nexo.errors import NexoError
from nexo.ids import group_of, peer_of, peers_of
from nexo.store import rows
from nexo.store.conversations import read_member, read_ranges
from nexo.store.engine import Script
from nexo.store.engine import rows as query
from nexo.store.sql import Sql

LIMIT_MAX = 200
RECEIPTS_LISTED = 200
_MESSAGE = rows.columns(rows.MESSAGE)
_MESSAGE_OVERHEAD_BYTES = 700  # ids, names and punctuation around the content in any dialect, at their longest


class View(NamedTuple):
    """What one user may see of one conversation. Without a member there is nothing to see."""

    conversation: Conversation | None
    member: Member | None
    ranges: Ranges

    @property
    def head_seq(self) -> int:
        return self.ranges[-1][1] if self.ranges else 0


def open_view(user_id: str, conversation_id: str) -> Script[View]:
    """The gate. Own single chats that nobody has written in yet are empty, not unknown."""
    if peers_of(conversation_id) is not None:
        if peer_of(conversation_id, user_id) is None:
            raise NexoError("conversation_not_found")
    elif group_of(conversation_id) is None:
        raise NexoError("bad_conversation_id", "A conversation_id is si_{user}:{user} or sg_{group}")
    conversation, member = yield from read_member(conversation_id, user_id)
    if conversation is None:
        if group_of(conversation_id) is not None:
            raise NexoError("group_not_found")
        return View(None, None, ())
    if member is None:
        raise NexoError("not_group_member")
    ranges = yield from read_ranges(member, conversation)
    return View(conversation, member, ranges)


def clamp_limit(limit: int | None, default: int = LIMIT_MAX) -> int:
    if limit is None:
        return default
    return limit if 0 < limit <= LIMIT_MAX else LIMIT_MAX


def size_of(message: Message) -> int:
    """Bytes it takes in a reply, rather more than fewer."""
    quoted = msgspec.json.encode(message.quote.text) if message.quote else b""
    named = sum(len(user_id) + 3 for user_id in message.mentions)
    return _MESSAGE_OVERHEAD_BYTES + _bytes(message.content) + _bytes(message.extra or "") + len(quoted) + named


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def cut(messages: list[Message], max_bytes: int) -> list[Message]:
    """As many as fit; always at least one, or a client could not go on."""
    total = 0
    for i, message in enumerate(messages):
        total += size_of(message)
        if total > max_bytes and i:
            return messages[:i]
    return messages


def pull(
    sql: Sql, user_id: str, conversation_id: str, begin_seq: int, end_seq: int | None, limit: int, max_bytes: int
) -> Script[Page]:
    """Ascending from `begin_seq`. What lies between spans is stepped over."""
    view = yield from open_view(user_id, conversation_id)
    begin_seq = max(1, begin_seq)
    end_seq = view.head_seq if end_seq is None else min(end_seq, view.head_seq)
    found: list[Message] = []
    parts = clip(view.ranges, begin_seq, end_seq)
    for low, high in parts:
        found += yield from _between(view, low, high, limit + 1 - len(found), "ASC")
        if len(found) > limit:
            break
    yield from attach_quotes(sql, found[:limit], {conversation_id: view.ranges})
    given = cut(found[:limit], max_bytes)
    has_more = len(given) < len(found)
    next_seq = given[-1].seq + 1 if has_more else max(begin_seq, end_seq + 1)
    return Page(given, view.head_seq, next_seq, has_more)


def history(
    sql: Sql, user_id: str, conversation_id: str, before_seq: int | None, limit: int, max_bytes: int
) -> Script[Page]:
    """Newest first, below `before_seq`."""
    view = yield from open_view(user_id, conversation_id)
    end_seq = view.head_seq if before_seq is None else min(before_seq - 1, view.head_seq)
    found: list[Message] = []
    for low, high in reversed(clip(view.ranges, 1, end_seq)):
        found += yield from _between(view, low, high, limit + 1 - len(found), "DESC")
        if len(found) > limit:
            break
    yield from attach_quotes(sql, found[:limit], {conversation_id: view.ranges})
    given = cut(found[:limit], max_bytes)
    lowest = given[-1].seq if given else max(1, end_seq + 1 if before_seq is None else before_seq)
    return Page(given, view.head_seq, lowest, len(given) < len(found))


def pull_seqs(sql: Sql, user_id: str, conversation_id: str, seqs: Sequence[int], max_bytes: int) -> Script[Page]:
    """Just these, ascending, as far as they exist and are visible."""
    view = yield from open_view(user_id, conversation_id)
    wanted = sorted({seq for seq in seqs if is_visible(view.ranges, seq)})[:LIMIT_MAX]
    found: list[Message] = []
    if wanted and view.conversation is not None:
        chosen = sql.one_of("seq", wanted, "bigint")
        found = [
            rows.message(row, conversation_id)
            for row in (
                yield query(
                    f"SELECT {_MESSAGE} FROM messages WHERE conv=? AND {chosen.sql} ORDER BY seq",
                    view.conversation.id,
                    *chosen.params,
                )
            )
        ]
    yield from attach_quotes(sql, found, {conversation_id: view.ranges})
    given = cut(found, max_bytes)
    return Page(given, view.head_seq, None, len(given) < len(found))


def _between(view: View, low: int, high: int, limit: int, order: str) -> Script[list[Message]]:
    assert view.conversation is not None
    found = yield query(
        f"SELECT {_MESSAGE} FROM messages WHERE conv=? AND seq>=? AND seq<=? ORDER BY seq {order} LIMIT ?",
        view.conversation.id,
        low,
        high,
        limit,
    )
    name = view.conversation.conversation_id
    return [rows.message(row, name) for row in found]


def attach_quotes(sql: Sql, messages: Iterable[Message], ranges: Mapping[str, Ranges]) -> Script[None]:
    """Build the quotes for this reader: none where the target is recalled or outside their ranges."""
    replies = [message for message in messages if message.reply_to is not None]
    if not replies:
        return
    chosen = sql.one_of("m.server_msg_id", sorted({message.reply_to for message in replies}), "bigint")
    found = yield query(
        "SELECT m.server_msg_id,c.conversation_id,m.seq,m.sender_id,m.msg_type,m.content FROM messages m "
        f"JOIN conversations c ON c.id=m.conv WHERE {chosen.sql} AND m.status=?",
        *chosen.params,
        int(MessageStatus.NORMAL),
    )
    targets: dict[int, Any] = {row[0]: row for row in found}
    for message in replies:
        assert message.reply_to is not None
        target = targets.get(message.reply_to)
        if target is None:
            continue
        _, name, seq, sender_id, msg_type, content = target
        if name == message.conversation_id and is_visible(ranges[name], seq):
            message.quote = Quote(message.reply_to, sender_id, msg_type, quote_text(msg_type, content))


class Found(NamedTuple):
    message: Message
    view: View


def find_message(user_id: str, server_msg_id: int) -> Script[Found]:
    """A message by its id, if this user may see it."""
    found = yield query(
        f"SELECT c.conversation_id,{rows.columns(rows.MESSAGE, 'm')} FROM messages m "
        "JOIN conversations c ON c.id=m.conv WHERE m.server_msg_id=?",
        server_msg_id,
    )
    if not found:
        raise NexoError("message_not_found")
    row = tuple(found[0])
    message = rows.message(row[1:], row[0])
    try:
        view = yield from open_view(user_id, message.conversation_id)
    except NexoError as error:
        raise NexoError("message_not_found") from error
    if not is_visible(view.ranges, message.seq):
        raise NexoError("message_not_found")
    return Found(message, view)


def locate(server_msg_id: int) -> Script[tuple[str, int, str] | None]:
    """Conversation, seq and sender of a message, for acknowledgements; the caller asks the gate."""
    found = yield query(
        "SELECT c.conversation_id,m.seq,m.sender_id FROM messages m JOIN conversations c ON c.id=m.conv "
        "WHERE m.server_msg_id=?",
        server_msg_id,
    )
    return (found[0][0], found[0][1], found[0][2]) if found else None


def last_by_author(conversation_id: str, low: int, high: int) -> Script[dict[str, tuple[int, int]]]:
    """Per author the last of their messages in (low, high]: seq and id. Only the newest hundreds count."""
    found = yield query(
        "SELECT m.sender_id,m.seq,m.server_msg_id FROM messages m JOIN conversations c ON c.id=m.conv "
        "WHERE c.conversation_id=? AND m.seq>? AND m.seq<=? AND m.msg_type<100 ORDER BY m.seq DESC LIMIT 500",
        conversation_id,
        low,
        high,
    )
    last: dict[str, tuple[int, int]] = {}
    for sender_id, seq, server_msg_id in found:
        last.setdefault(sender_id, (seq, server_msg_id))
    return last


def receipts(user_id: str, server_msg_id: int) -> Script[Receipts]:
    """Who has read a message and who has it, from the cursors of those in whose present span it lies.

    Somebody who left and came back has cursors that start after it: they say nothing about it.
    """
    message, view = yield from find_message(user_id, server_msg_id)
    assert view.conversation is not None
    concerned = "FROM members WHERE conv=? AND user_id<>? AND from_seq<=? AND (to_seq IS NULL OR to_seq>=?)"
    params = (view.conversation.id, message.sender_id, message.seq, message.seq)
    ((read_count, delivered_count),) = yield query(
        "SELECT COALESCE(SUM(CASE WHEN read_seq>=? THEN 1 ELSE 0 END),0),"
        f"COALESCE(SUM(CASE WHEN delivered_seq>=? THEN 1 ELSE 0 END),0) {concerned}",
        message.seq,
        message.seq,
        *params,
    )
    lists: list[list[str]] = []
    for condition, values in (
        ("read_seq>=?", (message.seq,)),
        ("delivered_seq>=? AND read_seq<?", (message.seq, message.seq)),
        ("delivered_seq<?", (message.seq,)),
    ):
        found = yield query(
            f"SELECT user_id {concerned} AND {condition} ORDER BY user_id LIMIT {RECEIPTS_LISTED}", *params, *values
        )
        lists.append([row[0] for row in found])
    read, delivered, pending = lists
    return Receipts(read, delivered, pending, int(read_count), int(delivered_count))
