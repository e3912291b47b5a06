"""The shards of this process: taken from the database, held while it lives, worked on one task each.

Instances share them evenly: whoever saves says so in Redis, and whoever holds more than its part finishes what it
has taken and lets go of the rest. That is only a hint; who owns a shard is a row in the database.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable

import structlog

from nexo.bus.redis_link import BusDown
from nexo.errors import NexoError
from nexo.metrics.pipeline import SaveMeter
from nexo.pipeline.saving import ShardWorker
from nexo.pipeline.streams import Streams
from nexo.ports import OwnerStore

log = structlog.get_logger()

LOOK_S = 1.0  # for shards that nobody holds
DRAIN_LOOK_S = 2.0  # for entries that were left when two-phase was switched off
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
        self._shards = streams.settings.shards
        self._held: dict[int, int] = {}  # shard → epoch
        self._renewed_at = 0.0  # before the database was asked to
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
            with contextlib.suppress(BusDown):
                await self._streams.join(self._ttl_s, stay=False)
        with contextlib.suppress(NexoError):
            await self._let_go(list(self._held))

    def surely_holds(self, shard: int, epoch: int) -> bool:
        """By this process's own clock: while it stood still, it may have lost everything."""
        return self._held.get(shard) == epoch and time.monotonic() - self._renewed_at < self._ttl_s

    async def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                await self._look()
            except NexoError as error:
                log.warning("shards_not_renewed", error=error.name)
                if time.monotonic() - self._renewed_at > self._ttl_s:  # another one may have them by now
                    await self._lose(list(self._held), 0)
            except BusDown:
                pass
            except Exception:
                log.exception("workers_failed")
            look_s = LOOK_S if self._is_enabled else DRAIN_LOOK_S
            pause_s = min(look_s, self._ttl_s / 3) if self._is_enabled or self._held else look_s
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause_s)

    async def _look(self) -> None:
        await self._renew()
        if self._is_enabled:
            await self._share(await self._others())
        else:
            await self._drain()
        self._see_to_it()
        await self._measure()

    # -- holding ---------------------------------------------------------------------------------------------

    async def _renew(self) -> None:
        now = time.monotonic()
        if not self._held or now - self._renewed_at < self._ttl_s / 3:
            return
        kept = await self._owners.renew(self._owner, self._held, self._ttl_s)
        self._renewed_at = now
        lost = self._held.keys() - kept
        if lost:
            log.warning("shards_lost", shards=sorted(lost))
            await self._lose(lost, 0)

    async def _others(self) -> int:
        """How many save, this one included; without Redis there is nothing to share either."""
        try:
            return max(1, await self._streams.join(max(self._ttl_s, 2 * LOOK_S)))
        except BusDown:
            return 1

    async def _share(self, workers: int) -> None:
        fair = -(-self._shards // workers)
        if len(self._held) > fair:
            excess = sorted(self._held)[fair:]
            log.info("shards_given_away", shards=excess, workers=workers)
            await self._let_go(excess)
        elif free := await self._owners.free(self._shards):
            await self._take(free, fair - len(self._held))

    async def _drain(self) -> None:
        """Two-phase is switched off here: only what was left, and what nobody else sees to."""
        lengths = await self._streams.lengths(range(self._shards))
        left = {shard for shard, (accepted, to_save, _) in lengths.items() if accepted or to_save}
        done = [shard for shard in self._held if shard not in left]
        if done:
            await self._let_go(done)
        if left and (free := left.intersection(await self._owners.free(self._shards))):
            await self._take(free, len(free))

    async def _take(self, shards: Iterable[int], at_most: int) -> None:
        now = time.monotonic()
        taken = await self._owners.take(self._owner, list(shards), self._ttl_s, at_most)
        if taken:
            log.info("shards_taken", shards=sorted(taken))
            if not self._held:
                self._renewed_at = now
            self._held |= taken

    def _see_to_it(self) -> None:
        """Each shard that is held is worked on."""
        for shard, epoch in self._held.items():
            running = self._running.get(shard)
            if running is None or running[1].done():
                if running is not None and not running[1].cancelled():
                    log.error("shard_worker_failed", shard=shard, error=repr(running[1].exception()))
                worker = self._make_worker(shard, epoch)
                self._running[shard] = worker, asyncio.get_running_loop().create_task(worker.run())

    # -- letting go ------------------------------------------------------------------------------------------

    async def _let_go(self, shards: list[int]) -> None:
        """Finish what was taken, then tell the database. Should that fail, they end by themselves."""
        held = {shard: self._held[shard] for shard in shards}
        await self._lose(shards, STOP_S)
        if held:
            await self._owners.release(self._owner, held)

    async def _lose(self, shards: Iterable[int], patience_s: float) -> None:
        shards = list(shards)
        lost = [self._running.pop(shard) for shard in shards if shard in self._running]
        for worker, _ in lost:
            worker.stop()
        tasks = [task for _, task in lost]
        if tasks and patience_s:
            await asyncio.wait(tasks, timeout=patience_s)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for shard in shards:
            self._held.pop(shard, None)

    async def _measure(self) -> None:
        shards = list(self._held)
        lengths = await self._streams.lengths(shards) if shards else {}
        for i, name in enumerate(("accepted", "to_save", "dead")):
            self._meter.lengths[name] = sum(three[i] for three in lengths.values())
        pending = await self._streams.pending(shards) if shards else (0, 0)
        self._meter.pending["accepted"], self._meter.pending["to_save"] = pending
        self._meter.shards = len(shards)
