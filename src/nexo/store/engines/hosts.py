"""The hosts of one database server: which of them is used, and how it is found.

The host that was good last is tried first. Each gets a second, because a machine that is silent must not use up the
time of other hosts; only if none answers are they tried once more, with more patience.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import structlog

log = structlog.get_logger()

Place = tuple[str, int]  # host and port; empty where a socket file is used
Open = Callable[[Place], Awaitable[Any]]

ALONE_S = 10.0  # for the only host
PER_HOST_S = (1.0, 3.0)


class NotPrimary(ConnectionError):
    """This host can be reached, and takes no writes or is no part of its cluster now."""


class NoHost(ConnectionError):
    """None of several hosts can be used now."""


class Hosts:
    def __init__(self, places: Sequence[Place]) -> None:
        self._places = list(places)
        self.good: Place | None = None
        self.on_move: Callable[[Place], None] = lambda place: None  # called with the host that is used from now on

    async def connect(self, open_at: Open) -> tuple[Any, Place]:
        """Returns a connection and its host. Raises what the driver raises for the only host, else NoHost, caused by
        the first failure that is not about the network."""
        if len(self._places) == 1:
            async with asyncio.timeout(ALONE_S):
                return await open_at(self._places[0]), self._places[0]
        failures: dict[Place, Exception] = {}
        for limit_s in PER_HOST_S:
            for place in self._order():
                if limit_s > PER_HOST_S[0] and not isinstance(failures[place], TimeoutError):
                    continue  # its answer would be the same
                try:
                    async with asyncio.timeout(limit_s):
                        connection = await open_at(place)
                except Exception as error:
                    failures[place] = error
                    if place == self.good:
                        self.good = None
                else:
                    self._use(place)
                    return connection, place
        words = "; ".join(f"{host}:{port}: {_words_of(error)}" for (host, port), error in failures.items())
        telling = next((one for one in failures.values() if not isinstance(one, OSError)), None)
        raise NoHost(f"no host of the database can be used ({words})") from telling

    def _order(self) -> list[Place]:
        return sorted(self._places, key=lambda place: place != self.good)

    def _use(self, place: Place) -> None:
        if place == self.good:
            return
        self.good = place
        log.info("database_host", host=place[0], port=place[1])
        self.on_move(place)


def _words_of(error: Exception) -> str:
    return "no answer in time" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
