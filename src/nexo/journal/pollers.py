"""Readers with a cursor of their own that wait for entries (`GET /server/events`).

One task looks for commits of other instances for all of them, and only while one waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Collection, Iterable

import structlog

from nexo.core.journal import EventsPage, JournalPage, Place
from nexo.errors import NexoError
from nexo.journal.ports import JournalStore
from nexo.metrics import families as f
from nexo.metrics.families import Sample

log = structlog.get_logger()

SOON_S = 0.05  # between two looks of one poller: commits in between are read together
SCAN_S = 1.0  # how long one call may look for entries of its types, when it does not wait


class Pollers:
    """Implements `service.backend.EventSource`."""

    def __init__(self, store: JournalStore, poll_s: float, limit: int) -> None:
        self._store = store
        self._poll_s = poll_s
        self._limit = limit
        self.count = 0
        self._refused = 0
        self._commits = 0  # grows with every commit that becomes known
        self._waiting: set[asyncio.Future[None]] = set()
        self._needed = asyncio.Event()
        self._is_stopping = False

    async def poll(self, cursor: str | None, types: Collection[str] | None, limit: int, wait_s: float) -> EventsPage:
        """Returns the entries after a cursor, as soon as there are some; none after `wait_s`."""
        if self.count >= self._limit:
            self._refused += 1
            detail = f"{self._limit} callers read events of this instance already"
            raise NexoError("too_many_requests", detail, retry_after_ms=1000)
        self.count += 1
        try:
            return await self._poll(await self._store.place_of(cursor), types, limit, wait_s)
        finally:
            self.count -= 1

    async def _poll(self, place: Place, types: Collection[str] | None, limit: int, wait_s: float) -> EventsPage:
        started_at = time.monotonic()
        while True:
            commits, read_at = self._commits, time.monotonic()
            page = await self._store.page(place, limit, types)
            place = page.place
            now = time.monotonic()
            left_s = started_at + wait_s - now
            if page.entries or self._is_stopping or (left_s <= 0 and not _goes_on(page, now - started_at)):
                return EventsPage(page.entries, self._store.cursor_of(place))
            if not page.has_more:
                await self._wait(commits, SOON_S if page.is_waiting else left_s)
                pause_s = min(read_at + SOON_S, started_at + wait_s) - time.monotonic()
                if pause_s > 0:
                    await asyncio.sleep(pause_s)

    async def _wait(self, commits: int, timeout_s: float) -> None:
        """Wait for a commit after the one with this number."""
        if self._commits != commits or self._is_stopping:
            return
        woken = asyncio.get_running_loop().create_future()
        self._waiting.add(woken)
        self._needed.set()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await woken
        finally:
            self._waiting.discard(woken)

    def wake(self) -> None:
        """Let all look again: a transaction was committed."""
        self._commits += 1
        if self._waiting:
            for woken in self._waiting:
                if not woken.done():
                    woken.set_result(None)

    async def watch(self) -> None:
        """Look for commits of other instances while a poller waits. Never returns."""
        newest = -1
        while True:
            if not self._waiting:
                newest = -1  # commits were not followed: look at once when there are pollers again
                self._needed.clear()
                await self._needed.wait()
            await asyncio.sleep(self._poll_s)
            try:
                found = await self._store.newest()
            except NexoError as error:
                log.warning("journal_not_read", consumer="events", error=str(error))
                continue
            if found != newest:
                newest = found
                self.wake()

    def stop(self) -> None:
        """Answer all that wait, and let none wait any more."""
        self._is_stopping = True
        self.wake()

    def samples(self) -> Iterable[Sample]:
        yield f.EVENT_POLLERS(self.count)
        yield f.EVENT_POLLERS_LIMIT(self._limit)
        yield f.EVENT_POLLERS_REFUSED(self._refused)


def _goes_on(page: JournalPage, taken_s: float) -> bool:
    """Returns whether a caller that does not wait gets more entries by looking further."""
    return page.has_more and taken_s < SCAN_S
