"""The journal behind `journal.ports.JournalStore`: each method runs one or a few scripts on one database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Generic, NamedTuple, Protocol, TypeVar

import structlog

from nexo.core.journal import SAVED_TYPE, ConsumerLease, JournalEntry, JournalPage, JournalState, Place
from nexo.errors import NexoError
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.store.batch import HotSql
from nexo.store.database import Database
from nexo.store.engine import MakeScript, Script, StoreError, T, Transient
from nexo.store.journal import consumers, reading, resolving, trimming
from nexo.store.journal.reading import CLOSED_AT_ONCE, Hole, Part
from nexo.store.journal.recent import RecentBatches
from nexo.store.paging import Number, decode_cursor, encode_cursor

log = structlog.get_logger()

PAGE_BYTES = 1 << 20
CURSOR_MAX_CHARS = 512
BEGIN = "begin"


class ResolvedParts(Protocol):
    """What a reader makes of the first parts of a page, and of how many of them."""

    @property
    def done(self) -> int: ...


R = TypeVar("R", bound=ResolvedParts)
Resolve = Callable[[list[Part | JournalEntry]], Script[R]]


class PartsPage(NamedTuple, Generic[R]):
    resolved: R
    place: Place  # start of the next page
    has_more: bool
    is_waiting: bool  # for a transaction in progress: read again soon
    hole: Hole | None


class SqlJournal:
    def __init__(self, database: Database, hot_sql: HotSql, recent: RecentBatches | None = None) -> None:
        """`recent`: what the committer of this process keeps."""
        self._database = database
        self._sql = database.sql
        self._hot_sql = hot_sql
        self._recent = recent or RecentBatches()
        self._flushes = database.kind.commits_visible_early
        self._holes_closed = 0

    # -- reading -----------------------------------------------------------------------------------------

    async def page(
        self, place: Place, limit: int, types: Collection[str] | None = None, max_bytes: int = PAGE_BYTES
    ) -> JournalPage:
        wants_saved = types is None or SAVED_TYPE in types
        read = await self.read_parts(
            place,
            limit,
            lambda found: resolving.resolve(self._sql, found, types, max_bytes),
            max_bytes,
            in_memory=wants_saved,
        )
        return JournalPage(read.resolved.entries, read.place, read.has_more, read.is_waiting)

    async def read_parts(
        self, place: Place, limit: int, resolve: Resolve[R], max_bytes: int = PAGE_BYTES, *, in_memory: bool = True
    ) -> PartsPage[R]:
        """Returns what `resolve` makes of what follows a place; see `JournalStore.page`. With `in_memory`, messages
        that this process has saved a moment ago are given as entries."""
        read = await self._read(place, limit, resolve, max_bytes, in_memory)
        if read.place == place and read.hole is not None and read.hole.is_old:
            await self._close(read.hole.numbers)
            read = await self._read(place, limit, resolve, max_bytes, in_memory)
        if self._flushes and read.place != place:
            await self._database.change(reading.flush)
        return read

    async def _read(
        self, place: Place, limit: int, resolve: Resolve[R], max_bytes: int, in_memory: bool
    ) -> PartsPage[R]:
        return await self._database.look(lambda: self._parts(place, limit, resolve, max_bytes, in_memory))

    def _parts(
        self, place: Place, limit: int, resolve: Resolve[R], max_bytes: int, in_memory: bool
    ) -> Script[PartsPage[R]]:
        recent = self._recent if in_memory else None
        if recent is not None:
            recent.want()
        scan = yield from reading.scan(place, limit, max_bytes, recent)
        if scan.ids is not None and not (yield from resolving.are_unchanged(scan.ids)):
            scan = yield from reading.scan(place, limit, max_bytes, None)
        resolved = yield from resolve(scan.found)
        if resolved.done < len(scan.found):
            return PartsPage(resolved, reading.place_before(scan.found[resolved.done]), True, False, None)
        return PartsPage(resolved, scan.end, scan.has_more, scan.hole is not None, scan.hole)

    async def now(self) -> Place:
        """Returns the place after everything that is committed, and before everything that is not."""
        while True:
            recent = await self._database.look(reading.recent)
            if not recent.missing:
                return Place(recent.newest, 0)
            if not await self._close(recent.missing[:CLOSED_AT_ONCE]):
                raise NexoError("server_busy", "A transaction takes too long", retry_after_ms=1000)

    async def newest(self) -> int:
        return await self._database.look(reading.newest)

    async def oldest(self) -> Place:
        """Returns the place before the oldest row that is kept."""
        return Place(await self._database.look(reading.trimmed_to), 0)

    async def place_of(self, cursor: str | None) -> Place:
        if cursor is None:
            return await self.now()
        if cursor == BEGIN:
            return await self.oldest()
        if len(cursor) > CURSOR_MAX_CHARS:
            raise NexoError("bad_cursor", "The cursor is longer than any the server gives out")
        place = Place(*decode_cursor(cursor, tuple[Number, Number]))
        if place.row > await self.newest():  # of another journal
            raise NexoError("cursor_expired")
        return place

    async def place_at(self, at_ms: int) -> Place:
        """Returns a place before everything that was committed from this time on, if it is kept."""
        return await self._database.look(lambda: reading.place_at(at_ms))

    def cursor_of(self, place: Place) -> str:
        return encode_cursor(tuple(place))

    async def _close(self, numbers: Sequence[int]) -> bool:
        """Closes a hole. Returns False while a transaction still holds one of its numbers."""
        try:
            closed = await self._once(lambda: reading.close(self._sql, numbers))
        except Transient:
            if len(numbers) == 1:
                return False
            return await self._close(numbers[:1])
        except StoreError as error:
            log.warning("journal_hole_not_closed", error=str(error), first=numbers[0])
            return False
        self._holes_closed += closed
        return True

    # -- consumers ---------------------------------------------------------------------------------------

    async def take(self, name: str, owner: str, ttl_s: float, *, from_now: bool | None) -> ConsumerLease | None:
        lease = await self._change(lambda: consumers.take(self._sql, name, owner, int(ttl_s * 1000)))
        if lease is None and from_now is not None and not await self._database.look(partial(consumers.exists, name)):
            place = await (self.now() if from_now else self.oldest())
            await self._change(lambda: consumers.add(self._sql, name, place))
            lease = await self._change(lambda: consumers.take(self._sql, name, owner, int(ttl_s * 1000)))
        return lease

    async def renew(self, lease: ConsumerLease, ttl_s: float) -> bool:
        return await self._change(lambda: consumers.renew(self._sql, lease, int(ttl_s * 1000)))

    async def save(self, lease: ConsumerLease, place: Place) -> bool:
        return await self._change(lambda: consumers.save(self._sql, lease, place))

    async def release(self, lease: ConsumerLease) -> None:
        await self._change(lambda: consumers.release(self._sql, lease))

    async def remove(self, name: str) -> None:
        await self._change(lambda: consumers.remove(name))

    async def state(self) -> JournalState:
        return await self._database.look(consumers.state)

    async def trim(self, older_than_ms: int) -> int:
        """Deletes some of the oldest rows. Returns how many."""
        trimmed = await self._change(lambda: trimming.trim(self._sql, older_than_ms))
        if trimmed.hole is not None and await self._close(trimmed.hole.numbers):
            trimmed = await self._change(lambda: trimming.trim(self._sql, older_than_ms))
        return trimmed.rows

    def samples(self) -> Iterable[Sample]:
        yield f.JOURNAL_HOLES(self._holes_closed)

    async def _change(self, make: MakeScript[T]) -> T:
        return await self._database.change(lambda: self._hot_sql.beside(make()))

    async def _once(self, make: MakeScript[T]) -> T:
        return await self._database.engine.write_once(lambda: self._hot_sql.beside(make()))
