"""Two-phase acknowledgement while the database is gone: sends are accepted until too many wait, and all of it is saved
after it has come back."""

from __future__ import annotations

import asyncio

import pytest

from harness.cluster import Cluster
from harness.migrated import migrate_database
from harness.servers import MariaDb, Postgres, Redis, SqlServer
from harness.two_phase import LONG, ON, QUICK, backlog, engines, metric
from harness.two_phase_talk import talking
from harness.waiting import time_passes

pytestmark = pytest.mark.servers

KINDS: dict[str, type[SqlServer]] = {"mariadb": MariaDb, "postgresql": Postgres}
GONE_S = 30.0 if LONG else 3.0
BACKLOG = 60


@pytest.mark.parametrize("engine", engines("postgresql"))
@pytest.mark.parametrize("deliver_before_saved", [False, True] if LONG else [True])
async def test_sends_are_accepted_until_too_many_wait_and_saved_when_the_database_is_back(
    engine: str, deliver_before_saved: bool
) -> None:
    settings = {
        **ON,
        **QUICK,
        "two_phase__deliver_before_saved": deliver_before_saved,
        "two_phase__shards": 2,
        "two_phase__max_backlog": BACKLOG,
    }
    with KINDS[engine]() as database, Redis("appendonly no") as redis:
        url = database.create_database()
        migrate_database(url)
        with Cluster(url, redis.url, 2, **settings) as two:
            async with talking(two, window=2) as talk:
                await talk.until_more()
                saved = talk.saved
                await asyncio.to_thread(database.kill)
                try:
                    accepted, busy = talk.accepted, talk.busy
                    for talker in talk.talkers:  # six times 20 are more than may wait in all
                        talker.window = 20
                    await talk.until(lambda: talk.accepted >= accepted + 20, "accepted all the same")
                    await talk.until(lambda: talk.busy > busy, "then refused: too many wait")
                    waiting = await asyncio.to_thread(backlog, two[0])
                    assert 20 <= waiting["accepted"] + waiting["to_save"] <= BACKLOG
                    await time_passes(GONE_S)
                    assert talk.saved <= saved + 12, "what is told as saved is in the database"
                finally:
                    await asyncio.to_thread(database.start)
                for talker in talk.talkers:
                    talker.window = 4
                await talk.until_more(130)
            assert sum(metric(server, "nexo_two_phase_failures_total", kind="dup_db") for server in two.instances) == 0
            assert backlog(two[0]) == {"accepted": 0, "to_save": 0, "dead": 0}
            two.check()
