"""Warns when the process has no file descriptor left: the event loop then refuses connections without a log line."""

from __future__ import annotations

import asyncio
import os
import resource
import time
from collections.abc import Callable

import structlog

log = structlog.get_logger()

LOOK_S = 1.0
LOG_AGAIN_S = 60.0
RESERVE = 8  # descriptors that are still free when the first warning is written


class FileWatch:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: float | None = None
        self._logged_at = 0.0

    async def run(self) -> None:
        while True:
            self.look()
            await asyncio.sleep(LOOK_S)

    def look(self) -> None:
        """Compare the lowest free descriptor with the limit; that costs the same with a hundred thousand open ones."""
        limit, now = resource.getrlimit(resource.RLIMIT_NOFILE)[0], self._clock()
        if _lowest_free() + RESERVE < limit:
            if self._since is not None:
                log.info("files_available", limit=limit, after_s=round(now - self._since))
                self._since = None
            return
        if self._since is None or now - self._logged_at >= LOG_AGAIN_S:
            self._since = now if self._since is None else self._since
            self._logged_at = now
            log.error("files_exhausted", limit=limit, hint="connections are refused: raise the limit of open files")


def _lowest_free() -> float:
    try:
        number = os.dup(2)
    except OSError:
        return float("inf")
    os.close(number)
    return number
