"""Reading one conversation: by range, by list, backwards; and who has read a message.

Every script here asks the visibility gate (`open_view`) first and shows only what lies in its ranges, completed for the
reader (`reader_view.complete`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from nexo.core.model import Conversation, Member, MemberStatus, Message, Page, Receipts
from nexo.core.unread import countable_sql
from nexo.core.visibility import Ranges, clip, is_visible, shown_ranges
from nexo.errors import NexoError
from nexo.ids import group_of, peer_of, peers_of
from nexo.store import rows
from nexo.store.conversations import read_member, read_ranges
from nexo.store.engine import Script
from nexo.store.engine import rows as query
from nexo.store.hiding import not_deleted_by
from nexo.store.reader_view import complete
from nexo.store.sql import Sql

LIMIT_MAX = 200
RECEIPTS_LISTED = 200
_MESSAGE = rows.columns(rows.MESSAGE)
_MESSAGE_OVERHEAD_BYTES = 700  # ids, names and punctuation around the content in any dialect, at their longest
_REACTION_BYTES = 80


class ConversationView(NamedTuple):
    """What one user may see of one conversation. Without a member there is nothing to see. Content is shown only in
    `shown`, and of messages for which `hiding.not_deleted_by` holds."""

    conversation: Conversation | None
    member: Member | None
    ranges: Ranges

    @property
    def head_seq(self) -> int:
        return self.ranges[-1][1] if self.ranges else 0

    @property
    def shown(self) -> Ranges:
        """The visible ranges without what the user has cleared."""
        return shown_ranges(self.ranges, self.member.cleared_seq) if self.member is not None else self.ranges


def open_view(user_id: str, conversation_id: str) -> Script[ConversationView]:
    """Returns what the user may see: every read begins here. A single chat of their own without messages is empty, not
    unknown."""
    if peers_of(conversation_id) is not None:
        if peer_of(conversation_id, user_id) is None:
            raise NexoError("conversation_not_found")
    elif group_of(conversation_id) is None:
        raise NexoError("bad_conversation_id", "A conversation_id is si_{user}:{user} or sg_{group}")
    conversation, member = yield from read_member(conversation_id, user_id)
    if conversation is None:
        if group_of(conversation_id) is not None:
            raise NexoError("group_not_found")
        return ConversationView(None, None, ())
    if member is None:
        raise NexoError("not_group_member")
    ranges = yield from read_ranges(member, conversation)
    return ConversationView(conversation, member, ranges)


def clamp_limit(limit: int | None, default: int = LIMIT_MAX) -> int:
    if limit is None:
        return default
    return limit if 0 < limit <= LIMIT_MAX else LIMIT_MAX


def size_of(message: Message) -> int:
    """Returns an upper estimate of its bytes in a reply."""
    quoted = msgspec.json.encode(message.quote.text) if message.quote else b""
    named = sum(len(user_id) + 3 for user_id in message.mentions)
    named += len(message.reactions or ()) * _REACTION_BYTES
    return _MESSAGE_OVERHEAD_BYTES + _bytes(message.content) + _bytes(message.extra or "") + len(quoted) + named


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def cut(messages: list[Message], max_bytes: int) -> list[Message]:
    """Returns as many as fit; at least one, so that a client can continue."""
    total = 0
    for i, message in enumerate(messages):
        total += size_of(message)
        if total > max_bytes and i:
            return messages[:i]
    return messages


def pull(
    sql: Sql, user_id: str, conversation_id: str, begin_seq: int, end_seq: int | None, limit: int, max_bytes: int
) -> Script[Page]:
    """Returns messages ascending from `begin_seq`, without those between spans and those that the user has deleted."""
    view = yield from open_view(user_id, conversation_id)
    begin_seq = max(1, begin_seq)
    end_seq = view.head_seq if end_seq is None else min(end_seq, view.head_seq)
    found: list[Message] = []
    parts = clip(view.shown, begin_seq, end_seq)
    for low, high in parts:
        found += yield from _between(view, low, high, limit + 1 - len(found), "ASC")
        if len(found) > limit:
            break
    yield from complete(sql, user_id, found[:limit], {conversation_id: view.shown})
    given = cut(found[:limit], max_bytes)
    has_more = len(given) < len(found)
    next_seq = given[-1].seq + 1 if has_more else max(begin_seq, end_seq + 1)
    return Page(given, view.head_seq, next_seq, has_more)


def history(
    sql: Sql, user_id: str, conversation_id: str, before_seq: int | None, limit: int, max_bytes: int
) -> Script[Page]:
    """Returns messages below `before_seq`, newest first."""
    view = yield from open_view(user_id, conversation_id)
    end_seq = view.head_seq if before_seq is None else min(before_seq - 1, view.head_seq)
    found: list[Message] = []
    for low, high in reversed(clip(view.shown, 1, end_seq)):
        found += yield from _between(view, low, high, limit + 1 - len(found), "DESC")
        if len(found) > limit:
            break
    yield from complete(sql, user_id, found[:limit], {conversation_id: view.shown})
    given = cut(found[:limit], max_bytes)
    lowest = given[-1].seq if given else max(1, end_seq + 1 if before_seq is None else before_seq)
    return Page(given, view.head_seq, lowest, len(given) < len(found))


def pull_seqs(sql: Sql, user_id: str, conversation_id: str, seqs: Sequence[int], max_bytes: int) -> Script[Page]:
    """Returns these messages, ascending, as far as they exist and are visible."""
    view = yield from open_view(user_id, conversation_id)
    shown = view.shown
    wanted = sorted({seq for seq in seqs if is_visible(shown, seq)})[:LIMIT_MAX]
    found: list[Message] = []
    if wanted and view.conversation is not None:
        chosen = sql.one_of("seq", wanted, "bigint")
        kept = not_deleted_by(view.member)
        found = [
            rows.message(row, conversation_id)
            for row in (
                yield query(
                    f"SELECT {_MESSAGE} FROM messages WHERE conv=? AND {chosen.sql} AND {kept.sql} ORDER BY seq",
                    view.conversation.id,
                    *chosen.params,
                    *kept.params,
                )
            )
        ]
    yield from complete(sql, user_id, found, {conversation_id: view.shown})
    given = cut(found, max_bytes)
    return Page(given, view.head_seq, None, len(given) < len(found))


def _between(view: ConversationView, low: int, high: int, limit: int, order: str) -> Script[list[Message]]:
    assert view.conversation is not None
    kept = not_deleted_by(view.member)
    found = yield query(
        f"SELECT {_MESSAGE} FROM messages WHERE conv=? AND seq>=? AND seq<=? AND {kept.sql} "
        f"ORDER BY seq {order} LIMIT ?",
        view.conversation.id,
        low,
        high,
        *kept.params,
        limit,
    )
    name = view.conversation.conversation_id
    return [rows.message(row, name) for row in found]


class Found(NamedTuple):
    message: Message
    view: ConversationView


def find_message(user_id: str, server_msg_id: int, *, deleted_too: bool = False) -> Script[Found]:
    """Returns a message by its id; raises unless this user may see it, and has not deleted it (`deleted_too`: or
    has)."""
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
    if not is_visible(view.ranges if deleted_too else view.shown, message.seq):
        raise NexoError("message_not_found")
    if not deleted_too and view.member is not None and view.member.deleted_count:
        deleted = yield query(
            "SELECT 1 FROM message_deletions WHERE conv=? AND user_id=? AND seq=?",
            view.member.conv,
            user_id,
            message.seq,
        )
        if deleted:
            raise NexoError("message_not_found")
    return Found(message, view)


def locate(server_msg_id: int) -> Script[tuple[str, int, str] | None]:
    """Returns conversation, seq and sender of a message, for acknowledgements. The caller checks the visibility."""
    found = yield query(
        "SELECT c.conversation_id,m.seq,m.sender_id FROM messages m JOIN conversations c ON c.id=m.conv "
        "WHERE m.server_msg_id=?",
        server_msg_id,
    )
    return (found[0][0], found[0][1], found[0][2]) if found else None


def last_by_author(conversation_id: str, low: int, high: int) -> Script[dict[str, tuple[int, int]]]:
    """Returns seq and id of each author's last message in (low, high], of the newest 500 messages."""
    found = yield query(
        "SELECT m.sender_id,m.seq,m.server_msg_id FROM messages m JOIN conversations c ON c.id=m.conv "
        f"WHERE c.conversation_id=? AND m.seq>? AND m.seq<=? AND {countable_sql('m')} ORDER BY m.seq DESC LIMIT 500",
        conversation_id,
        low,
        high,
    )
    last: dict[str, tuple[int, int]] = {}
    for sender_id, seq, server_msg_id in found:
        last.setdefault(sender_id, (seq, server_msg_id))
    return last


def receipts(user_id: str, server_msg_id: int) -> Script[Receipts]:
    """Returns which members have read and received a message, by their cursors.

    Only members whose current span contains it count: after leaving and joining again, cursors start above it.
    """
    message, view = yield from find_message(user_id, server_msg_id)
    assert view.conversation is not None
    if view.member is not None and view.member.status != MemberStatus.NORMAL:
        raise NexoError("member_not_active")  # cursors move on: what members read later is not for former ones
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


def is_saved(sender_id: str, client_msg_id: str) -> Script[bool]:
    return bool((yield query("SELECT 1 FROM messages WHERE sender_id=? AND client_msg_id=?", sender_id, client_msg_id)))
