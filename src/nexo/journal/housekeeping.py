"""Trims and measures the journal, and does other chores of the database, on one instance at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable

import structlog
from msgspec import Struct

from nexo.core.journal import ConsumerLease, JournalState
from nexo.errors import NexoError
from nexo.journal.holding import Holding
from nexo.journal.ports import JournalStore
from nexo.metrics import families as f
from nexo.metrics.families import Sample

log = structlog.get_logger()

ROLE = "nexo.housekeeping"
TAKEOVER_S = 100.0  # long: an idle server should write rarely
EVERY_S = 5.0
STEP_PAUSE_S = 0.05  # between two steps, for other transactions


class Chore(Struct):
    """`step` does a little and returns how much; it is repeated until that is 0, and again after `every_s`."""

    name: str
    step: Callable[[], Awaitable[int]]
    every_s: float = 60.0
    due_at: float = 0.0


class Housekeeping:
    def __init__(self, store: JournalStore, owner: str, retention_ms: int) -> None:
        self.chores: list[Chore] = []
        self._store = store
        self._retention_ms = retention_ms
        self._holding = Holding(store, ROLE, owner, TAKEOVER_S)
        self._state: JournalState | None = None

    async def run(self) -> None:
        await self._holding.run(self._work)

    async def _work(self, lease: ConsumerLease) -> None:
        try:
            while True:
                try:
                    self._state = await self._store.state()
                    await self._trim(self._state)
                except NexoError as error:
                    log.warning("journal_housekeeping_failed", error=str(error))
                for chore in self.chores:
                    await _do_chore(chore)
                await asyncio.sleep(EVERY_S)
        finally:
            self._state = None

    async def _trim(self, state: JournalState) -> None:
        only_newest = state.newest - state.trimmed_to <= 1
        if only_newest or state.now_ms - state.oldest_at < self._retention_ms:
            return
        while True:
            if not await self._store.trim(self._retention_ms):
                return
            await asyncio.sleep(STEP_PAUSE_S)

    def samples(self) -> Iterable[Sample]:
        """Returns the metrics of the whole journal, on the instance that has this role."""
        state = self._state
        if state is None:
            return
        yield f.JOURNAL_NEWEST(state.newest)
        yield f.JOURNAL_ROWS(state.newest - state.trimmed_to)
        for consumer in state.consumers:
            yield f.JOURNAL_LAG_ROWS(consumer.lag_rows, consumer.name)
            yield f.JOURNAL_LAG_SECONDS(consumer.lag_ms / 1000, consumer.name)


async def _do_chore(chore: Chore) -> None:
    if time.monotonic() < chore.due_at:
        return
    chore.due_at = time.monotonic() + chore.every_s
    try:
        while True:
            if not await chore.step():
                return
            await asyncio.sleep(STEP_PAUSE_S)
    except NexoError as error:
        log.warning("chore_failed", chore=chore.name, error=str(error))
