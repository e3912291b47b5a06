"""Two-phase acknowledgement while those who save are killed, stopped, join and leave. Two servers."""

from __future__ import annotations

import asyncio
import signal

import pytest

from harness.two_phase import LONG, WorkerProcess, engines, metric, two_phase_cluster
from harness.two_phase_talk import talking

pytestmark = pytest.mark.servers
ROUNDS = 5 if LONG else 1


@pytest.mark.parametrize("engine", engines("postgresql"))
async def test_workers_that_are_killed_are_replaced_and_nothing_is_lost_or_twice(engine: str) -> None:
    with two_phase_cluster(engine, two_phase__workers=False, two_phase__deliver_before_saved=True) as two:
        with WorkerProcess(two.settings) as first, WorkerProcess(two.settings) as second:
            async with talking(two) as talk:
                await talk.until_more_accepted()
                for worker in [first, second] * ROUNDS:
                    worker.kill()
                    await talk.until_more()
                    await asyncio.to_thread(worker.start)
                await talk.until_more()
        two.check()


@pytest.mark.parametrize("engine", engines("mariadb"))
async def test_an_owner_that_stood_still_cannot_save_what_others_have_taken_over(engine: str) -> None:
    with two_phase_cluster(engine) as two:
        async with talking(two) as talk:
            await talk.until_more()
            for _ in range(ROUNDS):
                two[0].signal(signal.SIGSTOP)
                try:
                    await talk.until(lambda: metric(two[1], "nexo_shards_owned") == 8, "the other one has all")
                finally:
                    two[0].signal(signal.SIGCONT)
                await talk.until_more()
                await talk.until(lambda: metric(two[0], "nexo_shards_owned") > 0, "and gives some back")
        two.check()


@pytest.mark.parametrize("engine", engines("postgresql"))
async def test_the_shards_are_shared_among_those_who_are_there_and_nobody_is_overtaken(engine: str) -> None:
    with two_phase_cluster(engine) as two:
        async with talking(two) as talk:

            def owned() -> list[float]:
                return [metric(server, "nexo_shards_owned") for server in two.instances]

            await talk.until(lambda: owned() == [4, 4], "each has its half")
            two[1].kill()
            await talk.until(lambda: metric(two[0], "nexo_shards_owned") == 8, "one has all")
            await asyncio.to_thread(two[1].start)
            await talk.until(lambda: owned() == [4, 4], "shared again")
            await talk.until_more()
        two.check()
