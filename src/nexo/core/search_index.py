"""Values that pass between the journal, the index of search and a question to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from nexo.core.journal import Place
from nexo.core.model import Message, MessageStatus
from nexo.core.search_query import Lookup, Snippet
from nexo.core.search_text import media_kind, search_text
from nexo.core.search_words import terms_of
from nexo.ids import CANARY_IDS

BLOCK_BITS = 14  # 16,384 messages of a conversation are looked up at a time, the newest first
NEWEST = (1 << 63) - 1  # above every id of a message


class SearchSource(NamedTuple):
    """A stored message, as the index reads it. `earlier` are contents that an edit replaced: members that left before
    the edit see those, and find them."""

    server_msg_id: int
    conv: int
    seq: int
    sender_id: str
    msg_type: int
    content: str
    extra: str | None
    status: int
    send_at: int
    earlier: tuple[str, ...] = ()


class SearchChanges(NamedTuple):
    """Messages that were saved or changed after a place of the journal, as they are now."""

    sources: list[SearchSource]
    place: Place  # start of the next page
    has_more: bool
    is_waiting: bool  # for a transaction in progress: read again soon


class SearchEntry(NamedTuple):
    """A message in the index."""

    server_msg_id: int
    conv: int
    seq: int
    sender_id: str
    msg_type: int
    kind: int  # of media; 0: none
    send_at: int
    terms: str  # in any order, separated by spaces

    @property
    def block(self) -> int:
        return self.seq >> BLOCK_BITS


class IndexState(NamedTuple):
    """`below`: messages with a lower id are not indexed yet; 0: all are. `place` is None before the first rebuild."""

    version: int
    place: Place | None
    below: int
    last_id: int  # the highest that was indexed
    entries: int


class IndexStep(NamedTuple):
    """A change of the index, written at once with the place behind it."""

    entries: list[SearchEntry]
    removed: list[tuple[int, int, int]]  # id, conversation, seq
    place: Place
    below: int


class IndexUnit(NamedTuple):
    """A block of a conversation, with the highest id in it."""

    conv: int
    block: int
    last_id: int


class Candidate(NamedTuple):
    server_msg_id: int
    conv: int
    seq: int


class SearchFilter(NamedTuple):
    """What a message has to be, besides its text. `after` and `before` are times, the first included."""

    sender_id: str | None = None
    msg_type: int | None = None
    after: int | None = None
    before: int | None = None

    def takes(self, message: Message) -> bool:
        return (
            (self.sender_id is None or message.sender_id == self.sender_id)
            and (self.msg_type is None or message.msg_type == self.msg_type)
            and (self.after is None or message.send_at >= self.after)
            and (self.before is None or message.send_at < self.before)
        )


class IndexQuery(NamedTuple):
    units: list[IndexUnit]
    lookups: tuple[Lookup, ...]
    below: int  # an id
    wanted: SearchFilter
    limit: int


class Hit(NamedTuple):
    message: Message
    snippet: Snippet


class SearchPage(NamedTuple):
    hits: list[Hit]
    next_cursor: str
    has_more: bool


class MediaPage(NamedTuple):
    messages: list[Message]
    next_seq: int
    has_more: bool


def entry_of(source: SearchSource) -> SearchEntry | None:
    """Returns the entry of a message; None for one that cannot be found: blank, of the server, without a word."""
    if source.status != MessageStatus.NORMAL or source.sender_id in CANARY_IDS:
        return None
    text = search_text(source.msg_type, source.content, source.extra)
    kind = media_kind(source.msg_type, text)
    terms = terms_of(text)
    for content in source.earlier:
        before = search_text(source.msg_type, content, source.extra)
        terms |= terms_of(before)
        kind = kind or media_kind(source.msg_type, before)
    if not terms and not kind:
        return None
    return SearchEntry(
        source.server_msg_id,
        source.conv,
        source.seq,
        source.sender_id,
        source.msg_type,
        kind,
        source.send_at,
        " ".join(terms),
    )


def joined_terms(first: str, second: str) -> str:
    """Returns the terms of both; the first text itself if it has all."""
    before = set(first.split())
    after = before.union(second.split())
    return first if after == before else " ".join(after)


def newest_ids(entries: Iterable[SearchEntry]) -> dict[tuple[int, int], int]:
    """Returns the highest id in each block of a conversation."""
    found: dict[tuple[int, int], int] = {}
    for entry in entries:
        key = (entry.conv, entry.block)
        found[key] = max(found.get(key, 0), entry.server_msg_id)
    return found
