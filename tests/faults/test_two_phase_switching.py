"""Two-phase acknowledgement is switched on, changed and switched off, one instance after the other, under traffic."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness.cluster import Cluster
from harness.two_phase import LONG, backlog, engines, two_phase_cluster
from harness.two_phase_talk import Talk, talking

pytestmark = pytest.mark.servers

OFF = {"two_phase__enabled": False, "two_phase__deliver_before_saved": False}
SAVED_FIRST = {"two_phase__enabled": True, "two_phase__deliver_before_saved": False}
DELIVERED_FIRST = {"two_phase__enabled": True, "two_phase__deliver_before_saved": True}
STEPS = [SAVED_FIRST, DELIVERED_FIRST, SAVED_FIRST, OFF, DELIVERED_FIRST, OFF]


@pytest.mark.parametrize("engine", engines("mariadb"))
async def test_switching_instance_by_instance_drains_what_is_left_and_loses_nothing(engine: str) -> None:
    with two_phase_cluster(engine, **OFF) as two:
        async with talking(two) as talk:
            for step in STEPS if LONG else STEPS[-2:]:
                before = talk.accepted
                await switch(two, talk, step)
                assert (talk.accepted > before) or not step["two_phase__enabled"]
            await until_drained(two)
        assert backlog(two[0]) == {"accepted": 0, "to_save": 0, "dead": 0}
        two.check()


async def switch(two: Cluster, talk: Talk, settings: dict[str, Any]) -> None:
    for instance in two.instances:
        await talk.until_more(20)
        assert await asyncio.to_thread(instance.stop) == 0
        instance.settings |= settings
        await asyncio.to_thread(instance.start)
    await talk.until_more(20)
    if settings["two_phase__enabled"]:
        await talk.until_more_accepted(20)


async def until_drained(two: Cluster) -> None:
    """Whoever has the Redis configured saves what is left, also where two-phase is switched off."""
    async with asyncio.timeout(60):
        while any((await asyncio.to_thread(backlog, two[0])).values()):  # noqa: ASYNC110
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("engine", engines("postgresql"))
async def test_what_was_left_is_saved_by_servers_that_have_it_switched_off(engine: str) -> None:
    """Nobody saves, everything stands still in the stream; then all are killed and started without two-phase."""
    with two_phase_cluster(engine, two_phase__workers=False, **DELIVERED_FIRST) as two:
        async with talking(two, is_started=False) as talk:
            await talk.until(lambda: all(talker.is_waiting for talker in talk.talkers), "all wait for saved")
            left = backlog(two[0])
            assert left["accepted"] > 0
            for instance in two.instances:
                instance.kill()
                instance.settings |= {**OFF, "two_phase__workers": True}
                await asyncio.to_thread(instance.start)
            await talk.until_more(20)
            await until_drained(two)
        two.check()
