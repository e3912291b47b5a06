"""Measuring how fast sends would be accepted, on a real Redis: it leaves nothing there, and never has a say."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from contract.test_streams import draft, run
from harness.servers import Redis
from harness.waiting import until
from nexo.background import Background
from nexo.bus.redis_client import RedisClient
from nexo.config import parse_redis_url
from nexo.config.tree import TwoPhaseConfig
from nexo.metrics.two_phase import AcceptMeter
from nexo.two_phase import observer
from nexo.two_phase.observer import AcceptObserver
from nexo.two_phase.streams import Streams

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def redis() -> Iterator[Redis]:
    with Redis("appendonly no") as running:
        yield running


class Scene:
    def __init__(self, link: RedisClient, background: Background, **settings: Any) -> None:
        self.meter = AcceptMeter()
        config = TwoPhaseConfig(observe=True, **settings)
        self.streams = Streams(link, config, "test:", "one")
        self.observer = AcceptObserver(link, config, "test:", "one", self.meter, background)

    def count(self, result: str) -> int:
        return self.meter.fates[result]

    async def keys(self) -> list[bytes]:
        return list(await run(self.streams, "KEYS", "*"))

    async def is_empty(self) -> bool:
        return not await self.keys()


@contextlib.asynccontextmanager
async def scene(redis: Redis, **settings: Any) -> AsyncIterator[Scene]:
    redis.flush()
    link, background = RedisClient(parse_redis_url(redis.url), 5.0), Background()
    here = Scene(link, background, **settings)
    try:
        yield here
    finally:
        await here.observer.stop()
        await background.stop()
        await link.close()


async def test_a_copy_is_written_timed_and_removed(redis: Redis) -> None:
    async with scene(redis) as here:
        here.observer.start()
        one = draft("a", server_msg_id=None)
        for n in range(600):  # more than one batch
            here.observer.observe(draft(f"m{n}"))
        here.observer.observe(one)
        await until(lambda: here.count("observed") == 601)
        assert one.server_msg_id is None, "the one that is being saved is left alone"
        assert sum(here.meter.ack.counts) == 601
        assert sum(here.meter.write.counts) >= 3
        left = await here.keys()
        assert all(b"claim" in key for key in left), left
        await until(here.is_empty, "claims expire")


async def test_only_the_share_of_conversations_is_measured(redis: Redis) -> None:
    async with scene(redis, share=0.0) as here:
        here.observer.start()
        here.observer.observe(draft("a"))
        here.observer.share.set(1.0)
        here.observer.observe(draft("b"))
        await until(lambda: here.count("observed") == 1)
        assert sum(here.meter.ack.counts) == 1


async def test_copies_over_the_bound_and_without_redis_are_not_measured(redis: Redis) -> None:
    async with scene(redis) as here:
        for n in range(observer.WAITING_MAX + 5):  # not started: all wait
            here.observer.observe(draft(f"m{n}"))
        assert here.count("unobserved") == 5
        here.streams.link.is_broken = True
        here.observer.start()
        await until(lambda: here.count("unobserved") == observer.WAITING_MAX + 5)
        here.observer.observe(draft("late"))
        assert (here.count("observed"), here.count("unobserved")) == (0, observer.WAITING_MAX + 6)
