"""What a caller gets, and what is logged, when the client library fails in an unexpected way."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from redis.asyncio import RedisCluster
from structlog.testing import capture_logs

from harness.waiting import loop_turns
from nexo.bus.redis_client import BusDown, RedisClient, RedisCommand
from nexo.config import parse_redis_url


class ClosedUnderway(RedisCluster):
    """Its pipelines fail as the library does when a connection is closed in the middle of a command."""

    def __init__(self) -> None:
        self.closed = asyncio.Event()

    async def initialize(self) -> Any:
        return self

    async def aclose(self) -> None:
        self.closed.set()

    def pipeline(self, *_: Any, **__: Any) -> Any:
        return self

    def execute_command(self, *_: Any, **__: Any) -> Any:
        return self

    async def execute(self, **_: Any) -> Any:
        await self.closed.wait()
        raise AttributeError("'NoneType' object has no attribute 'writelines'")

    def __del__(self, *_: Any) -> None:
        pass


@pytest.mark.parametrize("by_reload", [True, False])
async def test_a_connection_that_the_reload_of_slots_closes_is_no_defect(by_reload: bool) -> None:
    """Of seed 204 of the campaign on a Redis Cluster."""
    link = RedisClient(parse_redis_url("redis+cluster://127.0.0.1:1,127.0.0.1:2"), 5.0)
    library = ClosedUnderway()
    link._client = library
    with capture_logs() as logs:
        running = asyncio.create_task(link.run([RedisCommand(("PING",))]))
        await loop_turns()
        if by_reload:
            await link.reload_slots()
        else:
            library.closed.set()
        with pytest.raises(BusDown):
            await running
    assert ("redis_failed" in [line["event"] for line in logs]) is not by_reload
