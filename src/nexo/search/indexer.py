"""Fills the index of search from the journal, on one instance at a time, and from all stored messages after a rebuild
was asked for.

The index keeps the place in the journal itself, written together with its entries: after a kill at any moment it
continues from there. An index that does not fit the database (it is new, was left behind by the journal's retention, or
belongs to another state of the database) is built anew: it follows the journal from now on, and takes older messages
from the newest to the oldest.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Sequence

import structlog

from nexo.core.journal import ConsumerLease, Place
from nexo.core.search_index import IndexState, IndexStep, SearchEntry, SearchSource, entry_of
from nexo.errors import NexoError
from nexo.ids import now_ms
from nexo.journal.holding import Holding
from nexo.journal.ports import JournalStore
from nexo.search.ports import SearchIndex, SearchStore

log = structlog.get_logger()

CONSUMER = "search"
LINGER_S = 0.1  # between a commit and the look at the journal: a larger batch costs less
SOON_S = 0.05  # between two looks for a row that is being written
SAVE_S = 1.0
LOOK_S = 2.0  # between two looks at the state of the index when there is nothing to do
REST = 0.5  # of the time of each step: a server that has more to do than it can is not held up much by its index
TURN = 32  # messages whose words are found before another thread may run
PAUSES_S = (0.2, 1.0, 5.0, 30.0)


class Indexer:
    def __init__(
        self,
        store: SearchStore,
        index: SearchIndex,
        leases: JournalStore,
        owner: str,
        takeover_s: float,
        poll_s: float,
    ) -> None:
        self._store = store
        self._index = index
        self._leases = leases
        self._holding = Holding(leases, CONSUMER, owner, takeover_s)
        self._poll_s = poll_s
        self.woken = asyncio.Event()  # a transaction was committed: look at the journal soon
        self.state: IndexState | None = None  # while this instance fills the index
        self._is_tended = False
        self._looked_at = 0.0
        self.messages = 0
        self.failures = 0
        self.rebuilds = 0
        self.lag_s = 0.0  # of the oldest message of the last page, when it was indexed

    async def run(self) -> None:
        await self._holding.run(self._work)

    async def _work(self, lease: ConsumerLease) -> None:
        """Fill the index. Returns when another instance has taken the lease. A failure is logged and tried again: it is
        no reason to call the server unready."""
        failures = 0
        try:
            while True:
                try:
                    await self._fill(lease)
                    return
                except Exception as error:
                    self.failures += 1
                    is_expected = isinstance(error, NexoError)
                    log.warning("search_index_failed", error=str(error), exc_info=not is_expected)
                await asyncio.sleep(PAUSES_S[min(failures, len(PAUSES_S) - 1)] * random.uniform(0.5, 1.0))
                failures += 1
        finally:
            self.state = None

    async def _fill(self, lease: ConsumerLease) -> None:
        saved_at = 0.0
        while True:
            self.woken.clear()
            began = time.monotonic()
            pause_s = await self.step()
            worked_s = time.monotonic() - began
            if time.monotonic() - saved_at >= SAVE_S:
                saved_at = time.monotonic()
                place = None if self.state is None else self.state.place
                if place is not None and not await self._leases.save(lease, place):
                    return
            await asyncio.sleep(worked_s * REST)
            if pause_s:
                await self._wait(pause_s)

    async def step(self) -> float:
        """Index a page of the journal, and a page of older messages while the index is being built. Returns how long
        there is nothing to do."""
        state = self.state or await self._fitting()
        assert state.place is not None
        try:
            page = await self._store.changes(state.place, self._index.batch)
        except NexoError as error:
            if error.name != "cursor_expired":
                raise
            log.warning("search_index_left_behind", row=state.place.row)
            self.state = await self._begin()
            return 0.0
        self.state = state
        if page.place != state.place:
            await self._apply(page.sources, page.place, state.below)
            self._note_lag(page.sources)
        if self.state is not None and self.state.below:
            await self._go_back(self.state, page.place)
            return 0.0
        if page.has_more:
            return 0.0
        if page.place != state.place:
            self._is_tended = False
            return SOON_S if page.is_waiting else self._poll_s
        if not self._is_tended:
            self._is_tended = not await self._index.tend()
        if time.monotonic() - self._looked_at >= LOOK_S:  # a command may have begun to build it anew
            self._looked_at = time.monotonic()
            if (await self._index.state()).version != state.version:
                self.state = None
        return self._poll_s if self._is_tended else SOON_S

    async def catch_up(self) -> None:
        """Index everything that is committed now; for a process that has the index to itself."""
        goal = await self._store.newest()
        while True:
            await self.step()
            state = self.state
            is_there = state is not None and state.place is not None and state.place.row >= goal and not state.below
            if is_there and self._is_tended:
                return

    async def _go_back(self, state: IndexState, place: Place) -> None:
        """Index some older messages."""
        found = await self._store.older(state.below, self._index.batch)
        below = found[-1].server_msg_id if found else 0
        await self._apply(found, place, below)
        if self.state is not None and not self.state.below:
            log.info("search_index_built", entries=self.state.entries)

    async def _apply(self, sources: Sequence[SearchSource], place: Place, below: int) -> None:
        """Write to the index. Another process may have begun to build it anew: its state is read again then."""
        assert self.state is not None
        entries, removed = await asyncio.to_thread(_entries_of, sources)
        self.state = await self._index.apply(self.state.version, IndexStep(entries, removed, place, below))
        self.messages += len(sources)

    def _note_lag(self, sources: Sequence[SearchSource]) -> None:
        fresh = [source.send_at for source in sources if not source.earlier and not source.status]
        self.lag_s = max(0.0, (now_ms() - min(fresh)) / 1000) if fresh else 0.0

    async def _fitting(self) -> IndexState:
        """Returns the state of the index; empties it if it does not fit the database."""
        state = await self._index.state()
        if state.place is None:
            return await self._begin()
        is_ahead = state.place.row > await self._store.newest()
        if is_ahead or (state.last_id and not await self._store.exists(state.last_id)):
            log.warning("search_index_foreign", row=state.place.row)
            return await self._begin()
        return state

    async def _begin(self) -> IndexState:
        self.rebuilds += 1
        state = await self._index.begin(await self._store.now())
        log.info("search_index_begun", row=state.place.row if state.place else 0)
        return state

    async def _wait(self, timeout_s: float) -> None:
        """Wait for a commit, and then for those behind it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self.woken.wait()
                await asyncio.sleep(LINGER_S)


def _entries_of(sources: Sequence[SearchSource]) -> tuple[list[SearchEntry], list[tuple[int, int, int]]]:
    """Returns the entries to write, by ascending id, and what is to be removed. Runs in a thread of its own, and lets
    others run often."""
    entries: list[SearchEntry] = []
    removed: list[tuple[int, int, int]] = []
    for number, source in enumerate(sources, 1):
        entry = entry_of(source)
        if entry is not None:
            entries.append(entry)
        elif source.status > 0:
            removed.append((source.server_msg_id, source.conv, source.seq))
        if not number % TURN:
            time.sleep(0)
    entries.sort()
    return entries, removed
