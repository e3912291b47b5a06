"""Questions to search: each candidate of the index, newest first, is read as the asker may see it and compared with the
question. So a result is never wrong; messages of the last moments may be missing."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import AsyncIterator, Sequence

from nexo.core.model import Message
from nexo.core.search_index import (
    NEWEST,
    Candidate,
    Hit,
    IndexQuery,
    IndexUnit,
    MediaPage,
    SearchFilter,
    SearchPage,
)
from nexo.core.search_query import Question
from nexo.core.search_text import LINKING_TYPES, TYPE_OF, MediaKind, media_kind, search_text
from nexo.errors import NexoError
from nexo.search.ports import SearchIndex, SearchStore

LIMIT = 20
LIMIT_MAX = 100
UNITS_AT_ONCE = 24
EXAMINED_MAX = 1000  # candidates of one request; the next page continues
REPLY_BYTES = 256 * 1024
SLICE_S = 0.002  # of comparing, after which anything else may run
SLOW_SLICE_S = 0.004  # of which no ordinary text takes even a part
SWIFT_S = 0.02  # of comparing in one request without a pause between slices
PAUSES = 4  # then, and after a slow slice, the pause is so many times as long as the slice
COMPARING_S = 0.1  # of comparing in one request; the next page continues


class Searching:
    def __init__(self, store: SearchStore, index: SearchIndex) -> None:
        self._store = store
        self._index = index
        self._comparing = asyncio.Lock()  # one request at a time: slices of many would add up

    async def search(
        self,
        user_id: str,
        question: Question,
        wanted: SearchFilter,
        conversation_id: str | None,
        limit: int | None,
        cursor: str | None,
    ) -> SearchPage:
        """Returns what matches, newest first."""
        count = LIMIT if limit is None else min(limit, LIMIT_MAX) if limit > 0 else LIMIT_MAX
        below = _read_cursor(cursor)
        names = await self._store.conversations_of(user_id, conversation_id)
        units = await self._index.units(list(names)) if names else []
        hits: list[Hit] = []
        batch: list[Candidate] = []
        examined = size = 0
        left_s = COMPARING_S
        last = below

        async def examine() -> bool:
            """Returns whether the page ends here."""
            nonlocal last, size, left_s
            candidates = [(one, names[one.conv]) for one in batch]
            found, spent_s = await self._compare(user_id, question, wanted, candidates, left_s)
            left_s -= spent_s
            for candidate, hit in zip(batch, found, strict=False):
                if hit is not None:
                    size += len(hit.message.content) + 1000
                    if len(hits) == count or (hits and size > REPLY_BYTES):
                        return True
                    hits.append(hit)
                last = candidate.server_msg_id
            is_over = len(found) < len(batch)
            batch.clear()
            return is_over

        asked = IndexQuery([], question.lookups, below, wanted, count + 1)
        async for candidate in self._merged(units, asked):
            batch.append(candidate)
            examined += 1
            is_over = examined >= EXAMINED_MAX
            if (len(batch) > count or is_over) and (await examine() or is_over):
                return SearchPage(hits, str(last), True)
        has_more = await examine()
        return SearchPage(hits, str(last) if has_more else "", has_more)

    async def _merged(self, units: list[IndexUnit], asked: IndexQuery) -> AsyncIterator[Candidate]:
        """Yields the candidates of all blocks, newest first. A group of blocks is asked only when its newest message
        may be the next."""
        units = sorted(units, key=lambda unit: unit.last_id, reverse=True)
        groups = [units[i : i + UNITS_AT_ONCE] for i in range(0, len(units), UNITS_AT_ONCE)]
        heap = [(-min(group[0].last_id, asked.below - 1), number) for number, group in enumerate(groups)]
        heapq.heapify(heap)
        waiting: dict[int, list[Candidate]] = {}  # of each group that was asked, oldest first
        reached: dict[int, int] = {}  # the lowest id that a group has returned
        while heap:
            _, number = heapq.heappop(heap)
            found = waiting.get(number)
            if not found:
                below = reached.get(number, asked.below)
                found = await self._index.candidates(asked._replace(units=groups[number], below=below))
                if not found:
                    continue
                reached[number] = found[-1].server_msg_id if len(found) == asked.limit else 0
                waiting[number] = found[::-1]
                heapq.heappush(heap, (-found[0].server_msg_id, number))
                continue
            yield found.pop()
            upper = found[-1].server_msg_id if found else reached[number] - 1
            if upper > 0:
                heapq.heappush(heap, (-upper, number))

    async def _compare(
        self,
        user_id: str,
        question: Question,
        wanted: SearchFilter,
        candidates: Sequence[tuple[Candidate, str]],
        left_s: float,
    ) -> tuple[list[Hit | None], float]:
        """Returns the hits among the candidates, of as many as can be compared in this time and at least one, and the
        time it took. A text can be made so that comparing it takes many times longer than others."""
        seqs: dict[str, list[int]] = {}
        for candidate, name in candidates:
            seqs.setdefault(name, []).append(candidate.seq)
        visible = await self._store.visible(user_id, seqs) if seqs else {}
        hits: list[Hit | None] = []
        spent_s = 0.0
        async with self._comparing:
            began = time.perf_counter()
            for candidate, name in candidates:
                message = visible.get((name, candidate.seq))
                hits.append(None if message is None else _hit(question, wanted, message))
                slice_s = time.perf_counter() - began
                if spent_s + slice_s >= left_s:
                    break
                if slice_s >= SLICE_S:
                    spent_s += slice_s
                    is_long = slice_s >= SLOW_SLICE_S or spent_s >= SWIFT_S
                    await asyncio.sleep(PAUSES * slice_s if is_long else 0)
                    began = time.perf_counter()
            return hits, spent_s + time.perf_counter() - began

    # -- media -------------------------------------------------------------------------------------------

    async def media(
        self, user_id: str, conversation_id: str, kind: MediaKind, before_seq: int | None, limit: int, is_indexed: bool
    ) -> MediaPage:
        """Returns messages of a kind, newest first. Without a complete index the conversation itself is looked
        through, some thousand messages at a time: a page may have fewer messages than asked for, and more behind it."""
        if is_indexed:
            names = await self._store.conversations_of(user_id, conversation_id)
            before = NEWEST if before_seq is None else before_seq
            seqs = [seq for conv in names for seq in await self._index.media(conv, kind, before, limit + 1)]
            rest = seqs[limit - 1] if len(seqs) > limit else 0
            seqs = seqs[:limit]
        else:
            types = [TYPE_OF[kind]] if kind in TYPE_OF else LINKING_TYPES
            seqs, rest = await self._store.seqs_of_types(user_id, conversation_id, types, before_seq, limit)
        visible = await self._store.visible(user_id, {conversation_id: seqs}) if seqs else {}
        found = [message for seq in seqs if (message := visible.get((conversation_id, seq))) is not None]
        messages = [one for one in found if media_kind(one.msg_type, _text(one)) == kind]
        return MediaPage(messages, rest or (seqs[-1] if seqs else before_seq or 1), rest > 1)


def _hit(question: Question, wanted: SearchFilter, message: Message) -> Hit | None:
    text = _text(message)
    if not wanted.takes(message) or not question.matches(text):
        return None
    return Hit(message, question.snippet(text))


def _text(message: Message) -> str:
    return search_text(message.msg_type, message.content, message.extra)


def _read_cursor(cursor: str | None) -> int:
    if cursor is None:
        return NEWEST
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 19 and int(cursor) <= NEWEST):
        raise NexoError("bad_cursor", "Use the cursor as it was given, or none")
    return int(cursor)
