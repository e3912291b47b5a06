"""Reading across a user's conversations: the list, SYNC, newest seqs, and what was not delivered yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import merge
from typing import Any, NamedTuple

from nexo.core.model import ConversationEntry, ConversationStatus, Head, Kind, Message, OfflinePage
from nexo.core.visibility import Ranges
from nexo.ids import group_of
from nexo.ports import ActiveSince
from nexo.store import rows
from nexo.store.engine import NOW, Script
from nexo.store.engine import rows as query
from nexo.store.history import attach_quotes, cut
from nexo.store.paging import Number, decode_cursor, encode_cursor
from nexo.store.sql import Sql

# What a member may see of a conversation's counters: frozen once their span is closed.
_HEAD = "COALESCE(m.to_seq,c.head_seq)"
_UPDATED = "COALESCE(m.left_at,c.last_send_at)"
_UNREAD = "(COALESCE(m.to_countable,c.countable)-m.read_countable-m.own_above)"
_MENTIONS = "(m.mention_unread+COALESCE(m.to_at_all,c.at_all_count)-m.at_all_base)"
_MINE = (
    "FROM members m JOIN conversations c ON c.id=m.conv "
    f"WHERE m.user_id=? AND c.status<>{int(ConversationStatus.DELETED)} AND {_HEAD}>0"
)
_SYNC = f"c.conversation_id,{_HEAD},m.from_seq,m.read_seq,m.delivered_seq,{_UNREAD}"

ACTIVE_MS = 15_000
UNDELIVERED_MAX = 2000  # conversations looked at in one pass over what was not delivered


class HeadsPage(NamedTuple):
    heads: list[Head]
    next_cursor: str
    has_more: bool


class EntriesPage(NamedTuple):
    entries: list[ConversationEntry]
    next_cursor: str
    has_more: bool


def sync(user_id: str, cursor: str | None, limit: int) -> Script[HeadsPage]:
    """All conversations, newest activity first."""
    where = ""
    params: tuple[Any, ...] = ()
    if cursor:
        at, conv = decode_cursor(cursor, tuple[Number, Number])
        where, params = f"AND ({_UPDATED}<? OR ({_UPDATED}=? AND m.conv<?))", (at, at, conv)
    found = yield query(
        f"SELECT {_SYNC},{_UPDATED},m.conv {_MINE} {where} ORDER BY {_UPDATED} DESC,m.conv DESC LIMIT ?",
        user_id,
        *params,
        limit + 1,
    )
    page = found[:limit]
    has_more = len(found) > limit
    return HeadsPage(
        [Head(*tuple(row)[:6]) for row in page], encode_cursor((page[-1][6], page[-1][7])) if has_more else "", has_more
    )


def active_since(sql: Sql, user_ids: Sequence[str], since_ms: int | None) -> Script[ActiveSince]:
    """Conversations of these users with something new: found through their memberships, which are indexed."""
    now_ms: int = yield NOW
    chosen = sql.one_of("m.user_id", user_ids)
    found = yield query(
        f"SELECT m.user_id,c.conversation_id,{_HEAD} FROM members m JOIN conversations c ON c.id=m.conv "
        f"WHERE {chosen.sql} AND c.status<>{int(ConversationStatus.DELETED)} AND {_HEAD}>0 AND {_UPDATED}>=?",
        *chosen.params,
        now_ms - ACTIVE_MS if since_ms is None else since_ms,
    )
    return ActiveSince(now_ms, [(row[0], row[1], row[2]) for row in found])


def heads(sql: Sql, user_id: str, conversation_ids: Sequence[str] | None) -> Script[list[Head]]:
    """Heads and cursors of many conversations in one statement; unknown ones are left out."""
    where = ""
    params: tuple[Any, ...] = ()
    if conversation_ids is not None:
        chosen = sql.one_of("c.conversation_id", conversation_ids)
        where, params = f"AND {chosen.sql}", chosen.params
    found = yield query(f"SELECT {_SYNC} {_MINE} {where} ORDER BY m.conv", user_id, *params)
    return [Head(*row) for row in found]


def silenced(user_id: str) -> Script[set[str]]:
    found = yield query(f"SELECT c.conversation_id {_MINE} AND m.recv_msg_opt=2", user_id)
    return {row[0] for row in found}


_ENTRY = (
    f"c.conversation_id,c.kind,m.peer_id,{_HEAD} AS head,m.from_seq,m.read_seq,m.delivered_seq,{_UNREAD} AS unread,"
    f"{_MENTIONS} AS mentions,m.pinned,m.recv_msg_opt,{_UPDATED} AS updated,m.conv"
)
_ENTRY_WIDTH = 13


def entries(
    sql: Sql, user_id: str, cursor: str | None, limit: int, conversation_id: str | None = None
) -> Script[EntriesPage]:
    """The user's list: pinned first, then by activity, each with its last visible message, in one statement."""
    params: tuple[Any, ...] = ()
    if conversation_id is not None:
        where, params = "AND c.conversation_id=?", (conversation_id,)
    else:
        where = f"AND {_HEAD}>m.hidden_seq"
        if cursor:
            pinned, at, conv = decode_cursor(cursor, tuple[Number, Number, Number])
            where += f" AND (m.pinned<? OR (m.pinned=? AND ({_UPDATED}<? OR ({_UPDATED}=? AND m.conv<?))))"
            params = (pinned, pinned, at, at, conv)
    found = yield query(
        f"SELECT p.*,peer.read_seq,peer.delivered_seq,{rows.columns(rows.MESSAGE, 'msg')} FROM "
        f"(SELECT {_ENTRY} {_MINE} {where} ORDER BY m.pinned DESC,{_UPDATED} DESC,m.conv DESC LIMIT ?) p "
        "LEFT JOIN members peer ON peer.conv=p.conv AND peer.user_id=p.peer_id "
        "LEFT JOIN messages msg ON msg.conv=p.conv AND msg.seq=p.head "
        "ORDER BY p.pinned DESC,p.updated DESC,p.conv DESC",
        user_id,
        *params,
        limit + 1,
    )
    page = [_entry(tuple(row)) for row in found[:limit]]
    has_more = len(found) > limit
    last = found[limit - 1] if has_more else None
    yield from _quote(sql, user_id, [entry.last_message for entry in page if entry.last_message is not None])
    return EntriesPage(page, encode_cursor((last[9], last[11], last[12])) if last else "", has_more)


def _entry(row: tuple[Any, ...]) -> ConversationEntry:
    name, kind, peer_id, head, from_seq, read_seq, delivered_seq, unread, mentions, pinned, option, updated, _ = row[
        :_ENTRY_WIDTH
    ]
    peer_read, peer_delivered = row[_ENTRY_WIDTH : _ENTRY_WIDTH + 2]
    single = kind == Kind.SINGLE
    last = row[_ENTRY_WIDTH + 2 :]
    return ConversationEntry(
        conversation_id=name,
        kind=kind,
        peer_user_id=peer_id if single else None,
        group_id=None if single else group_of(name),
        last_message=rows.message(last, name) if last[0] is not None else None,
        head_seq=head,
        min_seq=from_seq,
        read_seq=read_seq,
        delivered_seq=delivered_seq,
        unread=unread,
        unread_mentions=mentions,
        pinned=bool(pinned),
        recv_msg_opt=option,
        peer_read_seq=peer_read if single else None,
        peer_delivered_seq=peer_delivered if single else None,
        updated_at=updated,
    )


def last_messages(
    sql: Sql, user_id: str, conversation_ids: Sequence[str], max_bytes: int
) -> Script[tuple[list[Message], bool]]:
    """The last visible message of each, in the order asked for; whether some did not fit."""
    chosen = sql.one_of("c.conversation_id", conversation_ids)
    found = yield query(
        f"SELECT p.conversation_id,{rows.columns(rows.MESSAGE, 'msg')} FROM "
        f"(SELECT c.conversation_id,m.conv,{_HEAD} AS head {_MINE} AND {chosen.sql}) p "
        "JOIN messages msg ON msg.conv=p.conv AND msg.seq=p.head",
        user_id,
        *chosen.params,
    )
    by_name = {row[0]: rows.message(tuple(row)[1:], row[0]) for row in found}
    messages = [by_name[name] for name in dict.fromkeys(conversation_ids) if name in by_name]
    yield from _quote(sql, user_id, messages)
    given = cut(messages, max_bytes)
    return given, len(given) < len(messages)


def _quote(sql: Sql, user_id: str, messages: Iterable[Message]) -> Script[None]:
    """Quotes for messages of many conversations; their targets may be in earlier spans."""
    replies = [message for message in messages if message.reply_to is not None]
    if replies:
        ranges = yield from ranges_of(sql, user_id, sorted({message.conversation_id for message in replies}))
        yield from attach_quotes(sql, replies, ranges)


def ranges_of(sql: Sql, user_id: str, conversation_ids: Sequence[str]) -> Script[dict[str, Ranges]]:
    """The visible ranges of one user in many conversations: the gate's answer, in two statements."""
    chosen = sql.one_of("c.conversation_id", conversation_ids)
    found = yield query(
        f"SELECT c.conversation_id,m.conv,m.from_seq,{_HEAD},m.has_past {_MINE} AND {chosen.sql}",
        user_id,
        *chosen.params,
    )
    spans: dict[int, list[tuple[int, int]]] = {row[1]: [(row[2], row[3])] for row in found}
    with_past = [row[1] for row in found if row[4]]
    if with_past:
        chosen = sql.one_of("conv", with_past, "bigint")
        for conv, low, high in (
            yield query(
                f"SELECT conv,from_seq,to_seq FROM member_spans WHERE user_id=? AND {chosen.sql}",
                user_id,
                *chosen.params,
            )
        ):
            spans[conv].append((low, high))
    return {row[0]: tuple(sorted((low, high) for low, high in spans[row[1]] if low <= high)) for row in found}


class Undelivered(NamedTuple):
    """A conversation with something above `start` that this device does not have."""

    conv: int
    conversation_id: str
    start: int
    head_seq: int
    ranges: Ranges


def undelivered(
    user_id: str, baselines: Mapping[str, int], given: Mapping[int, int], kind: int | None = None
) -> Script[tuple[list[Undelivered], bool]]:
    """Conversations with something to give, newest activity first, and whether there are still others.

    A baseline replaces `delivered_seq`: that cursor is any device's and says nothing about this one. Only
    a baseline can reach back into an earlier span.
    """
    where, params = ("AND c.kind=?", (kind,)) if kind is not None else ("", ())
    # a baseline may lie below delivered_seq, so those conversations cannot be left out here
    found = yield query(
        f"SELECT m.conv,c.conversation_id,m.from_seq,{_HEAD},m.delivered_seq,m.has_past {_MINE} {where} "
        f"{'' if baselines else f'AND {_HEAD}>m.delivered_seq'} ORDER BY {_UPDATED} DESC,m.conv DESC",
        user_id,
        *params,
    )
    result: list[Undelivered] = []
    for conv, name, from_seq, head, delivered, has_past in found:
        start = max(baselines.get(name, delivered), given.get(conv, 0))
        if head <= start:
            continue
        if len(result) >= UNDELIVERED_MAX:
            return result, True
        ranges: Ranges = ((from_seq, head),)
        if has_past and start < from_seq - 1:
            past = yield query("SELECT from_seq,to_seq FROM member_spans WHERE conv=? AND user_id=?", conv, user_id)
            ranges = tuple(sorted([(row[0], row[1]) for row in past] + [(from_seq, head)]))
        result.append(Undelivered(conv, name, start, head, ranges))
    return result, False


_MESSAGE = rows.columns(rows.MESSAGE)


def _first_messages(places: Sequence[Undelivered], each: int) -> Script[list[list[Message]]]:
    """The first `each` visible messages above each place, in as few statements as may be."""
    pieces: list[tuple[Undelivered, int, int]] = []
    for place in places:
        left = each
        for low, high in place.ranges:
            low = max(low, place.start + 1)
            if low > high or left <= 0:
                continue
            high = min(high, low + left - 1)  # seqs have no holes: a range of n is n messages
            pieces.append((place, low, high))
            left -= high - low + 1
    names = {place.conv: place.conversation_id for place in places}
    found: dict[int, list[Message]] = {place.conv: [] for place in places}
    for start in range(0, len(pieces), 100):
        chunk = pieces[start : start + 100]
        condition = " OR ".join(["(conv=? AND seq>=? AND seq<=?)"] * len(chunk))
        params = [value for place, low, high in chunk for value in (place.conv, low, high)]
        for row in (yield query(f"SELECT conv,{_MESSAGE} FROM messages WHERE {condition} ORDER BY conv,seq", *params)):
            found[row[0]].append(rows.message(tuple(row)[1:], names[row[0]]))
    return [found[place.conv] for place in places]


def offline(
    sql: Sql, user_id: str, cursor: str | None, limit: int, baselines: Mapping[str, int], max_bytes: int
) -> Script[OfflinePage]:
    """What was not delivered, over all conversations, oldest first. The cursor holds how far each
    conversation was given, so nothing is skipped, whatever is committed or marked read between two pages."""
    given: dict[int, int] = decode_cursor(cursor, dict[Number, Number]) if cursor else {}
    places, others = yield from undelivered(user_id, baselines, given)
    if not places:
        return OfflinePage([], cursor or "", False)
    each = max(8, -(-2 * limit // len(places)))
    lists = yield from _first_messages(places, min(limit, each))
    # Where a list ends before its conversation does, nothing younger than its end may be given yet.
    horizon = min(
        (messages[-1].send_at for place, messages in zip(places, lists, strict=True) if _unfinished(place, messages)),
        default=None,
    )
    in_order = [
        message
        for message in merge(*lists, key=lambda message: (message.send_at, message.conversation_id, message.seq))
        if horizon is None or message.send_at <= horizon
    ]
    yield from _quote(sql, user_id, in_order[:limit])
    page = cut(in_order[:limit], max_bytes)
    convs = {place.conversation_id: place.conv for place in places}
    for message in page:
        given[convs[message.conversation_id]] = message.seq
    has_more = others or len(page) < sum(map(len, lists)) or horizon is not None
    return OfflinePage(page, encode_cursor(given), has_more)


def _unfinished(place: Undelivered, messages: list[Message]) -> bool:
    return bool(messages) and messages[-1].seq < place.head_seq


def resend(
    sql: Sql, user_id: str, kind: int, limit: int, baselines: Mapping[str, int]
) -> Script[tuple[list[Message], bool]]:
    """Up to `limit` undelivered messages of one kind of conversation, a fair share of each; ascending
    within a conversation. Whether there is more."""
    places, others = yield from undelivered(user_id, baselines, {}, kind)
    if not places:
        return [], False
    chosen = places[:limit]
    share = limit // len(chosen)
    lists = yield from _first_messages(chosen, limit if len(chosen) == 1 else max(share, min(limit, share * 4)))
    counts = _fair(limit, [len(messages) for messages in lists])
    messages = [message for found, count in zip(lists, counts, strict=True) for message in found[:count]]
    yield from _quote(sql, user_id, messages)
    given = {
        place.conv: found[count - 1].seq for place, found, count in zip(chosen, lists, counts, strict=True) if count
    }
    has_more = others or any(given.get(place.conv, place.start) < place.head_seq for place in places)
    return messages, has_more


def _fair(total: int, wants: Sequence[int]) -> list[int]:
    """Share `total` so that nobody gets more than they want and small wants are met first."""
    shares = [0] * len(wants)
    left = total
    by_want = sorted(range(len(wants)), key=lambda i: wants[i])
    for position, i in enumerate(by_want):
        shares[i] = min(wants[i], left // (len(wants) - position))
        left -= shares[i]
    return shares
