"""Reads new entries for all shards of this process in one command to Redis.

While the committer is busy, entries read now would only wait there: the next read waits a moment instead, and finds
more at once. Every read takes a turn of the event loop from the acceptor.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial

from msgspec import Struct

from nexo.bus.redis_client import BusDown
from nexo.metrics.two_phase import SaveMeter
from nexo.two_phase.shard_saver import NotOwner
from nexo.two_phase.streams import Raw, Stream, Streams

PAUSE_S = 0.005


class Ask(Struct, eq=False):
    stream: Stream
    is_owner: Callable[[], bool]
    answer: asyncio.Future[list[Raw]]
    until: float
    reading: asyncio.Task[None] | None = None


class ShardReader:
    def __init__(self, streams: Streams, meter: SaveMeter) -> None:
        self._streams = streams
        self._meter = meter
        self._asked: list[Ask] = []
        self._timer: asyncio.Handle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def next(self, stream: Stream, is_owner: Callable[[], bool]) -> list[Raw]:
        """Returns new entries of the stream, or none after `block_ms`. Raises BusDown, NoGroup (about this stream or
        another one), and NotOwner: the present owner would never see entries that are taken here."""
        answer: asyncio.Future[list[Raw]] = asyncio.get_running_loop().create_future()
        ask = Ask(stream, is_owner, answer, time.monotonic() + self._streams.settings.block_ms / 1000)
        self._ask(ask)
        try:
            return await answer
        except asyncio.CancelledError:
            if ask.reading is not None:  # take nothing for a caller that is gone
                ask.reading.cancel()
            raise

    def _ask(self, ask: Ask) -> None:
        self._asked.append(ask)
        if self._timer is None:
            loop = asyncio.get_running_loop()
            if self._meter.under_way:
                self._timer = loop.call_later(PAUSE_S, self._start)
            else:
                self._timer = loop.call_soon(self._start)

    def _start(self) -> None:
        self._timer = None
        asked, self._asked = self._asked, []
        # in a cluster the shards are on different nodes
        for part in [[ask] for ask in asked] if self._streams.link.is_cluster else [asked]:
            task = asyncio.get_running_loop().create_task(self._read(part))
            for ask in part:
                ask.reading = task
            self._tasks.add(task)
            task.add_done_callback(partial(self._ended, part))

    def _ended(self, asked: list[Ask], task: asyncio.Task[None]) -> None:
        """Give every caller an answer, whatever has ended the read."""
        self._tasks.discard(task)
        if task.cancelled():
            _fail(asked, BusDown())  # entries may have been taken: other callers have to catch up
        elif (error := task.exception()) is not None:
            _fail(asked, error)

    async def _read(self, asked: list[Ask]) -> None:
        settings = self._streams.settings
        asked = [ask for ask in asked if self._may_read(ask)]
        if not asked:
            return
        found = await self._streams.read([ask.stream for ask in asked], settings.batch_size, settings.block_ms)
        self._hand_out(asked, found)

    def _may_read(self, ask: Ask) -> bool:
        if ask.answer.done():  # the caller is gone
            return False
        if not ask.is_owner():
            ask.answer.set_exception(NotOwner())
            return False
        return True

    def _hand_out(self, asked: list[Ask], found: Sequence[list[Raw]]) -> None:
        now = time.monotonic()
        for ask, taken in zip(asked, found, strict=True):
            ask.reading = None
            if ask.answer.done():
                continue
            if taken or now >= ask.until:
                ask.answer.set_result(taken)
            else:
                self._ask(ask)


def _fail(asked: list[Ask], error: BaseException) -> None:
    for ask in asked:
        if not ask.answer.done():
            ask.answer.set_exception(error)
