"""Two-phase acknowledgement of one process: it accepts sends, saves the shards that it holds, or both."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable

from nexo.background import Background, Running
from nexo.bus.redis_client import BusDown, RedisClient, RedisCommand
from nexo.config import Config, RedisUrl
from nexo.core.events import Event
from nexo.ids import IdGenerator
from nexo.metrics.families import Sample
from nexo.metrics.two_phase import SaveMeter
from nexo.ports import MessageStore, OwnerStore
from nexo.two_phase.acceptor import Acceptor
from nexo.two_phase.backlog import Backlog
from nexo.two_phase.coalesce import Coalescer
from nexo.two_phase.observer import AcceptObserver
from nexo.two_phase.shard_owner import ShardOwner
from nexo.two_phase.shard_reader import ShardReader
from nexo.two_phase.shard_saver import ShardSaver, Teller
from nexo.two_phase.shard_worker import ShardWorker
from nexo.two_phase.streams import Streams


class TwoPhaseService:
    def __init__(
        self,
        config: Config,
        url: RedisUrl,
        *,
        messages: MessageStore,
        owners: OwnerStore,
        new_ids: IdGenerator,
        teller: Teller,
        deliver: Callable[[str, str, Event], None],
        instance_id: str,
        saves: bool,
        background: Background,
    ) -> None:
        """`deliver` pushes an event to a connection of this instance. Without `saves` this process only accepts.
        Entries that are left when two-phase is switched off are saved nevertheless."""
        settings = config.two_phase
        accepts = settings.enabled and not settings.observe
        timeout_s = config.redis.timeout_ms / 1000
        prefix = config.redis.prefix
        self._breaker_s = config.bus.breaker_ms / 1000
        # reads of workers block until there are entries: they must not delay the acceptor
        self._links = [RedisClient(url, timeout_s), RedisClient(url, timeout_s + settings.block_ms / 1000)]
        streams = [Streams(link, settings, prefix, instance_id) for link in self._links]
        self.acceptor = Acceptor(streams[0], settings, messages, new_ids, instance_id, deliver, background)
        self._observer = AcceptObserver(self._links[0], settings, prefix, instance_id, self.acceptor.meter, background)
        self.acceptor.observe = self._observer.observe
        self._meter = SaveMeter()
        permissions = Coalescer(messages.may_send)
        reading = ShardReader(streams[1], self._meter)

        def make_worker(shard: int, epoch: int) -> ShardWorker:
            def is_owner() -> bool:
                return self._workers.surely_holds(shard, epoch)

            settling = ShardSaver((shard, epoch), streams[1], messages, teller, self._meter, is_owner)
            return ShardWorker(shard, streams[1], reading, settling, teller, self._meter, permissions.ask, is_owner)

        self._workers = ShardOwner(streams[1], owners, instance_id, accepts, make_worker, self._meter, background)
        self._saves = saves
        self._background = background
        self.backlog = Backlog(streams[0], owners, self.acceptor.stop_accepting, accepts)
        self._services: list[Running] = []

    def start(self) -> None:
        self._services = [
            self._background.serve("redis_probe", self._probe_links),
            self._background.serve("backlog", self.backlog.run),
        ]
        self.acceptor.start()
        self._observer.start()
        if self._saves:
            self._workers.start()

    async def stop(self) -> None:
        await self.acceptor.stop()
        await self._observer.stop()
        await self._workers.stop()
        for service in self._services:
            await service.stop()
        for link in self._links:
            await link.close()

    async def _probe_links(self) -> None:
        """Probe broken connections, at the cost of one timeout per `bus.breaker_ms`."""
        while True:
            await asyncio.sleep(self._breaker_s)
            for link in self._links:
                if link.is_broken:
                    with contextlib.suppress(BusDown):
                        await link.run([RedisCommand(("PING",))], probe=True)

    def switch(self, share: float, observe: bool) -> None:
        """Accept sends to this share of the conversations from now on, or only measure that. What was accepted is saved
        in any case, and a connection's next sends to a conversation are accepted until its earlier ones there are
        saved."""
        accepted = 0.0 if observe else share
        self.acceptor.share.set(accepted)
        self._observer.share.set(share if observe else 0.0)
        self._workers.is_enabled = self.backlog.is_enabled = accepted > 0

    def samples(self) -> Iterable[Sample]:
        yield from self.acceptor.samples()
        yield from self._meter.samples()
        yield from self.backlog.samples()

    @property
    def trouble(self) -> str:
        """Why this instance is not ready; empty while accepted messages are saved."""
        return self.backlog.reason
