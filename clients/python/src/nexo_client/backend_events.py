"""What happened on the server, for a product's backend: `async for event in backend.events(cursor)`."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import AsyncIterator, Sequence

from msgspec import Struct

from nexo_client.core.backoff import Backoff
from nexo_client.core.options import Options
from nexo_client.errors import ClientError
from nexo_client.http import Call, decode
from nexo_client.types import BackendEvent

log = logging.getLogger("nexo_client")

WAIT_S = 30
LIMIT = 100
WARNED_FAILURES = (2, 10)  # in a row: a wrong address must not go unnoticed, and a long outage must not fill a log


class BackendEventPage(Struct):
    events: list[BackendEvent]
    next_cursor: str


class BackendEvents(AsyncIterator[BackendEvent]):
    """Events in order, each at least once, without end. Errors that may pass are waited for; others are raised.

    After an event was handled, its `cursor` is stored: a later run continues there. Pages are the unit of that, so a
    few events may be received again; `event_id` identifies them. `cursor` of the iterator is the same for all events
    before the current one.
    """

    def __init__(self, call: Call, cursor: str | None, types: Sequence[str], limit: int, wait_s: int) -> None:
        self.cursor = cursor
        self._call = call
        self._types = ",".join(types) or None
        self._limit = limit
        self._wait_s = wait_s
        self._backoff = Backoff(Options(), random.Random())
        self._waiting: deque[BackendEvent] = deque()
        self._current: BackendEvent | None = None

    async def __anext__(self) -> BackendEvent:
        if self._current is not None:
            self.cursor, self._current = self._current.cursor, None
        while not self._waiting:
            await self._fetch()
        self._current = self._waiting.popleft()
        return self._current

    async def _fetch(self) -> None:
        """Requests the next page. The first request without a cursor does not wait: its answer is the place from
        which a restart continues."""
        wait_s = 0 if self.cursor is None else self._wait_s
        asked = {"cursor": self.cursor, "types": self._types, "limit": self._limit, "wait_s": wait_s}
        failures = 0
        while True:
            try:
                data = await self._call("GET", "/server/events", asked, wait_s=wait_s)
                break
            except ClientError as error:
                if not error.is_transient:
                    raise
                if failures in WARNED_FAILURES:
                    log.warning("events cannot be fetched (%s), trying again", error)
                await asyncio.sleep(self._backoff.pause_s(failures, error.retry_after_ms))
                failures += 1
        page = decode(data, BackendEventPage)
        for event in page.events:
            event.cursor = self.cursor
        if page.events:
            page.events[-1].cursor = page.next_cursor
        else:
            self.cursor = page.next_cursor
        self._waiting.extend(page.events)
