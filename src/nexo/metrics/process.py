"""The process itself: memory, CPU, files, and how late the event loop is."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import time
from collections.abc import Iterable
from pathlib import Path

from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.measures import Buckets

LAG_EVERY_S = 0.25
_PAGE_BYTES = resource.getpagesize()
_STARTED = time.time()


def memory_bytes() -> int:
    """Resident now. Where /proc is missing the greatest so far is the best there is."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_BYTES
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def open_files() -> int:
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return 0


class ProcessMeter:
    """Runs on the event loop that it watches, between `start` and `stop`."""

    def __init__(self, version: str, engine: str, websocket: str) -> None:
        self._info = (version, engine, websocket)
        self.lag = Buckets()
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._due = time.monotonic() + LAG_EVERY_S
        self._timer = asyncio.get_running_loop().call_later(LAG_EVERY_S, self._tick)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _tick(self) -> None:
        # not the loop's own clock: uvloop's stands still within a turn
        self.lag.observe(max(0.0, time.monotonic() - self._due))
        self.start()

    def samples(self) -> Iterable[Sample]:
        yield f.INFO(1, *self._info)
        yield f.LOOP_LAG(self.lag)
        yield f.CPU(time.process_time())
        yield f.MEMORY(memory_bytes())
        yield f.FILES(open_files())
        yield f.FILES_LIMIT(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        yield f.STARTED(_STARTED)
        for generation, stats in enumerate(gc.get_stats()):
            yield f.COLLECTIONS(stats["collections"], str(generation))
