"""Tasks of the bus that meet a defect: each runs again, the failure is counted and named, and receivers learn of
a loss."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from contract.test_bus import Instance, Listener, make_bus
from harness.defects import failed_jobs, raise_at, restarts
from harness.servers import Redis
from harness.waiting import until
from nexo.background import Background
from nexo.ports import Registration

pytestmark = pytest.mark.servers
PATIENCE_S = 10.0


@pytest.fixture(scope="module")
def server() -> Iterator[Redis]:
    with Redis("appendonly no") as running:
        yield running


class two_instances:
    """Two instances that hear each other; the first one's tasks are in `background`."""

    def __init__(self, server: Redis) -> None:
        server.flush()
        self.background = Background()
        self.one = Instance(make_bus(server.url, self.background), Listener())
        self.other = Instance(make_bus(server.url), Listener())

    async def __aenter__(self) -> two_instances:
        for instance in (self.one, self.other):
            await instance.bus.start(instance.listener)
            await instance.listener.until(lambda up=instance.listener.up: up and up[-1])
        return self

    async def __aexit__(self, *_: object) -> None:
        for instance in (self.one, self.other):
            await instance.bus.stop()

    async def is_heard(self, payload: bytes) -> None:
        await self.other.listener.until(lambda: payload in self.other.listener.payloads, PATIENCE_S)


async def test_the_publisher_continues_and_receivers_learn_that_they_missed_something(
    server: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two_instances(server) as both:
        raise_at(monkeypatch, both.one.bus, "_publish")
        both.one.bus.publish_to_all(b"missed")
        await until(lambda: restarts(both.background, "bus_publisher") == 1, patience_s=PATIENCE_S)
        both.one.bus.publish_to_all(b"after")
        await both.is_heard(b"after")
        await both.other.listener.until(lambda: "push_lost" in both.other.listener.losses, PATIENCE_S)
        assert list(both.background.failing()) == ["bus_publisher"]
        assert b"missed" not in both.other.listener.payloads


async def test_the_beat_continues(server: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    async with two_instances(server) as both:
        raise_at(monkeypatch, both.one.bus, "_beat")
        await until(lambda: restarts(both.background, "bus_beat") == 1, patience_s=PATIENCE_S)
        since = both.one.bus._beat_at  # type: ignore[union-attr]
        await until(lambda: both.one.bus._beat_at > since, patience_s=PATIENCE_S)  # type: ignore[union-attr]
        assert list(both.background.failing()) == ["bus_beat"]
        assert both.one.bus.is_up
        assert both.other.listener.gone == []


async def test_the_beat_starts_the_subscriber_again(server: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    async with two_instances(server) as both:
        raise_at(monkeypatch, both.one.bus, "_take_in")
        await until(lambda: failed_jobs(both.background, "bus_subscriber") == 1, patience_s=PATIENCE_S)

        async def is_heard() -> bool:
            both.other.bus.publish_to_all(b"again")
            return b"again" in both.one.listener.payloads

        await until(is_heard, patience_s=PATIENCE_S)


async def test_the_writer_of_presence_writes_what_a_failed_run_has_taken_and_answers_its_callers(
    server: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two_instances(server) as both:
        raise_at(monkeypatch, both.one.presence, "_confirm")
        async with asyncio.timeout(PATIENCE_S):
            assert await both.one.presence.register("ann", [1]) is None, "unknown, and not a wait without an end"
            await until(lambda: both.one.presence._written == {"ann": (1,)})  # type: ignore[union-attr]
            assert isinstance(await both.one.presence.register("ben", [2]), Registration)
        assert await both.other.presence.on_other_instances(["ann", "ben"]) == {"ann": (1,), "ben": (2,)}
        assert list(both.background.failing()) == ["presence_writer"]
        assert restarts(both.background, "presence_writer") == 1
