"""Two-phase acknowledgement while those who save are killed, stopped, join and leave. PostgreSQL, two servers."""

from __future__ import annotations

import asyncio
import signal

import pytest

from harness.two_phase import WorkerProcess, metric, two_phase_cluster
from harness.two_phase_talk import talking

pytestmark = pytest.mark.servers


async def test_workers_that_are_killed_are_replaced_and_nothing_is_lost_or_twice() -> None:
    with two_phase_cluster("postgresql", two_phase__workers=False, two_phase__deliver_before_saved=True) as two:
        with WorkerProcess(two.settings) as first, WorkerProcess(two.settings) as second:
            async with talking(two) as talk:
                await talk.until_more_accepted()
                first.kill()
                await talk.until_more(100)
                await asyncio.to_thread(first.start)
                second.kill()
                await talk.until_more(100)
        two.check()


async def test_an_owner_that_stood_still_cannot_save_what_others_have_taken_over() -> None:
    with two_phase_cluster("postgresql") as two:
        async with talking(two) as talk:
            await talk.until_more()
            two[0].signal(signal.SIGSTOP)
            try:
                await asyncio.sleep(5)  # longer than an owner may be silent
            finally:
                two[0].signal(signal.SIGCONT)
            await talk.until_more(100)
        two.check()


async def test_the_shards_are_shared_among_those_who_are_there_and_nobody_is_overtaken() -> None:
    with two_phase_cluster("postgresql") as two:
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
