"""The cycle collector of Python, tuned for a server: rare runs over young objects, a full one when memory has grown.

A full run stops the process for about a second per ten million objects. The thresholds of the collector alone would
start it during load or, set higher, never; so it runs when it may gain something, and now and then in any case.
"""

from __future__ import annotations

import asyncio
import gc
import time

import structlog

from nexo.metrics.process import memory_bytes

log = structlog.get_logger()

CHECK_S = 15.0
IN_ANY_CASE_S = 600.0
GROWTH_BYTES = 64 * 1024 * 1024
GROWTH_SHARE = 0.25  # of the memory in use after the last full run


def calm() -> None:
    """Exclude what exists now from the cycle collector, and run it less often than the default, but not so rarely that
    one run is noticed: 50,000 new objects take it 40 ms. Full runs are left to `Collector`."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 200, 1_000_000)


class Collector:
    def __init__(self) -> None:
        self._memory_bytes = memory_bytes()
        self._ran_at = time.monotonic()

    async def run(self) -> None:
        """Run until cancelled (a service of `Background`)."""
        while True:
            await asyncio.sleep(CHECK_S)
            self.check(time.monotonic(), memory_bytes())

    def check(self, now: float, used_bytes: int) -> bool:
        """Make a full run if it is due. Returns whether it was."""
        grown = used_bytes - self._memory_bytes >= max(GROWTH_BYTES, self._memory_bytes * GROWTH_SHARE)
        if not grown and now - self._ran_at < IN_ANY_CASE_S:
            return False
        started = time.perf_counter()
        freed = gc.collect()
        taken_ms = round((time.perf_counter() - started) * 1000, 1)
        self._ran_at, self._memory_bytes = now, memory_bytes()
        log.debug("collected", objects=freed, ms=taken_ms, grown=grown)
        return True
