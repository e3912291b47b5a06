"""Two-phase acknowledgement is switched on, changed and switched off, one instance after the other, under traffic."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness.cluster import Cluster
from harness.server_process import NEXO, environment
from harness.two_phase import LONG, backlog, engines, metric, two_phase_cluster
from harness.two_phase_talk import Talk, talking
from harness.waiting import until

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

    async def nothing_is_left() -> bool:
        return not any((await asyncio.to_thread(backlog, two[0])).values())

    await until(nothing_is_left, patience_s=60)


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


@pytest.mark.parametrize("engine", engines("postgresql"))
async def test_it_is_switched_while_the_servers_run_and_nothing_is_lost_or_overtaken(engine: str) -> None:
    with two_phase_cluster(engine, **OFF) as two:
        async with talking(two) as talk:
            await talk.until_more(20)
            assert talk.accepted == 0
            await order(two, "observe")
            await talk.until_more(20)
            assert talk.accepted == 0, "only measured"
            assert sum(metric(one, "nexo_accepts_total", result="observed") for one in two.instances) > 0
            for _ in range(2):
                await order(two, "on")
                await talk.until_more_accepted(20)
                await order(two, "on", "--share", "0.5")
                await talk.until_more(20)
                await order(two, "off")
                await talk.until_more(40)
            await until_drained(two)  # a message goes in behind the accepted ones of its conversation

            async def all_go_the_direct_way() -> bool:
                before = talk.accepted
                await talk.until_more(40)
                return talk.accepted == before

            await until(all_go_the_direct_way, "all go the direct way again", patience_s=20)
        assert backlog(two[0]) == {"accepted": 0, "to_save": 0, "dead": 0}
        two.check()


async def order(two: Cluster, *words: str) -> None:
    for instance in two.instances:
        switched = instance.output.count("two_phase_switched")
        settings = {"redis__url": two.settings["redis__url"]}
        command = [NEXO, "two-phase", *words, "--data", instance.data]
        process = await asyncio.create_subprocess_exec(*command, env=environment(settings))
        assert await process.wait() == 0
        await until(lambda: instance.output.count("two_phase_switched") > switched, "it follows")  # noqa: B023
