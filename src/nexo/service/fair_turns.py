"""Shares something scarce fairly: waiting keys (addresses, users) take turns, and the callers of one key wait in order.
However many callers of a key wait, they delay a caller of another key by at most one turn."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from nexo.errors import NexoError


class FairTurns:
    """`at_once` callers run, at most `waiting_max` wait. When the queue is full, the key with the most callers waiting
    gives up its last one for a key with fewer: no key can keep others out."""

    def __init__(self, at_once: int, waiting_max: int, busy: str, retry_after_ms: int = 1000) -> None:
        """`busy` is the detail of the `server_busy` that a refused caller gets."""
        self._free = at_once
        self._waiting_max = waiting_max
        self._busy = busy
        self._retry_after_ms = retry_after_ms
        self._queues: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()  # next turn first; none is empty
        self.running = 0
        self.waiting = 0
        self.refused = 0

    @asynccontextmanager
    async def turn(self, key: str) -> AsyncIterator[None]:
        """Wait for a turn and hold it."""
        if self._free:
            self._free -= 1
        else:
            await self._wait(key)
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1
            self._pass_on()

    async def _wait(self, key: str) -> None:
        if self.waiting >= self._waiting_max:
            self._make_room(key)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(key, deque()).append(future)
        self.waiting += 1
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                self._pass_on()  # the turn was given in the same moment
            elif future in self._queues.get(key, ()):
                self._queues[key].remove(future)
                self._left(key)
            raise

    def _pass_on(self) -> None:
        """Give the turn to the first caller of the next key, or keep it free."""
        while self._queues:
            key, queue = self._queues.popitem(last=False)
            future = queue.popleft()
            if queue:
                self._queues[key] = queue
            self.waiting -= 1
            if not future.done():  # otherwise its caller was cancelled and has not noticed yet
                future.set_result(None)
                return
        self._free += 1

    def _make_room(self, key: str) -> None:
        self.refused += 1
        if len(self._queues) == self.waiting:  # one each: no key has more than its share
            raise self._refusal()
        longest = max(self._queues, key=lambda name: len(self._queues[name]))
        if len(self._queues[longest]) <= len(self._queues.get(key, ())) + 1:
            raise self._refusal()
        future = self._queues[longest].pop()
        self._left(longest)
        if not future.done():
            future.set_exception(self._refusal())

    def _left(self, key: str) -> None:
        self.waiting -= 1
        if not self._queues[key]:
            del self._queues[key]

    def _refusal(self) -> NexoError:
        return NexoError("server_busy", self._busy, retry_after_ms=self._retry_after_ms)
