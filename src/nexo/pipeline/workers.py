"""The shards of this process: taken from the database, held while it lives, worked on one task each."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import structlog

from nexo.bus.redis_link import BusDown
from nexo.errors import NexoError
from nexo.metrics.pipeline import SaveMeter
from nexo.pipeline.saving import ShardWorker
from nexo.pipeline.streams import Streams
from nexo.ports import OwnerStore

log = structlog.get_logger()

LOOK_S = 5.0  # for entries that were left when two-phase was switched off
STOP_S = 5.0


class Workers:
    def __init__(
        self,
        streams: Streams,
        owners: OwnerStore,
        owner: str,
        is_enabled: bool,
        make_worker: Callable[[int, int], ShardWorker],
        meter: SaveMeter,
    ) -> None:
        self._streams = streams
        self._owners = owners
        self._owner = owner
        self._is_enabled = is_enabled
        self._make_worker = make_worker
        self._meter = meter
        self._ttl_s = streams.settings.owner_ttl_s
        self._held: dict[int, int] = {}  # shard → epoch
        self._running: dict[int, tuple[ShardWorker, asyncio.Task[None]]] = {}
        self._task: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Finish what was taken and hand the shards over at once."""
        self._stopping.set()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
        await self._lose(list(self._running), STOP_S)
        if self._held:
            with contextlib.suppress(NexoError):
                await self._owners.release(self._owner, self._held)
            self._held = {}

    async def _run(self) -> None:
        renewed_at = 0.0
        loop = asyncio.get_running_loop()
        while not self._stopping.is_set():
            try:
                if self._is_enabled or self._held or await self._something_left():
                    await self._hold()
                    renewed_at = loop.time()
                    await self._measure()
                    if not self._is_enabled and not await self._something_left():
                        await self._let_go()
            except NexoError as error:
                log.warning("shards_not_renewed", error=error.name)
                if loop.time() - renewed_at > self._ttl_s:  # another one may have them by now
                    await self._lose(list(self._running), 0)
                    self._held = {}
            except BusDown:
                pass
            except Exception:
                log.exception("workers_failed")
            pause_s = self._ttl_s / 3 if self._is_enabled or self._held else LOOK_S
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause_s)

    async def _hold(self) -> None:
        """Keep what is held, take what nobody holds, and see that each is worked on."""
        if self._held:
            kept = await self._owners.renew(self._owner, self._held, self._ttl_s)
            lost = self._held.keys() - kept
            if lost:
                log.warning("shards_lost", shards=sorted(lost))
                await self._lose(list(lost), 0)
                self._held = {shard: epoch for shard, epoch in self._held.items() if shard in kept}
        taken = await self._owners.take(self._owner, self._streams.settings.shards, self._ttl_s)
        if taken:
            log.info("shards_taken", shards=sorted(taken))
            self._held |= taken
        for shard, epoch in self._held.items():
            running = self._running.get(shard)
            if running is None or running[1].done():
                if running is not None and not running[1].cancelled():
                    log.error("shard_worker_failed", shard=shard, error=repr(running[1].exception()))
                worker = self._make_worker(shard, epoch)
                self._running[shard] = worker, asyncio.get_running_loop().create_task(worker.run())

    async def _lose(self, shards: list[int], patience_s: float) -> None:
        lost = [self._running.pop(shard) for shard in shards if shard in self._running]
        for worker, _ in lost:
            worker.stop()
        tasks = [task for _, task in lost]
        if tasks and patience_s:
            await asyncio.wait(tasks, timeout=patience_s)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _let_go(self) -> None:
        await self._lose(list(self._running), STOP_S)
        await self._owners.release(self._owner, self._held)
        self._held = {}
        self._meter.shards = 0

    async def _something_left(self) -> bool:
        lengths = await self._streams.lengths(range(self._streams.settings.shards))
        return any(accepted or to_save for accepted, to_save, _ in lengths.values())

    async def _measure(self) -> None:
        lengths = await self._streams.lengths(list(self._held))
        for i, name in enumerate(("accepted", "to_save", "dead")):
            self._meter.lengths[name] = sum(three[i] for three in lengths.values())
        self._meter.shards = len(self._held)
