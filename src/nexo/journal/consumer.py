"""A consumer: passes pages of entries to a function, in order, each at least once; its place is stored in SQL.

A page on which the function fails is passed again, after a growing pause. The place is saved up to 0.2 s after the page
was processed: entries processed in between are delivered again after a crash.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable, Collection, Sequence

import structlog
from msgspec import Struct

from nexo.core.journal import ConsumerLease, JournalEntry, JournalPage, Place
from nexo.errors import NexoError
from nexo.journal.holding import Holding
from nexo.journal.ports import JournalStore

log = structlog.get_logger()

PAGE_ENTRIES = 256
SAVE_S = 0.2
SOON_S = 0.05  # between two looks for a row that is being written
PAUSES_S = (0.1, 0.5, 2.0, 5.0, 15.0, 30.0)

Handle = Callable[[Sequence[JournalEntry]], Awaitable[None]]


class Consumer(Struct, frozen=True):
    """`handle` gets the entries of these types (None: all). A new consumer starts with the next commit (`from_now`), or
    with the oldest row that is kept."""

    name: str
    handle: Handle
    types: Collection[str] | None = None
    from_now: bool = True


class ConsumerCounts(Struct):
    """Counters of a consumer on this instance."""

    entries: int = 0
    failures: int = 0
    lost_rows: int = 0


class ConsumerLoop:
    """Runs one consumer while this instance holds its lease."""

    def __init__(self, store: JournalStore, consumer: Consumer, owner: str, takeover_s: float, poll_s: float) -> None:
        self._store = store
        self._consumer = consumer
        self._holding = Holding(store, consumer.name, owner, takeover_s, from_now=consumer.from_now)
        self._poll_s = poll_s
        self.woken = asyncio.Event()  # a transaction was committed: look at the journal now
        self.counts = ConsumerCounts()

    async def run(self) -> None:
        await self._holding.run(self._work)

    async def _work(self, lease: ConsumerLease) -> None:
        """Process pages. Returns when another instance has taken the consumer."""
        place = saved = lease.place
        saved_at = 0.0
        try:
            while True:
                self.woken.clear()
                page = await self._read(place)
                if page.entries:
                    await self._hand_over(page.entries)
                is_idle = page.place == place
                place = page.place
                wait_s = saved_at + SAVE_S - time.monotonic()
                if place != saved and wait_s <= 0:
                    if not await self._save(lease, place):
                        return
                    saved, saved_at = place, time.monotonic()
                elif is_idle:
                    pause_s = SOON_S if page.is_waiting else self._poll_s
                    await self._wait(pause_s if place == saved else min(pause_s, wait_s))
        finally:
            if place != saved:
                with contextlib.suppress(NexoError):
                    await self._store.save(lease, place)

    async def _read(self, place: Place) -> JournalPage:
        failures = 0
        while True:
            try:
                return await self._store.page(place, PAGE_ENTRIES, self._consumer.types)
            except NexoError as error:
                if error.name == "cursor_expired":
                    place = await self._skip(place)
                else:
                    log.warning("journal_not_read", consumer=self._consumer.name, error=str(error))
                failures += 1
                await _pause(failures)

    async def _skip(self, place: Place) -> Place:
        """Returns the oldest place that is kept: this consumer was stopped for longer than the retention."""
        oldest = await self._store.oldest()
        self.counts.lost_rows += oldest.row - place.row
        log.error(
            "journal_entries_lost", consumer=self._consumer.name, rows=oldest.row - place.row, first=place.row + 1
        )
        return oldest

    async def _hand_over(self, entries: Sequence[JournalEntry]) -> None:
        failures = 0
        while True:
            try:
                await self._consumer.handle(entries)
            except Exception:
                failures += 1
                self.counts.failures += 1
                log.exception("journal_consumer_failed", consumer=self._consumer.name, failures=failures)
                await _pause(failures)
            else:
                self.counts.entries += len(entries)
                return

    async def _save(self, lease: ConsumerLease, place: Place) -> bool:
        failures = 0
        while True:
            try:
                return await self._store.save(lease, place)
            except NexoError as error:
                log.warning("journal_place_not_saved", consumer=self._consumer.name, error=str(error))
                failures += 1
                await _pause(failures)

    async def _wait(self, timeout_s: float) -> None:
        """Wait for a commit of this instance. Commits of other instances are found after the time-out."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self.woken.wait()


async def _pause(failures: int) -> None:
    await asyncio.sleep(PAUSES_S[min(failures, len(PAUSES_S)) - 1] * random.uniform(0.5, 1.0))
