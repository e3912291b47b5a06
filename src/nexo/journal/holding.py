"""Roles that one instance has at a time: held by a lease in SQL, renewed, and taken over when renewal stops.

The work is cancelled when the lease is lost, or has ended without a renewal. An instance that was paused does not
notice in time; the epoch keeps it from writing.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Coroutine

import structlog

from nexo.background import end_all
from nexo.core.journal import ConsumerLease
from nexo.errors import NexoError
from nexo.journal.ports import JournalStore

log = structlog.get_logger()

Work = Callable[[ConsumerLease], Coroutine[None, None, None]]

# fractions of the takeover time; their sum stays below 1
LASTS = 0.6
TRIES = 0.2


class Holding:
    def __init__(
        self, store: JournalStore, name: str, owner: str, takeover_s: float, *, from_now: bool | None = True
    ) -> None:
        """`from_now`: where a role that is new begins to read, see `JournalStore.take`."""
        self._store = store
        self._name = name
        self._owner = owner
        self._ttl_s = takeover_s * LASTS
        self._every_s = takeover_s * TRIES
        self._from_now = from_now
        self.lease: ConsumerLease | None = None
        self.until = 0.0  # of the lease, by `time.monotonic()`

    async def run(self, work: Work) -> None:
        """Run `work` whenever this instance holds the role. Never returns."""
        while True:
            asked_at = time.monotonic()
            try:
                lease = await self._store.take(self._name, self._owner, self._ttl_s, from_now=self._from_now)
            except NexoError as error:
                log.warning("journal_lease_not_taken", consumer=self._name, error=str(error))
                lease = None
            if lease is not None:
                log.info("journal_lease_taken", consumer=self._name, epoch=lease.epoch)
                await self._hold(lease, asked_at, work)
            await asyncio.sleep(self._every_s * random.uniform(0.7, 1.0))

    async def _hold(self, lease: ConsumerLease, asked_at: float, work: Work) -> None:
        """Run the work until it or the lease ends."""
        self.lease, self.until = lease, asked_at + self._ttl_s
        tasks = [
            asyncio.ensure_future(work(lease)),
            asyncio.ensure_future(self._renew(lease)),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.lease = None
            results = await end_all(tasks)
            with contextlib.suppress(NexoError):
                await self._store.release(lease)
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def _renew(self, lease: ConsumerLease) -> None:
        """Renew the lease. Returns when it has ended."""
        while True:
            await asyncio.sleep(min(self._every_s, max(0.0, self.until - time.monotonic())))
            asked_at = time.monotonic()
            if asked_at >= self.until:
                log.warning("journal_lease_over", consumer=self._name)
                return
            try:
                async with asyncio.timeout_at(asyncio.get_running_loop().time() + self.until - asked_at):
                    is_held = await self._store.renew(lease, self._ttl_s)
            except (NexoError, TimeoutError) as error:
                log.warning("journal_lease_not_renewed", consumer=self._name, error=str(error))
                continue
            if not is_held:
                log.warning("journal_lease_lost", consumer=self._name, epoch=lease.epoch)
                return
            self.until = asked_at + self._ttl_s
