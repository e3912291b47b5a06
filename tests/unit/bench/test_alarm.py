"""The timer of the open loop: sharper than a millisecond, which is the point of having it."""

from __future__ import annotations

import asyncio
from time import perf_counter

from nexo.bench.alarm import Alarm


async def test_it_rings_when_it_was_set_for_and_never_before() -> None:
    rung = asyncio.Event()
    alarm = Alarm(asyncio.get_running_loop(), rung.set)
    late = []
    try:
        for _ in range(50):
            due = perf_counter() + 0.0033
            alarm.set(due)
            await rung.wait()
            rung.clear()
            late.append(perf_counter() - due)
    finally:
        alarm.close()
    assert min(late) >= 0
    assert sorted(late)[5] < 0.001, "on a busy machine most may be late, but not all"


async def test_a_moment_that_has_passed_rings_at_once() -> None:
    rung = asyncio.Event()
    alarm = Alarm(asyncio.get_running_loop(), rung.set)
    alarm.set(perf_counter() - 1)
    async with asyncio.timeout(5):
        await rung.wait()
    alarm.close()
