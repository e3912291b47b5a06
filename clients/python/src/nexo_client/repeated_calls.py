"""Calls that are repeated while the server cannot be reached: those about one message one after the other, in the order
in which they were made, so that an earlier edit never overwrites a later one."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from nexo_client.core.backoff import Backoff
from nexo_client.core.options import Options
from nexo_client.errors import ClientError

T = TypeVar("T")


class RepeatedCalls:
    def __init__(self, options: Options) -> None:
        self._most = options.max_pending
        self._backoff = Backoff(options, random.Random())
        self._lanes: dict[str, asyncio.Future[None]] = {}  # done when the last call of the lane is
        self._count = 0
        self._round = 0
        self._woken = asyncio.Event()

    async def run(self, lane: str, call: Callable[[], Awaitable[T]]) -> T:
        """Returns the answer. `call` is the same each time: the server knows a repetition by its id."""
        if self._count >= self._most:
            raise ClientError("outbox_full", "Too many calls wait for the server.")
        self._count += 1
        started, before = self._round, self._lanes.get(lane)
        done = self._lanes[lane] = asyncio.get_running_loop().create_future()
        try:
            if before is not None:
                await asyncio.wait([before])
            return await self._repeat(call, started)
        finally:
            self._count -= 1
            done.set_result(None)
            if self._lanes.get(lane) is done:
                del self._lanes[lane]

    def wake(self) -> None:
        """Tries at once, because the connection is back."""
        woken, self._woken = self._woken, asyncio.Event()
        woken.set()

    def stop(self) -> None:
        """Gives up all calls that wait: they fail with `closed`."""
        self._round += 1
        self.wake()

    async def _repeat(self, call: Callable[[], Awaitable[T]], started: int) -> T:
        failures = 0
        while started == self._round:
            try:
                return await call()
            except ClientError as error:
                if not error.is_transient:
                    raise
                failures += 1
                pause_s = self._backoff.pause_s(failures, error.retry_after_ms)
            if started == self._round:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._woken.wait(), pause_s)
        raise ClientError("closed", "The client was closed before the server had answered.")
