"""Two-phase acknowledgement of one process: it accepts sends, saves the shards that it holds, or both."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable

from nexo.bus.redis_link import BusDown, Command, RedisLink
from nexo.config import Config, RedisUrl
from nexo.ids import IdGenerator
from nexo.metrics.families import Sample
from nexo.metrics.pipeline import SaveMeter
from nexo.pipeline.accepting import Accepting
from nexo.pipeline.reading import Reading
from nexo.pipeline.saving import ShardWorker
from nexo.pipeline.settling import Settling, Teller
from nexo.pipeline.streams import Streams
from nexo.pipeline.together import Together
from nexo.pipeline.workers import Workers
from nexo.ports import MessageStore, OwnerStore


class Pipeline:
    def __init__(
        self,
        config: Config,
        url: RedisUrl,
        *,
        messages: MessageStore,
        owners: OwnerStore,
        new_ids: IdGenerator,
        teller: Teller,
        instance_id: str,
        saves: bool,
    ) -> None:
        """Without `saves` it only accepts. What is left when two-phase is switched off is saved all the same."""
        settings = config.two_phase
        timeout_s = config.redis.timeout_ms / 1000
        prefix = config.redis.prefix
        self._breaker_s = config.bus.breaker_ms / 1000
        # a worker's reads wait for entries: they must not hold up those who accept
        self._links = [RedisLink(url, timeout_s), RedisLink(url, timeout_s + settings.block_ms / 1000)]
        streams = [Streams(link, settings, prefix, instance_id) for link in self._links]
        self.accepting = Accepting(streams[0], settings, messages, new_ids, instance_id)
        self.accepting.tell = teller.tell_connection
        self.accepting.publish = teller.message_saved
        self.accepting.flush = teller.flush
        self._meter = SaveMeter()
        permissions = Together(messages.may_send)
        reading = Reading(streams[1], self._meter)

        def make_worker(shard: int, epoch: int) -> ShardWorker:
            def is_owner() -> bool:
                return self._workers.surely_holds(shard, epoch)

            settling = Settling((shard, epoch), streams[1], messages, teller, self._meter, is_owner)
            return ShardWorker(shard, streams[1], reading, settling, teller, self._meter, permissions.ask, is_owner)

        self._workers = Workers(streams[1], owners, instance_id, settings.enabled, make_worker, self._meter)
        self._saves = saves
        self._probing: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._probing = asyncio.get_running_loop().create_task(self._look_after_links())
        self.accepting.start()
        if self._saves:
            self._workers.start()

    async def stop(self) -> None:
        await self.accepting.stop()
        await self._workers.stop()
        if self._probing is not None:
            self._probing.cancel()
            await asyncio.gather(self._probing, return_exceptions=True)
        for link in self._links:
            await link.close()

    async def _look_after_links(self) -> None:
        """One timeout per breaker window, whatever waits behind it."""
        while True:
            await asyncio.sleep(self._breaker_s)
            for link in self._links:
                if link.is_broken:
                    with contextlib.suppress(BusDown):
                        await link.run([Command(("PING",))], probe=True)

    def samples(self) -> Iterable[Sample]:
        yield from self.accepting.samples()
        yield from self._meter.samples()
