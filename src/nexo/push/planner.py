"""Reads the journal and makes notes of what may have to be pushed, after connections had time to take it.

The place in the journal is saved after everything before it has become notes: a crash at any moment repeats some notes
and loses none. While no device is registered, the journal is not read.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import structlog

from nexo.core.journal import ConsumerLease, Place
from nexo.core.push import Marking, PushPage
from nexo.errors import NexoError
from nexo.ids import now_ms
from nexo.journal.ports import JournalStore
from nexo.push.ports import PushStore

log = structlog.get_logger()

PAGE_PARTS = 1000
WAITING_MAX = 20_000  # conversations that were read and have to wait: above it the journal is not read on
READ_EVERY_S = 0.25  # commits in between are read together
SOON_S = 0.05
SAVE_S = 0.5
IDLE_S = 2.0  # between two looks for a device, while none is registered
IDLE_SAVE_S = 60.0
AT_ONCE = 100  # conversations of one question
BUSY_PAUSE_S = 1.0  # after the database has failed


class _WaitingPage(NamedTuple):
    due_at: float  # by `time.monotonic`
    place: Place  # after it
    saved: dict[int, tuple[int, int]]


class Planner:
    """`wake_senders` is called when notes were made."""

    def __init__(
        self, store: PushStore, journal: JournalStore, wait_ms: int, poll_s: float, wake_senders: Callable[[], None]
    ) -> None:
        self._store = store
        self._journal = journal
        self._wait_ms = wait_ms
        self._poll_s = max(poll_s, READ_EVERY_S)
        self._wake_senders = wake_senders
        self.woken = asyncio.Event()  # a transaction was committed
        self._is_used = asyncio.Event()  # a device is registered, or may be
        self._done = Place(0, 0)  # everything before it has become notes
        self._pages: deque[_WaitingPage] = deque()
        self.waiting = 0  # conversations in `_pages`
        self.lost_rows = 0
        self.failures = 0

    def registered(self) -> None:
        """Begin to read the journal: a device was registered on this instance."""
        self._is_used.set()

    async def run(self, lease: ConsumerLease) -> None:
        """Make notes. Returns when another instance has taken the lease."""
        self._pages.clear()
        self.waiting = 0
        place = saved = self._done = lease.place
        saved_at = time.monotonic()
        while True:
            try:
                is_idle = not self._pages and await self._skip()
                if is_idle:
                    place = self._done
                else:
                    place, pause_s = await self._read(place)
                    await self._note_due(place)
                if self._done != saved and time.monotonic() >= saved_at + (IDLE_SAVE_S if is_idle else SAVE_S):
                    if not await self._journal.save(lease, self._done):
                        return
                    saved, saved_at = self._done, time.monotonic()
            except NexoError as error:
                self.failures += 1
                log.warning("push_not_planned", error=str(error))
                is_idle, pause_s = False, BUSY_PAUSE_S
            await (self._wait_idle() if is_idle else self._wait(pause_s))

    async def _skip(self) -> bool:
        """Step over everything that is committed, while no device is registered. The place is read before the devices:
        what is committed after a device was registered is not stepped over."""
        if self._is_used.is_set():
            if await self._store.has_targets():
                return False
            self._is_used.clear()
        place = await self._journal.place_of(None)
        if await self._store.has_targets():
            self._is_used.set()
            return False
        self._done = place
        return True

    async def _read(self, place: Place) -> tuple[Place, float]:
        """Read on, if there is room. Returns the place after it, and how long to wait."""
        if self.waiting >= WAITING_MAX:
            return place, self._due_in()
        try:
            page, after, has_more, is_waiting = await self._store.page(place, PAGE_PARTS)
        except NexoError as error:
            if error.name != "cursor_expired":
                raise
            oldest = await self._journal.oldest()
            self.lost_rows += oldest.row - place.row
            log.error("push_entries_lost", rows=oldest.row - place.row)
            return oldest, 0.0
        if after != place:
            await self._look_again(page)
            age_s = max(0.0, (now_ms() - page.newest_at) / 1000) if page.newest_at else 0.0
            due_at = time.monotonic() + max(0.0, self._wait_ms / 1000 - age_s)
            self._pages.append(_WaitingPage(due_at, after, page.saved))
            self.waiting += len(page.saved)
        if has_more:
            return after, 0.0
        return after, min(self._due_in(), SOON_S if is_waiting else self._poll_s)

    def _due_in(self) -> float:
        return max(0.0, self._pages[0].due_at - time.monotonic()) if self._pages else self._poll_s

    async def _look_again(self, page: PushPage) -> None:
        """Let what devices show be examined again: members have read it, or it was recalled or has expired."""
        convs = set(page.changed)
        for wanted in _chunks([Marking(conv, *seqs) for conv, seqs in page.saved.items()]):
            convs |= await self._store.recalled_in(wanted)
        if (convs or page.read) and await self._store.look_again(sorted(convs), page.read):
            self._wake_senders()

    async def _note_due(self, place: Place) -> None:
        """Make notes of the pages that have waited long enough."""
        wanted: dict[int, Marking] = {}
        count = 0
        now = time.monotonic()
        while count < len(self._pages) and self._pages[count].due_at <= now:
            for conv, (low, high) in self._pages[count].saved.items():
                before = wanted.get(conv)
                wanted[conv] = Marking(conv, low if before is None else before.low, high)
            count += 1
        for chunk in _chunks(list(wanted.values())):
            convs = await self._store.away(chunk)
            left = [one for one in chunk if one.conv in convs]
            while left:
                left = await self._store.mark(left)
                self._wake_senders()
        for _ in range(count):
            page = self._pages.popleft()
            self._done = page.place
            self.waiting -= len(page.saved)
        if not self._pages:
            self._done = place

    async def _wait_idle(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(IDLE_S):
                await self._is_used.wait()

    async def _wait(self, timeout_s: float) -> None:
        if timeout_s <= SOON_S:
            await asyncio.sleep(timeout_s)
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self.woken.wait()
                await asyncio.sleep(READ_EVERY_S)
        self.woken.clear()


def _chunks(wanted: list[Marking]) -> list[list[Marking]]:
    return [wanted[start : start + AT_ONCE] for start in range(0, len(wanted), AT_ONCE)]
