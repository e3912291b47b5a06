"""What the index of search reads: messages behind the journal's references, and all messages from the newest on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from nexo.core.journal import CHANGED, JournalEntry
from nexo.core.model import FIRST_EVENT, Message, MsgType
from nexo.core.moderation import VersionCause
from nexo.core.search_index import SearchSource
from nexo.store.engine import Script
from nexo.store.engine import rows as query
from nexo.store.journal.reading import Part
from nexo.store.sql import Sql

AT_ONCE = 1000  # keys of one statement
PAGE_BYTES = 4 << 20  # of contents
_COLUMNS = ("server_msg_id", "conv", "seq", "sender_id", "msg_type", "content", "extra", "status", "send_at")
_ALL = ",".join(f"t.{name}" for name in _COLUMNS)
# events that change an earlier message: their content names it
CHANGING = frozenset((int(MsgType.RECALLED), int(MsgType.EDITED)))

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class ResolvedSources(NamedTuple):
    sources: list[SearchSource]
    done: int  # of what was given


def sources_of(sql: Sql, given: Sequence[Part | JournalEntry]) -> Script[ResolvedSources]:
    """Returns the messages that the first parts refer to, as they are now: as many as fit, at least of one chunk."""
    found: dict[int, SearchSource] = {}
    size = 0
    for start in range(0, len(given), AT_ONCE):
        chunk = given[start : start + AT_ONCE]
        kept = [one.data for one in chunk if isinstance(one, JournalEntry) and isinstance(one.data, Message)]
        if kept:
            yield from _add_kept(sql, kept, found)
            size += sum([len(message.content) for message in kept])
        keys = [one.key for one in chunk if isinstance(one, Part) and one.kind == CHANGED]
        if keys:
            size += yield from _add_stored(sql, keys, found)
        if size > PAGE_BYTES:
            return ResolvedSources(list(found.values()), start + len(chunk))
    return ResolvedSources(list(found.values()), len(given))


def _add_kept(sql: Sql, messages: Sequence[Message], found: dict[int, SearchSource]) -> Script[None]:
    """Adds messages that are in memory: only the numbers of their conversations are looked up."""
    names = sorted({message.conversation_id for message in messages})
    chosen = sql.one_of("conversation_id", names)
    rows = yield query(f"SELECT conversation_id,id FROM conversations WHERE {chosen.sql}", *chosen.params)
    convs = {name: conv for name, conv in rows}
    for one in messages:
        found[one.server_msg_id] = SearchSource(
            one.server_msg_id,
            convs[one.conversation_id],
            one.seq,
            one.sender_id,
            one.msg_type,
            one.content,
            one.extra,
            one.status,
            one.send_at,
        )


def _add_stored(sql: Sql, keys: list[tuple[int, int]], found: dict[int, SearchSource]) -> Script[int]:
    """Adds messages by conversation and seq, and those that events among them have changed. Returns their size."""
    size = 0
    changed: set[int] = set()
    chosen = sql.by_pairs(_ALL, "messages", ("conv", "seq"), "bigint", keys, "")
    for row in (yield query(chosen.sql, *chosen.params)):
        if row[4] in CHANGING:
            changed.add(int(_decode(row[5])["server_msg_id"]))
        elif row[4] < FIRST_EVENT:
            found[row[0]] = SearchSource(*row)
            size += len(row[5])
    if changed:
        for source in (yield from _by_ids(sql, sorted(changed))):
            found[source.server_msg_id] = source
    return size


def older(sql: Sql, below: int, limit: int) -> Script[list[SearchSource]]:
    """Returns the newest messages with a lower id, newest first, with what edits replaced. Events are left out, and
    the last row is always there, so that the caller can continue from it."""
    rows = yield query(
        f"SELECT {_ALL} FROM messages t WHERE t.server_msg_id<? ORDER BY t.server_msg_id DESC LIMIT ?", below, limit
    )
    found = [SearchSource(*row) for row in rows]
    texts = [source for source in found if source.msg_type < FIRST_EVENT]
    versions = yield from _versions(sql, [source.server_msg_id for source in texts])
    made = [source._replace(earlier=versions.get(source.server_msg_id, ())) for source in texts]
    if found and (not made or made[-1] is not found[-1]):
        made.append(found[-1]._replace(status=-1))  # not searched: only its id counts
    return made


def _by_ids(sql: Sql, ids: list[int]) -> Script[list[SearchSource]]:
    chosen = sql.one_of("t.server_msg_id", ids, "bigint")
    rows = yield query(f"SELECT {_ALL} FROM messages t WHERE {chosen.sql}", *chosen.params)
    versions = yield from _versions(sql, ids)
    return [SearchSource(*row)._replace(earlier=versions.get(row[0], ())) for row in rows]


def _versions(sql: Sql, ids: list[int]) -> Script[dict[int, tuple[str, ...]]]:
    """Returns the contents that edits have replaced."""
    found: dict[int, tuple[str, ...]] = {}
    for start in range(0, len(ids), AT_ONCE):
        chosen = sql.one_of("server_msg_id", ids[start : start + AT_ONCE], "bigint")
        rows = yield query(
            f"SELECT server_msg_id,content FROM message_versions WHERE {chosen.sql} AND cause=?",
            *chosen.params,
            int(VersionCause.EDIT),
        )
        for server_msg_id, content in rows:
            found[server_msg_id] = (*found.get(server_msg_id, ()), content)
    return found


def exists(server_msg_id: int) -> Script[bool]:
    return bool((yield query("SELECT 1 FROM messages WHERE server_msg_id=?", server_msg_id)))


def oldest_id() -> Script[int]:
    ((found,),) = yield query("SELECT MIN(server_msg_id) FROM messages")
    return int(found or 0)


def newest_id() -> Script[int]:
    ((found,),) = yield query("SELECT MAX(server_msg_id) FROM messages")
    return int(found or 0)
