"""Refuses sends that waited longer than their deadline, and logs how many: one line at once, then at most one per
`EVERY_S`, since an outage refuses every send of every client."""

from __future__ import annotations

import asyncio
import time

import structlog

from nexo.errors import NexoError
from nexo.metrics.sending import SendMeter
from nexo.store.pending import Pending, call

log = structlog.get_logger()

EVERY_S = 5.0


class LateSends:
    def __init__(self, meter: SendMeter) -> None:
        self._meter = meter
        self._count = 0  # refused and not logged
        self._logged_at = -EVERY_S
        self._timer: asyncio.TimerHandle | None = None
        self.error = ""  # why the last attempt to write failed; empty after a commit

    def refuse(self, late: list[Pending]) -> None:
        for pending in late:
            if pending.unknown_since is None:
                name, detail = "server_busy", "The database did not take this send, or one before it; it was not saved"
                self._meter.results.add("late")
            else:
                self._meter.results.add("failed")
                name, detail = "internal_error", "The connection to the database was lost during a write"
            call(pending, NexoError(name, detail, retry_after_ms=1000))

    def note(self, count: int) -> None:
        """Log refusals, together with others of the next seconds if a line was written a moment ago."""
        self._count += count
        if self._timer is not None:
            return
        wait_s = self._logged_at + EVERY_S - time.monotonic()
        if wait_s > 0:
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._log)
        else:
            self._log()

    def _log(self) -> None:
        self._timer = None
        self._logged_at = time.monotonic()
        log.warning("sends_refused", error=self.error, size=self._count)
        self._count = 0

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._log()
