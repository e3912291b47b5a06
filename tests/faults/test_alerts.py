"""The alerts of deploy/grafana fire: a stalled database, a dead worker, dead letters."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
import redis as redis_client

from harness.alerts import Prometheus, rules
from harness.cluster import Cluster
from harness.followers import following
from harness.server_process import ServerProcess
from harness.servers import Postgres, Redis
from harness.two_phase import ON, QUICK, WorkerProcess
from harness.waiting import until

pytestmark = pytest.mark.servers

DEAD_MAX = 4


class Watched:
    """A server that accepts, a worker that saves, and both scraped."""

    def __init__(self, database: Postgres, redis: Redis, one: Cluster, worker: WorkerProcess) -> None:
        self.database = database
        self.redis = redis
        self.one = one
        self.worker = worker
        self.prometheus = Prometheus(server=one.instances[0].address, worker=worker.address)

    async def fires(self, alert: str) -> None:
        await until(lambda: asyncio.to_thread(self.prometheus.scrape_firing, alert), f"{alert} fires")

    async def ends(self, alert: str) -> None:
        await until(lambda: self._is_silent(alert), f"{alert} ends")

    async def _is_silent(self, alert: str) -> bool:
        return not await asyncio.to_thread(self.prometheus.scrape_firing, alert)


@contextlib.asynccontextmanager
async def watched() -> AsyncIterator[Watched]:
    with Postgres() as database, Redis("appendonly no") as redis:
        url = database.create_database()
        settings = {**ON, **QUICK, "two_phase__workers": False, "two_phase__dead_max": DEAD_MAX}
        running = Cluster(url, redis.url, 1, **settings)
        assert running.run("migrate").returncode == 0
        with running, WorkerProcess(running.settings) as worker:
            yield Watched(database, redis, running, worker)


async def test_the_alerts_fire_and_end() -> None:
    async with watched() as site:
        assert not site.prometheus.scrape_firing("NexoDown")
        quiet = {"NexoNotReady", "NexoUnsavedStalled", "NexoDeadLetters", "NexoDeadLettersFull"}
        await site.ends("NexoNotReady")
        assert [name for name in quiet if site.prometheus.firing(name)] == []
        # a database that hangs
        site.database.pause()
        try:
            await site.fires("NexoNotReady")
        finally:
            site.database.resume()
        await site.ends("NexoNotReady")
        # a worker that is gone: Prometheus misses it, and the servers see what it leaves unsaved
        async with following(site.one.instances, 0, 0) as (sender, receiver):
            await sender.saved(sender.put(receiver.user_id))
            site.worker.kill()
            sender.put(receiver.user_id)
            await site.fires("NexoDown")
            await site.fires("NexoUnsavedStalled")
            await asyncio.to_thread(site.worker.start)
            await site.ends("NexoUnsavedStalled")
        await site.ends("NexoDown")
        # dead letters: one is a ticket, nearly as many as are kept a page
        with redis_client.Redis.from_url(site.redis.url) as client:
            client.xadd("nexo:stream:{0}:dead", {"why": "test"})
            await site.fires("NexoDeadLetters")
            assert not site.prometheus.firing("NexoDeadLettersFull")
            for _ in range(DEAD_MAX - 1):
                client.xadd("nexo:stream:{0}:dead", {"why": "test"})
            await site.fires("NexoDeadLettersFull")


async def test_every_rule_can_be_evaluated() -> None:
    with ServerProcess() as server:
        prometheus = Prometheus(server=server.address)
        prometheus.scrape()
        prometheus.scrape()
        assert [name for name in rules() if prometheus.firing(name)] == []
