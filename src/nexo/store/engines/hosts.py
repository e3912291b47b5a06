"""The hosts of one database server: which of them is used, and how it is found.

The host that was good last is asked first. One that is silent for a second does not use up the time of other hosts: the
next one is asked beside it, and those that take no writes are asked again and again while it is waited for, because one
of them may be promoted at any moment. Hosts that were silent are asked last from then on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import structlog

log = structlog.get_logger()

Place = tuple[str, int]  # host and port; empty where a socket file is used
Open = Callable[[Place], Awaitable[Any]]
Discard = Callable[[Any], None]

ALONE_S = 10.0  # for the only host
ALL_S = 4.0  # for all of several
SILENT_S = 1.0
AGAIN_S = 0.25


class NotPrimary(ConnectionError):
    """This host can be reached, and takes no writes or is no part of its cluster now."""


class NoHost(ConnectionError):
    """None of several hosts can be used now."""


class Hosts:
    def __init__(self, places: Sequence[Place]) -> None:
        self._places = list(places)
        self.good: Place | None = None
        self._silent: set[Place] = set()  # when they were asked last
        self.on_move: Callable[[Place], None] = lambda place: None  # called with the host that is used from now on

    async def connect(self, open_at: Open, discard: Discard) -> tuple[Any, Place]:
        """Returns a connection and its host; `discard` closes one that arrived too late. Raises what the driver raises
        for the only host, else NoHost, caused by the first failure that is not about the network."""
        if len(self._places) == 1:
            async with asyncio.timeout(ALONE_S):
                return await open_at(self._places[0]), self._places[0]
        trying: dict[asyncio.Future[Any], Place] = {}
        try:
            return await self._search(open_at, trying)
        finally:
            for attempt in trying:
                attempt.cancel()
                attempt.add_done_callback(partial(_discard_result, discard))

    async def _search(self, open_at: Open, trying: dict[asyncio.Future[Any], Place]) -> tuple[Any, Place]:
        ends = time.monotonic() + ALL_S
        failures: dict[Place, Exception] = {}
        line = self._order()  # to be asked
        while (left_s := ends - time.monotonic()) > 0:
            if line:
                place = line.pop(0)
                trying[asyncio.ensure_future(open_at(place))] = place
            pause_s = SILENT_S if line else AGAIN_S
            done, _ = await asyncio.wait(trying, timeout=min(left_s, pause_s), return_when=asyncio.FIRST_COMPLETED)
            for attempt in done:
                place = trying[attempt]
                error = attempt.exception()
                if error is None:
                    del trying[attempt]
                    self._use(place)
                    return attempt.result(), place
                del trying[attempt]
                self._failed(place, failures, error)
            if not line and not trying:
                break  # each has answered
            if not done:
                self._silent.update(trying.values())
                line = line or [place for place in self._order() if place not in trying.values()]
        for place in trying.values():
            self._failed(place, failures, TimeoutError())
        words = "; ".join(
            f"{place[0]}:{place[1]}: {_words_of(failures[place])}" for place in self._places if place in failures
        )
        telling = next((one for one in failures.values() if not isinstance(one, OSError)), None)
        raise NoHost(f"no host of the database can be used ({words})") from telling

    def _failed(self, place: Place, failures: dict[Place, Exception], error: BaseException) -> None:
        if not isinstance(error, Exception):
            raise error
        failures[place] = error
        if not isinstance(error, TimeoutError):
            self._silent.discard(place)
        if place == self.good:
            self.good = None

    def _order(self) -> list[Place]:
        return sorted(self._places, key=lambda place: (place != self.good, place in self._silent))

    def _use(self, place: Place) -> None:
        self._silent.discard(place)
        if place == self.good:
            return
        self.good = place
        log.info("database_host", host=place[0], port=place[1])
        self.on_move(place)


def _discard_result(discard: Discard, attempt: asyncio.Future[Any]) -> None:
    if not attempt.cancelled() and attempt.exception() is None:
        discard(attempt.result())


def _words_of(error: Exception) -> str:
    return "no answer in time" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
