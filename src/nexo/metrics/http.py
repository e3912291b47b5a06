"""HTTP requests by route. All paths that are no route count as one: clients may ask for any path."""

from __future__ import annotations

from collections.abc import Iterable

from nexo.metrics import families as f
from nexo.metrics.families import Sample, Source
from nexo.metrics.measures import OTHER, Buckets, Tally


class HttpMeter:
    def __init__(self) -> None:
        self._requests: dict[tuple[str, int], int] = {}
        self._taken: dict[str, Buckets] = {}
        self.errors = Tally()
        self._others: list[Source] = []

    def add(self, source: Source) -> None:
        """Something else on the HTTP side that is measured."""
        self._others.append(source)

    def observe(self, route: str, status: int, taken_s: float) -> None:
        """`route` is one of the table, or empty."""
        route = route or OTHER
        key = (route, status)
        self._requests[key] = self._requests.get(key, 0) + 1
        taken = self._taken.get(route)
        if taken is None:
            taken = self._taken[route] = Buckets()
        taken.observe(taken_s)

    def samples(self) -> Iterable[Sample]:
        for (route, status), count in self._requests.items():
            yield f.HTTP_REQUESTS(count, route, str(status))
        for route, taken in self._taken.items():
            yield f.HTTP_SECONDS(taken, route)
        for reason, count in self.errors.items():
            yield f.ERRORS(count, "http", reason)
        for source in self._others:
            yield from source()
