"""What all plain HTTP connections have in common: their bounds, their count, and one timer that ends the stuck ones."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Protocol

import structlog
from msgspec import Struct

from nexo.config import Config
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.measures import Tally
from nexo.transport.connection_counts import ConnectionCounts

log = structlog.get_logger()

SWEEP_S = 0.5  # pause between two rounds over all connections
PART = 500  # connections that are checked at once: more would block the event loop
REFUSED_MAX = 1000  # connections over a limit that get an answer; further ones are reset


class HttpBounds(Struct, frozen=True):
    arrival_s: float = 60.0  # for a request to arrive
    keep_alive_s: int = 30  # between two requests
    stalled_s: float = 10.0  # without a byte taken of what was written
    goodbye_s: float = 2.0  # for a refused client to read why
    pipelined_max: int = 16  # requests that wait behind the one that is answered

    @classmethod
    def of(cls, config: Config) -> HttpBounds:
        http = config.http
        return cls(http.arrival_s, http.keep_alive_s, http.stalled_s, pipelined_max=http.pipelined_max)


class Watched(Protocol):
    def check(self, now: float) -> None:
        """End the connection if its time is over."""


class HttpWatch:
    """The open HTTP connections of a port. The timer runs only while there are some."""

    def __init__(self, counts: ConnectionCounts, bounds: HttpBounds | None = None) -> None:
        self.counts = counts
        self.bounds = bounds or HttpBounds()
        self.ended = Tally(arrival=0, stalled=0, head=0, pipelined=0, malformed=0)  # by reason
        self.refused = 0  # connections that were refused and are still open
        self._open: set[Watched] = set()
        self._left: list[Watched] = []  # not checked yet in this round
        self._timer: asyncio.TimerHandle | None = None

    def samples(self) -> Iterable[Sample]:
        yield from self.counts.samples()
        yield from f.HTTP_ENDED.each(self.ended)

    def add(self, connection: Watched) -> None:
        self._open.add(connection)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SWEEP_S, self._sweep)

    def discard(self, connection: Watched) -> None:
        self._open.discard(connection)

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        if not self._left:
            self._left = list(self._open)
        part, self._left = self._left[:PART], self._left[PART:]
        for connection in part:
            if connection in self._open:
                try:
                    connection.check(now)
                except Exception:
                    log.exception("sweep_failed")
        if self._open:
            self._timer = loop.call_later(0 if self._left else SWEEP_S, self._sweep)
        else:
            self._timer = None
            self._left = []
