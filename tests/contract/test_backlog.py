"""What waits in the shards of accepted messages, and when that is a stall, on a real Redis and a Redis Cluster."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from harness.redis_cluster import RedisCluster
from harness.servers import Redis
from nexo.bus.redis_client import RedisClient, RedisCommand
from nexo.config import parse_redis_url
from nexo.config.tree import TwoPhaseConfig
from nexo.errors import NexoError
from nexo.two_phase import backlog as module
from nexo.two_phase.backlog import Backlog
from nexo.two_phase.streams import ShardBacklog, Streams

pytestmark = pytest.mark.servers
STALL_S = 5


@pytest.fixture(scope="module", params=["single", "cluster"])
def server(request: pytest.FixtureRequest) -> Iterator[Redis | RedisCluster]:
    with Redis("appendonly no") if request.param == "single" else RedisCluster() as running:
        yield running


class Clock:
    def __init__(self) -> None:
        self.now = time.monotonic()

    def monotonic(self) -> float:
        return self.now


class Owners:
    def __init__(self) -> None:
        self.held: set[int] = set()
        self.is_away = False

    async def free(self, shards: int) -> list[int]:
        if self.is_away:
            raise NexoError("server_busy")
        return [shard for shard in range(shards) if shard not in self.held]


class opened:
    """An empty Redis, its streams and what an instance concludes from them."""

    def __init__(self, server: Redis | RedisCluster, monkeypatch: pytest.MonkeyPatch) -> None:
        server.flush()
        self._link = RedisClient(parse_redis_url(server.url), 5.0)
        self.streams = Streams(self._link, TwoPhaseConfig(shards=4, stall_s=STALL_S), "test:", "one")
        self.owners = Owners()
        self.clock = Clock()
        self.closed: frozenset[int] = frozenset()
        owners: Any = self.owners
        self.backlog = Backlog(self.streams, owners, self._close, is_enabled=True)
        monkeypatch.setattr(module, "time", self.clock)

    async def __aenter__(self) -> opened:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._link.close()

    def _close(self, shards: frozenset[int]) -> None:
        self.closed = shards

    async def run(self, *words: Any) -> Any:
        (answer,) = await self._link.run([RedisCommand(words)])
        return answer

    async def add(self, name: str, age_s: float = 0.0) -> str:
        """An entry that came that long ago, before anything else."""
        entry_id = f"{int((time.time() - age_s) * 1000)}-1"
        await self.run("XADD", name, entry_id, "x", "1")
        return entry_id

    async def look(self, after_s: float = 0.0) -> str:
        self.clock.now += after_s
        await self.backlog._look()
        return self.backlog.reason

    def samples(self) -> dict[tuple[str, ...], float]:
        return {(one.name, *one.labels): one.value for one in self.backlog.samples()}  # type: ignore[misc]


async def test_every_shard_is_measured_whoever_saves_it(
    server: Redis | RedisCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(server, monkeypatch) as here:
        assert await here.streams.backlog() == [ShardBacklog(0, 0, 0, 0, "")] * 4
        first = await here.add(here.streams.accepted(1).name, age_s=9)
        await here.add(here.streams.accepted(1).name)
        older = await here.add(here.streams.to_save(2).name, age_s=30)
        await here.add(here.streams.accepted(2).name, age_s=20)
        await here.add(here.streams.dead(3), age_s=99)
        zero, one, two, three = await here.streams.backlog()
        assert zero == ShardBacklog(0, 0, 0, 0, "")
        assert (one.accepted, one.oldest_id) == (2, first)
        assert 8_900 <= one.oldest_age_ms <= 15_000
        assert (two.accepted, two.to_save, two.oldest_id) == (1, 1, older), "the older of both streams"
        assert three == ShardBacklog(0, 0, 1, 0, ""), "a dead letter is not waited for"
        await here.look()
        found = here.samples()
        assert [found["nexo_stream_length", name] for name in ("accepted", "to_save", "dead")] == [3, 1, 1]
        assert found["nexo_unsaved_oldest_seconds", "2"] >= 29
        assert found["nexo_unsaved_oldest_seconds", "0"] == 0


async def test_a_shard_whose_oldest_entry_stays_is_stalled_and_closed(
    server: Redis | RedisCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(server, monkeypatch) as here:
        name = here.streams.accepted(1).name
        entry = await here.add(name, age_s=60)
        await here.add(name, age_s=50)
        assert await here.look() == "", "it may be on its way"
        assert await here.look(STALL_S - 0.1) == ""
        reason = await here.look(0.2)
        assert reason.startswith("Accepted messages are not saved: shard 1, for ")
        assert reason.endswith("no worker holds it")
        assert here.closed == {1}
        here.owners.held = {1}
        assert (await here.look()).endswith("its worker makes no progress")
        assert here.closed == {1}
        here.owners.is_away = True
        assert await here.look()
        assert here.closed == frozenset(), "without the database nothing could be saved directly either"
        await here.run("XDEL", name, entry)
        assert await here.look() == "", "it moves"


async def test_a_long_queue_that_moves_is_no_stall(
    server: Redis | RedisCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(server, monkeypatch) as here:
        name = here.streams.accepted(0).name
        entries = [await here.add(name, age_s=60 - i) for i in range(5)]
        for entry in entries:
            assert await here.look(STALL_S - 1) == ""
            await here.run("XDEL", name, entry)
