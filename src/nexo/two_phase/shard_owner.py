"""The shards that this process owns: leased in the database, renewed, each with a worker task.

Instances share them evenly: each one that saves is listed in Redis, and one that holds more than its share finishes
what it has taken and releases the rest. The list is only a hint; the owner of a shard is a row in the database.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable
from functools import partial

import structlog

from nexo.background import Background, Running
from nexo.bus.redis_client import BusDown
from nexo.errors import NexoError
from nexo.metrics.two_phase import SaveMeter
from nexo.ports import OwnerStore
from nexo.two_phase.shard_worker import ShardWorker
from nexo.two_phase.streams import Streams

log = structlog.get_logger()

LOOK_S = 1.0  # how often to look for shards without an owner
DRAIN_LOOK_S = 2.0  # for entries that were left when two-phase was switched off
STOP_S = 5.0
ROUND_S = 10.0  # how long stopping waits for the present round, whose leases would be lost until they expire
RELEASE_S = 1.0  # to finish what the committer has, when Redis does not answer


class ShardOwner:
    def __init__(
        self,
        streams: Streams,
        owners: OwnerStore,
        owner: str,
        is_enabled: bool,
        make_worker: Callable[[int, int], ShardWorker],
        meter: SaveMeter,
        background: Background,
    ) -> None:
        self._streams = streams
        self._owners = owners
        self._owner = owner
        self.is_enabled = is_enabled
        self._make_worker = make_worker
        self._meter = meter
        self._background = background
        self._ttl_s = streams.settings.owner_ttl_s
        self._shards = streams.settings.shards
        self._held: dict[int, int] = {}  # shard → epoch
        self._renewed_at = 0.0  # taken before the query
        self._running: dict[int, _Saving] = {}
        self._service: Running | None = None
        self._stopping = asyncio.Event()

    def start(self) -> None:
        self._service = self._background.serve("shard_owner", self._run)

    async def stop(self) -> None:
        """Finish what was taken and hand the shards over at once."""
        self._stopping.set()
        if self._service is not None:
            await self._service.finish(ROUND_S)
            with contextlib.suppress(BusDown):
                await self._streams.join(self._ttl_s, stay=False)
        with contextlib.suppress(NexoError):
            await self._release(list(self._held))

    def surely_holds(self, shard: int, epoch: int) -> bool:
        """Returns whether the lease is valid by this process's own clock: a stopped process may have lost it."""
        return self._held.get(shard) == epoch and time.monotonic() - self._renewed_at < self._ttl_s

    async def _run(self) -> None:
        """Look for shards, round after round, until `stop`."""
        while not self._stopping.is_set():
            try:
                await self._round()
            except NexoError as error:
                log.warning("shards_not_renewed", error=error.name)
                if time.monotonic() - self._renewed_at > self._ttl_s:  # another instance may own them by now
                    await self._lose(list(self._held), 0)
            except BusDown:
                await self._do_without_redis()
            look_s = LOOK_S if self.is_enabled else DRAIN_LOOK_S
            pause_s = min(look_s, self._ttl_s / 3) if self.is_enabled or self._held else look_s
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause_s)

    async def _round(self) -> None:
        # Redis is asked first: a shard that this process cannot read must be free for other instances
        if self.is_enabled:
            workers = max(1, await self._streams.join(max(self._ttl_s, 2 * LOOK_S)))
            await self._renew()
            await self._share(workers)
        else:
            lengths = await self._streams.lengths(range(self._shards))
            await self._renew()
            await self._drain({shard for shard, (accepted, to_save, _) in lengths.items() if accepted or to_save})
        self._ensure_workers()
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

    async def _share(self, workers: int) -> None:
        fair = -(-self._shards // workers)
        if len(self._held) > fair:
            excess = sorted(self._held)[fair:]
            log.info("shards_given_away", shards=excess, workers=workers)
            await self._release(excess)
        elif free := await self._owners.free(self._shards):
            await self._take(free, fair - len(self._held))

    async def _drain(self, left: set[int]) -> None:
        """Save what is left, while two-phase is switched off: take shards with entries and without an owner."""
        done = [shard for shard in self._held if shard not in left]
        if done:
            await self._release(done)
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

    def _ensure_workers(self) -> None:
        """Start a worker for every held shard that has none."""
        for shard, epoch in self._held.items():
            if shard not in self._running:
                self._running[shard] = _Saving(partial(self._make_worker, shard, epoch), self._background)

    # -- releasing -------------------------------------------------------------------------------------------

    async def _do_without_redis(self) -> None:
        """Release all shards: this process cannot read them, other instances may."""
        if self._held:
            log.warning("shards_released", shards=sorted(self._held), reason="Redis does not answer")
        try:
            await self._release(list(self._held), RELEASE_S)
        except NexoError as error:  # the leases expire
            log.warning("shards_not_released", error=error.name)
        self._meter.shards = 0

    async def _release(self, shards: list[int], patience_s: float = STOP_S) -> None:
        """Finish what was taken, then release the leases. If that fails, they expire."""
        held = {shard: self._held[shard] for shard in shards}
        await self._lose(shards, patience_s)
        if held:
            await self._owners.release(self._owner, held)

    async def _lose(self, shards: Iterable[int], patience_s: float) -> None:
        shards = list(shards)
        lost = [self._running.pop(shard) for shard in shards if shard in self._running]
        await asyncio.gather(*(saving.stop(patience_s) for saving in lost))
        for shard in shards:
            self._held.pop(shard, None)

    async def _measure(self) -> None:
        shards = list(self._held)
        self._meter.shards = len(shards)
        pending = await self._streams.pending(shards) if shards else (0, 0)
        self._meter.pending["accepted"], self._meter.pending["to_save"] = pending


class _Saving:
    """The worker of one shard. One that failed is replaced by a new one, which finds in Redis what it left."""

    def __init__(self, make: Callable[[], ShardWorker], background: Background) -> None:
        self._make = make
        self._worker: ShardWorker | None = None
        self._service = background.serve("shard_worker", self._run)

    async def _run(self) -> None:
        self._worker = self._make()
        await self._worker.run()

    async def stop(self, patience_s: float) -> None:
        """Let the worker finish what it has taken, for some seconds."""
        if self._worker is not None:
            self._worker.stop()
        await self._service.finish(patience_s)
