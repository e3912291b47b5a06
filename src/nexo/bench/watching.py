"""The server while it is measured: CPU, memory, the size of its files and the length of its queues over time."""

from __future__ import annotations

import asyncio
import contextlib
import statistics
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import msgspec

from nexo.bench.api_requests import HttpCaller
from nexo.bench.http import ServerAddress
from nexo.bench.processes import usage_of

LONG_S = 60.0  # in shorter runs queues and trends say nothing
ASK_EVERY_S = 5.0  # /metrics costs the server milliseconds, which a short run would notice
_QUEUE = 'nexo_queue_length{queue="'


class ServerPoint(msgspec.Struct):
    """One moment of the server's life."""

    at_s: float  # since the start of the run, warm-up included
    cpu_share: float  # of one core, since the point before
    rss_mib: float
    files_mib: dict[str, float] = {}
    queues: dict[str, float] = {}


class Watch:
    """Fills `points` until it is cancelled."""

    def __init__(self, pids: Sequence[int], data: str, urls: Sequence[str], step_s: float, long: bool) -> None:
        self.points: list[ServerPoint] = []
        self._pids = pids
        self._data = Path(data) if data else None
        self._address = ServerAddress(urls[0]) if long and len(urls) == 1 else None
        self._step_s = step_s

    async def run(self, start: float) -> None:
        if not self._pids:
            return
        caller = HttpCaller([self._address]) if self._address is not None else None
        try:
            await self._run(start, caller)
        finally:
            if caller is not None:
                caller.close()

    async def _run(self, start: float, caller: HttpCaller | None) -> None:
        await asyncio.sleep(max(0.0, start - perf_counter()))
        before, before_at, asked = usage_of(self._pids).cpu_s, perf_counter(), 0.0
        while True:
            await asyncio.sleep(max(0.0, before_at + self._step_s - perf_counter()))
            usage, now = usage_of(self._pids), perf_counter()
            share = (usage.cpu_s - before) / (now - before_at)
            point = ServerPoint(now - start, share, usage.rss_bytes / 2**20, self._files())
            before, before_at = usage.cpu_s, now
            if caller is not None and now - asked >= ASK_EVERY_S:
                asked = now
                point.queues = await _queues(caller)
            self.points.append(point)

    def _files(self) -> dict[str, float]:
        found = {}
        if self._data is not None:
            for path in sorted(self._data.glob("*.db*")):
                with contextlib.suppress(OSError):
                    found[path.name] = path.stat().st_size / 2**20
        return found


async def _queues(caller: HttpCaller) -> dict[str, float]:
    """How much waits in each of the server's queues; nothing where /metrics is not for us."""
    with contextlib.suppress(Exception):
        text = (await caller.fetch("/metrics")).decode()
        lines = (line[len(_QUEUE) :] for line in text.splitlines() if line.startswith(_QUEUE))
        return {name: float(rest.split()[-1]) for name, _, rest in (line.partition('"') for line in lines)}
    return {}


def growth_mib_per_min(points: Sequence[ServerPoint]) -> float:
    """The trend of the memory over the later two thirds, when caches have filled."""
    later = points[len(points) // 3 :]
    return statistics.linear_regression([p.at_s for p in later], [p.rss_mib for p in later]).slope * 60
