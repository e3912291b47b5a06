"""Measures how fast sends would be accepted, and changes nothing for them: each is saved and acknowledged directly.
A copy is written by the script that accepts, under keys of its own which no worker reads and which are removed at
once."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque

from msgspec import structs

from nexo.background import Background, Running
from nexo.bus.redis_client import BusDown, RedisClient
from nexo.config.tree import TwoPhaseConfig
from nexo.core.model import Draft
from nexo.ids import now_ms
from nexo.metrics.two_phase import AcceptMeter
from nexo.ports import Address
from nexo.two_phase.entries import StreamEntry
from nexo.two_phase.share import TwoPhaseShare
from nexo.two_phase.streams import Run, Streams

BATCH_MAX = 256
WAITING_MAX = 1000  # copies; further ones are not measured
CLAIM_TTL_S = 1


class AcceptObserver:
    def __init__(
        self,
        link: RedisClient,
        settings: TwoPhaseConfig,
        prefix: str,
        instance_id: str,
        meter: AcceptMeter,
        background: Background,
    ) -> None:
        """The keys belong to this instance, so that instances do not remove each other's."""
        settings = structs.replace(settings, claim_ttl_s=CLAIM_TTL_S)
        self._streams = Streams(link, settings, f"{prefix}observed:{instance_id}:", instance_id)
        self._instance_id = instance_id
        self._meter = meter
        self._background = background
        self.share = TwoPhaseShare(settings)
        self.share.set(settings.share if settings.observe else 0.0)
        self._waiting: deque[tuple[Draft, float]] = deque()
        self._wake = asyncio.Event()
        self._service: Running | None = None

    def start(self) -> None:
        self._service = self._background.serve("accept_observer", self._work)

    async def stop(self) -> None:
        if self._service is not None:
            await self._service.stop()

    def observe(self, draft: Draft) -> None:
        if not self.share.takes(draft):
            return
        if len(self._waiting) >= WAITING_MAX or self._streams.link.is_broken:
            self._meter.fates.add("unobserved")
            return
        # a copy: the original is being saved
        copy = structs.replace(draft, server_msg_id=0, accepted_at=now_ms())
        self._waiting.append((copy, time.monotonic()))
        self._wake.set()

    async def _work(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                batch = [self._waiting.popleft() for _ in range(min(BATCH_MAX, len(self._waiting)))]
                try:
                    await self._write(batch)
                except BusDown:
                    self._meter.fates.add("unobserved", len(batch))

    async def _write(self, batch: list[tuple[Draft, float]]) -> None:
        runs: dict[tuple[str, str], list[Draft]] = {}
        for draft, _ in batch:
            runs.setdefault((draft.sender_id, draft.conversation_id), []).append(draft)
        started = time.monotonic()
        try:
            await self._streams.accept([self._run(drafts) for drafts in runs.values()])
            now = time.monotonic()
        finally:
            with contextlib.suppress(BusDown):
                await self._streams.remove({self._streams.shard_of(conversation_id) for _, conversation_id in runs})
        self._meter.write.observe(now - started)
        for _, since in batch:
            self._meter.ack.observe(now - since)
        self._meter.fates.add("observed", len(batch))

    def _run(self, drafts: list[Draft]) -> Run:
        address = Address(self._instance_id, drafts[0].sender_id, "observed")
        entries = [
            StreamEntry("", draft, draft.accepted_at, producer=self._instance_id, address=address) for draft in drafts
        ]
        return Run(entries, address)
