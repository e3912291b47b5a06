"""Erases messages whose time is over, on one instance at a time.

Each instance looks now and then, which writes nothing; the first that finds work takes the lease for as long as there
is some. An instance that stops meanwhile is replaced when its lease ends. Two that erased at once would do no harm: the
lease only saves the work.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterable
from typing import Protocol

import structlog

from nexo.errors import NexoError
from nexo.journal.ports import JournalStore
from nexo.metrics import families as f
from nexo.metrics.families import Sample

log = structlog.get_logger()

ROLE = "nexo.expiry"
LEASE_S = 20.0
EVERY_S = 10.0
STEP_PAUSE_S = 0.05  # between two steps, for other transactions


class ExpiryStore(Protocol):
    """Messages whose time is over. Every method may raise `NexoError("server_busy")`."""

    async def is_due(self) -> bool:
        """Returns whether there is anything to erase, without writing."""

    async def erase_some(self) -> int:
        """Erases some of it, in small transactions. Returns how much there was; 0: nothing is left."""


class Erasing:
    def __init__(self, store: ExpiryStore, leases: JournalStore, owner: str, every_s: float = EVERY_S) -> None:
        self._store = store
        self._leases = leases
        self._owner = owner
        self._every_s = every_s
        self._erased = 0
        self._failures = 0

    async def run(self) -> None:
        """Erase what is due, now and from time to time. Never returns."""
        while True:
            try:
                await self.erase_due()
            except NexoError as error:
                self._failures += 1
                log.warning("expiry_failed", error=str(error))
            await asyncio.sleep(self._every_s * random.uniform(0.8, 1.2))

    async def erase_due(self) -> None:
        """Erase everything that is due, unless another instance does."""
        while await self._store.is_due():
            lease = await self._leases.take(ROLE, self._owner, LEASE_S, from_now=True)
            if lease is None:
                return
            until = time.monotonic() + LEASE_S / 2
            try:
                while time.monotonic() < until:
                    count = await self._store.erase_some()
                    if not count:
                        break
                    self._erased += count
                    await asyncio.sleep(STEP_PAUSE_S)
            finally:
                await self._leases.release(lease)

    def samples(self) -> Iterable[Sample]:
        yield f.MESSAGES_ERASED(self._erased)
        yield f.ERASING_FAILURES(self._failures)
