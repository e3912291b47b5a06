"""Reads across the conversations of a user: the list, SYNC, heads, and undelivered messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import merge
from typing import Any, NamedTuple

from nexo.core.model import QUIET_TYPES, ConversationEntry, ConversationStatus, Head, Kind, Message, OfflinePage
from nexo.core.unread import unread_mentions_sql, unread_sql
from nexo.core.visibility import Ranges, last_activity_sql, last_seq_sql, shown_ranges, visible_head_sql
from nexo.ids import group_of
from nexo.ports import ActiveSince
from nexo.store import rows
from nexo.store.engine import NOW, Script
from nexo.store.engine import rows as query
from nexo.store.hiding import not_deleted, shown_above
from nexo.store.history import cut
from nexo.store.member_settings import OWN, OWN_WIDTH, archived_sql, entry_with_own, head_with_own
from nexo.store.paging import Number, decode_cursor, encode_cursor
from nexo.store.reader_view import complete, needs
from nexo.store.sql import Sql

# What a member may see of a conversation; frozen when the span is closed.
_HEAD = visible_head_sql("m", "c")
_LAST = last_seq_sql("m", "c")
_UPDATED = last_activity_sql("m", "c")
_CHANGED = "COALESCE(m.left_at,c.last_send_at)"  # events about earlier messages included
_UNREAD = unread_sql("m", "c")
_MENTIONS = unread_mentions_sql("m", "c")
_MINE = (
    "FROM members m JOIN conversations c ON c.id=m.conv "
    f"WHERE m.user_id=? AND c.status<>{int(ConversationStatus.DELETED)} AND {_HEAD}>0"
)
_OWN = f"{archived_sql(_LAST, _UPDATED)},{OWN}"
_QUIET = ",".join(str(int(kind)) for kind in sorted(QUIET_TYPES))
_SYNC = f"c.conversation_id,{_HEAD},m.from_seq,m.read_seq,m.delivered_seq,{_UNREAD},m.pinned,m.recv_msg_opt,"
_SYNC += f"CASE WHEN {_LAST}<=m.hidden_seq THEN 1 ELSE 0 END,{_OWN}"

ACTIVE_MS = 15_000
OWN_MAX_BYTES = 192 * 1024  # of drafts and the like in a page of heads
UNDELIVERED_MAX = 2000  # conversations read in one pass over undelivered messages


class HeadsPage(NamedTuple):
    heads: list[Head]
    next_cursor: str
    has_more: bool


class EntriesPage(NamedTuple):
    entries: list[ConversationEntry]
    next_cursor: str
    has_more: bool


def sync(user_id: str, cursor: str | None, limit: int) -> Script[HeadsPage]:
    """Returns a page of all conversations, newest activity first."""
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
    heads: list[Head] = []
    size = 0
    for row in page:
        *values, at, conv = row
        head, bytes_taken = head_with_own(values)
        size += bytes_taken
        if heads and size > OWN_MAX_BYTES:
            break
        heads.append(head)
        place = (at, conv)
    has_more = len(heads) < len(found)
    return HeadsPage(heads, encode_cursor(place) if has_more else "", has_more)


def active_since(sql: Sql, user_ids: Sequence[str], since_ms: int | None) -> Script[ActiveSince]:
    """Returns the conversations of these users with new messages, found through the index of memberships."""
    now_ms: int = yield NOW
    chosen = sql.one_of("m.user_id", user_ids)
    found = yield query(
        f"SELECT m.user_id,c.conversation_id,{_HEAD} FROM members m JOIN conversations c ON c.id=m.conv "
        f"WHERE {chosen.sql} AND c.status<>{int(ConversationStatus.DELETED)} AND {_HEAD}>0 AND {_CHANGED}>=?",
        *chosen.params,
        now_ms - ACTIVE_MS if since_ms is None else since_ms,
    )
    return ActiveSince(now_ms, [(row[0], row[1], row[2]) for row in found])


def heads(sql: Sql, user_id: str, conversation_ids: Sequence[str] | None) -> Script[list[Head]]:
    """Returns heads and cursors of many conversations in one statement, without unknown ones."""
    where = ""
    params: tuple[Any, ...] = ()
    if conversation_ids is not None:
        chosen = sql.one_of("c.conversation_id", conversation_ids)
        where, params = f"AND {chosen.sql}", chosen.params
    found = yield query(f"SELECT {_SYNC} {_MINE} {where} ORDER BY m.conv", user_id, *params)
    return [head_with_own(row)[0] for row in found]


def silenced(user_id: str) -> Script[set[str]]:
    found = yield query(
        f"SELECT c.conversation_id {_MINE} AND (m.recv_msg_opt=2 OR m.silent_until>?)", user_id, (yield NOW)
    )
    return {row[0] for row in found}


_ENTRY = (
    f"c.conversation_id,c.kind,m.peer_id,{_HEAD} AS head,m.from_seq,m.read_seq,m.delivered_seq,{_UNREAD} AS unread,"
    f"{_MENTIONS} AS mentions,m.pinned,m.recv_msg_opt,{_UPDATED} AS updated,m.conv,m.cleared_seq,{_LAST} AS last_no"
)
_ENTRY_WIDTH = 15


def entries(
    sql: Sql, user_id: str, cursor: str | None, limit: int, conversation_id: str | None = None
) -> Script[EntriesPage]:
    """Returns a page of the user's list: pinned first, then by activity, each with its last visible message."""
    params: tuple[Any, ...] = ()
    if conversation_id is not None:
        where, params = "AND c.conversation_id=?", (conversation_id,)
    else:
        where = f"AND {_LAST}>m.hidden_seq"
        if cursor:
            pinned, at, conv = decode_cursor(cursor, tuple[Number, Number, Number])
            where += f" AND (m.pinned<? OR (m.pinned=? AND ({_UPDATED}<? OR ({_UPDATED}=? AND m.conv<?))))"
            params = (pinned, pinned, at, at, conv)
    found = yield query(
        f"SELECT p.*,peer.read_seq,peer.delivered_seq,gone.seq,{rows.columns(rows.MESSAGE, 'msg')} FROM "
        f"(SELECT {_ENTRY},{_OWN} {_MINE} {where} ORDER BY m.pinned DESC,{_UPDATED} DESC,m.conv DESC LIMIT ?) p "
        "LEFT JOIN members peer ON peer.conv=p.conv AND peer.user_id=p.peer_id "
        "LEFT JOIN messages msg ON msg.conv=p.conv AND msg.seq=p.last_no AND msg.seq>p.cleared_seq "
        "LEFT JOIN message_deletions gone ON gone.conv=p.conv AND gone.user_id=? AND gone.seq=p.last_no "
        "ORDER BY p.pinned DESC,p.updated DESC,p.conv DESC",
        user_id,
        *params,
        limit + 1,
        user_id,
    )
    page = []
    for row in found[:limit]:
        entry, is_deleted = _entry(tuple(row))
        if is_deleted:
            low = max(entry.min_seq, row[13] + 1)
            entry.last_message = yield from _last_shown(user_id, entry.conversation_id, row[12], low, entry.head_seq)
        page.append(entry)
    has_more = len(found) > limit
    last = found[limit - 1] if has_more else None
    yield from _complete(sql, user_id, [entry.last_message for entry in page if entry.last_message is not None])
    return EntriesPage(page, encode_cursor((last[9], last[11], last[12])) if last else "", has_more)


def _last_shown(user_id: str, conversation_id: str, conv: int, low: int, head: int) -> Script[Message | None]:
    """Returns the last message from `low` on that the user has not deleted, where the newest is deleted."""
    kept = not_deleted(conv, user_id, "messages.seq")
    found = yield query(
        f"SELECT {_MESSAGE} FROM messages WHERE conv=? AND seq>=? AND seq<? AND {kept.sql} "
        f"AND msg_type NOT IN ({_QUIET}) ORDER BY seq DESC LIMIT 1",
        conv,
        low,
        head,
        *kept.params,
    )
    return rows.message(found[0], conversation_id) if found else None


def _entry(row: tuple[Any, ...]) -> tuple[ConversationEntry, bool]:
    """Returns the entry, and whether the user has deleted its last message."""
    name, kind, peer_id, head, from_seq, read_seq, delivered_seq, unread, mentions, pinned, option, updated, *_ = row[
        :_ENTRY_WIDTH
    ]
    own, rest = row[_ENTRY_WIDTH : _ENTRY_WIDTH + OWN_WIDTH], row[_ENTRY_WIDTH + OWN_WIDTH :]
    peer_read, peer_delivered, gone, *last = rest
    single = kind == Kind.SINGLE
    entry = ConversationEntry(
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
    return entry_with_own(entry, own), gone is not None


def last_messages(
    sql: Sql, user_id: str, conversation_ids: Sequence[str], max_bytes: int
) -> Script[tuple[list[Message], bool]]:
    """Returns the last visible message of each, in the requested order, and whether some did not fit."""
    chosen = sql.one_of("c.conversation_id", conversation_ids)
    found = yield query(
        f"SELECT p.*,gone.seq,{rows.columns(rows.MESSAGE, 'msg')} FROM (SELECT c.conversation_id,m.conv,m.from_seq,"
        f"m.cleared_seq,{_LAST} AS last_no {_MINE} AND {chosen.sql}) p "
        "JOIN messages msg ON msg.conv=p.conv AND msg.seq=p.last_no AND msg.seq>p.cleared_seq "
        "LEFT JOIN message_deletions gone ON gone.conv=p.conv AND gone.user_id=? AND gone.seq=p.last_no",
        user_id,
        *chosen.params,
        user_id,
    )
    by_name: dict[str, Message] = {}
    for name, conv, from_seq, cleared_seq, head, gone, *row in found:
        last: Message | None = rows.message(row, name)
        if gone is not None:
            last = yield from _last_shown(user_id, name, conv, max(from_seq, cleared_seq + 1), head)
        if last is not None:
            by_name[name] = last
    messages = [by_name[name] for name in dict.fromkeys(conversation_ids) if name in by_name]
    yield from _complete(sql, user_id, messages)
    given = cut(messages, max_bytes)
    return given, len(given) < len(messages)


def _complete(sql: Sql, user_id: str, messages: Iterable[Message]) -> Script[None]:
    """Completes messages of many conversations for their reader; what they refer to may be in earlier spans."""
    chosen = [message for message in messages if needs(message)]
    if chosen:
        ranges = yield from ranges_of(sql, user_id, sorted({message.conversation_id for message in chosen}))
        yield from complete(sql, user_id, chosen, ranges)


def ranges_of(sql: Sql, user_id: str, conversation_ids: Sequence[str]) -> Script[dict[str, Ranges]]:
    """Returns what is shown to one user in many conversations, without single deletions, in two statements."""
    chosen = sql.one_of("c.conversation_id", conversation_ids)
    found = yield query(
        f"SELECT c.conversation_id,m.conv,m.from_seq,{_HEAD},m.has_past,m.cleared_seq {_MINE} AND {chosen.sql}",
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
    return {
        row[0]: shown_ranges(tuple(sorted(span for span in spans[row[1]] if span[0] <= span[1])), row[5])
        for row in found
    }


class Undelivered(NamedTuple):
    """A conversation with messages above `start`, which this device does not have."""

    conv: int
    conversation_id: str
    start: int
    head_seq: int  # the last that is shown
    ranges: Ranges  # what is shown


def undelivered(
    user_id: str, baselines: Mapping[str, int], given: Mapping[int, int], kind: int | None = None
) -> Script[tuple[list[Undelivered], bool]]:
    """Returns conversations with undelivered messages, newest activity first, and whether there are more.

    A baseline replaces `delivered_seq`, which is shared by all devices and does not describe this one. Only
    a baseline can reach back into an earlier span.
    """
    where, params = ("AND c.kind=?", (kind,)) if kind is not None else ("", ())
    # a baseline may be below delivered_seq, so conversations with one cannot be left out here
    found = yield query(
        f"SELECT m.conv,c.conversation_id,m.from_seq,{_HEAD},m.delivered_seq,m.has_past,m.cleared_seq,m.deleted_count "
        f"{_MINE} {where} "
        f"{'' if baselines else f'AND {_HEAD}>m.delivered_seq'} ORDER BY {_UPDATED} DESC,m.conv DESC",
        user_id,
        *params,
    )
    result: list[Undelivered] = []
    for conv, name, from_seq, head, delivered, has_past, cleared_seq, deleted_count in found:
        start = max(baselines.get(name, delivered), given.get(conv, 0))
        if head <= start:
            continue
        if len(result) >= UNDELIVERED_MAX:
            return result, True
        ranges: Ranges = ((from_seq, head),)
        if has_past and start < from_seq - 1:
            past = yield query("SELECT from_seq,to_seq FROM member_spans WHERE conv=? AND user_id=?", conv, user_id)
            ranges = tuple(sorted([(row[0], row[1]) for row in past] + [(from_seq, head)]))
        if cleared_seq > start or deleted_count:
            ranges = yield from shown_above(conv, user_id, ranges, start, cleared_seq, deleted_count)
            if not ranges:
                continue
            head = ranges[-1][1]
        result.append(Undelivered(conv, name, start, head, ranges))
    return result, False


_MESSAGE = rows.columns(rows.MESSAGE)


def _first_messages(places: Sequence[Undelivered], each: int) -> Script[list[list[Message]]]:
    """Returns the first `each` visible messages above each place, in few statements."""
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
    """Returns undelivered messages of all conversations, oldest first. The cursor holds the last returned seq of each
    conversation, so no message is skipped when others are committed or marked read between two pages."""
    given: dict[int, int] = decode_cursor(cursor, dict[Number, Number]) if cursor else {}
    places, others = yield from undelivered(user_id, baselines, given)
    if not places:
        return OfflinePage([], cursor or "", False)
    each = max(8, -(-2 * limit // len(places)))
    lists = yield from _first_messages(places, min(limit, each))
    # Where a list ends before its conversation does, no message after its end may be returned yet.
    horizon = min(
        (messages[-1].send_at for place, messages in zip(places, lists, strict=True) if _unfinished(place, messages)),
        default=None,
    )
    in_order = [
        message
        for message in merge(*lists, key=lambda message: (message.send_at, message.conversation_id, message.seq))
        if horizon is None or message.send_at <= horizon
    ]
    yield from _complete(sql, user_id, in_order[:limit])
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
    """Returns up to `limit` undelivered messages of one kind of conversation, a fair share of each, ascending within a
    conversation; and whether there are more."""
    places, others = yield from undelivered(user_id, baselines, {}, kind)
    if not places:
        return [], False
    chosen = places[:limit]
    share = limit // len(chosen)
    lists = yield from _first_messages(chosen, limit if len(chosen) == 1 else max(share, min(limit, share * 4)))
    counts = _fair(limit, [len(messages) for messages in lists])
    messages = [message for found, count in zip(lists, counts, strict=True) for message in found[:count]]
    yield from _complete(sql, user_id, messages)
    given = {
        place.conv: found[count - 1].seq for place, found, count in zip(chosen, lists, counts, strict=True) if count
    }
    has_more = others or any(given.get(place.conv, place.start) < place.head_seq for place in places)
    return messages, has_more


def _fair(total: int, wants: Sequence[int]) -> list[int]:
    """Returns shares of `total`: none above its want, and small wants are met first."""
    shares = [0] * len(wants)
    left = total
    by_want = sorted(range(len(wants)), key=lambda i: wants[i])
    for position, i in enumerate(by_want):
        shares[i] = min(wants[i], left // (len(wants) - position))
        left -= shares[i]
    return shares
