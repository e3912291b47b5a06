"""Calls that are repeated: the same each time, in order per lane, until they are answered or the client is closed."""

from __future__ import annotations

import asyncio

import pytest

from harness.waiting import until
from nexo_client.core.options import Options
from nexo_client.errors import ClientError
from nexo_client.repeated_calls import RepeatedCalls

SOON = Options(backoff_min_ms=1, backoff_max_ms=2, max_pending=3)
LATE = Options(backoff_min_ms=60_000, backoff_max_ms=60_000)


async def test_a_lane_keeps_its_order_and_another_does_not_wait() -> None:
    calls, done = RepeatedCalls(SOON), []
    failures = iter([ClientError("network"), ClientError("server_busy", retry_after_ms=1)])

    async def call(name: str, fails: bool = False) -> str:
        if fails and (error := next(failures, None)) is not None:
            raise error
        done.append(name)
        return name

    works = [
        calls.run("m1", lambda: call("first", True)),
        calls.run("m1", lambda: call("second")),
        calls.run("m2", lambda: call("other")),
    ]
    assert await asyncio.gather(*works) == ["first", "second", "other"]
    assert done == ["other", "first", "second"]


async def test_a_final_error_is_raised_and_the_lane_continues() -> None:
    calls = RepeatedCalls(SOON)

    async def refused() -> None:
        raise ClientError("not_editable")

    async def taken() -> str:
        return "taken"

    results = await asyncio.gather(calls.run("m1", refused), calls.run("m1", taken), return_exceptions=True)
    assert isinstance(results[0], ClientError)
    assert results[1] == "taken"


async def test_the_connection_wakes_it_and_closing_ends_it() -> None:
    calls, tried = RepeatedCalls(LATE), asyncio.Semaphore(0)

    async def away() -> None:
        tried.release()
        raise ClientError("network")

    works = [asyncio.create_task(calls.run(lane, away)) for lane in ("m1", "m1", "m2")]
    for _ in range(2):
        await tried.acquire()
    calls.wake()
    for _ in range(2):
        await tried.acquire()
    calls.stop()
    for result in await asyncio.gather(*works, return_exceptions=True):
        assert isinstance(result, ClientError)
        assert result.reason == "closed"


async def test_there_is_a_limit() -> None:
    calls, gate = RepeatedCalls(SOON), asyncio.Event()
    works = [asyncio.create_task(calls.run("m1", gate.wait)) for _ in range(3)]
    await until(lambda: calls._count == 3)
    with pytest.raises(ClientError, match="outbox_full"):
        await calls.run("m1", gate.wait)
    gate.set()
    await asyncio.gather(*works)
