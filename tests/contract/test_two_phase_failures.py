"""Tasks of two-phase acknowledgement that meet a defect: they run again, the failure is counted and named, and a caller
that waits gets the exception."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from contract.test_streams import opened
from harness.defects import raise_at, restarts
from harness.servers import Redis
from harness.waiting import until
from nexo.background import Background
from nexo.metrics.two_phase import SaveMeter
from nexo.two_phase.coalesce import Coalescer
from nexo.two_phase.shard_owner import ShardOwner
from nexo.two_phase.shard_reader import ShardReader
from nexo.two_phase.streams import Streams

PATIENCE_S = 10.0


@pytest.fixture(scope="module")
def server() -> Iterator[Redis]:
    with Redis("appendonly no") as running:
        yield running


class Owners:
    """All shards are free until they are taken."""

    def __init__(self) -> None:
        self.held: dict[int, int] = {}

    async def free(self, shards: int) -> list[int]:
        return [shard for shard in range(shards) if shard not in self.held]

    async def take(self, owner: str, shards: list[int], ttl_s: float, at_most: int) -> dict[int, int]:
        taken = {shard: 1 for shard in shards[:at_most]}
        self.held |= taken
        return taken

    async def renew(self, owner: str, held: dict[int, int], ttl_s: float) -> set[int]:
        return set(held)

    async def release(self, owner: str, held: dict[int, int]) -> None:
        for shard in held:
            del self.held[shard]


class Worker:
    """Saves nothing, until it is stopped."""

    def __init__(self, shard: int) -> None:
        self.shard = shard
        self.is_running = False
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        self._stopping.set()

    async def run(self) -> None:
        self.is_running = True
        await self._stopping.wait()
        self.is_running = False


def make_owner(streams: Streams, background: Background) -> tuple[ShardOwner, Owners, list[Worker]]:
    owners = Owners()
    made: list[Worker] = []

    def make_worker(shard: int, epoch: int) -> Any:
        made.append(Worker(shard))
        return made[-1]

    store: Any = owners
    return ShardOwner(streams, store, "one", True, make_worker, SaveMeter(), background), owners, made


@pytest.mark.servers
async def test_the_owner_of_shards_looks_again_after_a_round_that_failed(
    server: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    background = Background()
    async with opened(server) as streams:
        owner, owners, made = make_owner(streams, background)
        raise_at(monkeypatch, owner, "_round")
        owner.start()
        await until(lambda: sum(worker.is_running for worker in made) == 4, patience_s=PATIENCE_S)
        assert list(background.failing()) == ["shard_owner"]
        assert restarts(background, "shard_owner") == 1
        await owner.stop()
        assert owners.held == {}
        assert not any(worker.is_running for worker in made)
        assert restarts(background, "shard_owner") == 1, "stopping is no failure"


@pytest.mark.servers
async def test_a_worker_that_fails_is_replaced_by_a_new_one(server: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    background = Background()
    async with opened(server) as streams:
        owner, owners, made = make_owner(streams, background)
        raise_at(monkeypatch, Worker, "run")
        owner.start()
        await until(lambda: sum(worker.is_running for worker in made) == 4, patience_s=PATIENCE_S)
        assert len(made) == 5
        assert list(background.failing()) == ["shard_worker"]
        assert restarts(background, "shard_worker") == 1
        await owner.stop()
        assert owners.held == {}
        assert not any(worker.is_running for worker in made)


@pytest.mark.servers
async def test_callers_of_a_read_get_its_exception_and_can_read_again(
    server: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(server, block_ms=50) as streams, asyncio.timeout(PATIENCE_S):
        reading = ShardReader(streams, SaveMeter())
        stream = streams.accepted(0)
        await streams.make_groups([stream])
        for broken in ("_may_read", "_hand_out"):
            raise_at(monkeypatch, reading, broken)
            with pytest.raises(RuntimeError, match="a defect"):
                await reading.next(stream, lambda: True)
            assert await reading.next(stream, lambda: True) == []


async def test_callers_of_a_batch_get_its_exception_and_can_ask_again() -> None:
    answers: list[Any] = [None, ["a", "b"]]  # the first cannot be divided among the callers

    async def ask(questions: Sequence[int]) -> Sequence[str]:
        found: Sequence[str] = answers.pop(0)
        return found

    together = Coalescer(ask)
    async with asyncio.timeout(PATIENCE_S):
        for error in await asyncio.gather(together.ask([1]), together.ask([2]), return_exceptions=True):
            assert isinstance(error, TypeError)
        assert list(await together.ask([1, 2])) == ["a", "b"]
