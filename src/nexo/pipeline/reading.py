"""New entries for all shards of this process, in one question to Redis and not in one for each of them.

While the committer has something in hand, what is read now would only wait there: the next question waits a moment
instead, and finds more at once. Every read is a turn of the event loop that those who accept do not get.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial

from msgspec import Struct

from nexo.bus.redis_link import BusDown
from nexo.metrics.pipeline import SaveMeter
from nexo.pipeline.settling import NotOwner
from nexo.pipeline.streams import Raw, Stream, Streams

PAUSE_S = 0.005


class Ask(Struct, eq=False):
    stream: Stream
    is_owner: Callable[[], bool]
    answer: asyncio.Future[list[Raw]]
    until: float
    reading: asyncio.Task[None] | None = None


class Reading:
    def __init__(self, streams: Streams, meter: SaveMeter) -> None:
        self._streams = streams
        self._meter = meter
        self._asked: list[Ask] = []
        self._timer: asyncio.Handle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def next(self, stream: Stream, is_owner: Callable[[], bool]) -> list[Raw]:
        """What is new there; nothing when there was nothing for a while. Raises BusDown, NoGroup about this stream
        or another one, and NotOwner: the present owner would never see what is taken here."""
        answer: asyncio.Future[list[Raw]] = asyncio.get_running_loop().create_future()
        ask = Ask(stream, is_owner, answer, time.monotonic() + self._streams.settings.block_ms / 1000)
        self._ask(ask)
        try:
            return await answer
        except asyncio.CancelledError:
            if ask.reading is not None:  # nothing is taken for one who has gone
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
        # a node of a cluster has not all of them
        for part in [[ask] for ask in asked] if self._streams.link.is_cluster else [asked]:
            task = asyncio.get_running_loop().create_task(self._read(part))
            for ask in part:
                ask.reading = task
            self._tasks.add(task)
            task.add_done_callback(partial(self._ended, part))

    def _ended(self, asked: list[Ask], task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            _fail(asked, BusDown())  # some may have been taken: the others have to look

    async def _read(self, asked: list[Ask]) -> None:
        settings = self._streams.settings
        asked = [ask for ask in asked if self._may_read(ask)]
        if not asked:
            return
        try:
            found = await self._streams.read([ask.stream for ask in asked], settings.batch_size, settings.block_ms)
        except Exception as error:  # nobody who waits is left alone
            _fail(asked, error)
        else:
            self._hand_out(asked, found)

    def _may_read(self, ask: Ask) -> bool:
        if ask.answer.done():  # nobody waits any more
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


def _fail(asked: list[Ask], error: Exception) -> None:
    for ask in asked:
        if not ask.answer.done():
            ask.answer.set_exception(error)
