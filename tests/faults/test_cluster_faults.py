"""A cluster of real processes under load while parts of it die, hang or forget. Each test ends with both sides
compared: what was acknowledged is stored once and in order, everybody sees the same, nobody online misses any."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from harness.chat import world
from harness.cluster import Cluster, cluster
from harness.cluster_talkers import company
from harness.migrated import migrate_database
from harness.proxy import proxy_to
from harness.server_process import ServerProcess
from harness.servers import MariaDb, Postgres, Redis
from harness.waiting import time_passes

pytestmark = pytest.mark.servers

LONG = bool(os.environ.get("NEXO_LONG_TESTS"))
HANG_S = 10.0 if LONG else 2.5
OUTAGE_S = 5.0 if LONG else 0.7
NORMAL = 350 if LONG else 50  # messages: what is said while nothing happens
DETECT_S = 3


@pytest.fixture(scope="module")
def redis() -> Iterator[Redis]:
    with Redis("appendonly no") as server:
        yield server


@pytest.fixture(scope="module")
def three(redis: Redis) -> Iterator[Cluster]:
    with cluster("mariadb", redis=redis) as running:
        yield running
        assert "Traceback" not in running.output, running.output[-5000:]
        running.check()


async def test_an_instance_is_killed_and_its_people_go_on_elsewhere(three: Cluster) -> None:
    async with company(three.instances) as everybody:
        await everybody.talk_on(NORMAL)
        three[2].kill()
        await everybody.talk_on(NORMAL)
        await asyncio.to_thread(three[2].start)
        await everybody.talk_on(NORMAL)
        print(await everybody.finish(), "messages")
        assert any(talker.connects == 1 for talker in everybody.talkers)
        await everybody.until(lambda talker: talker.connects > 1 or "instance_lost" in talker.resyncs)


async def test_redis_is_killed_and_comes_back_empty(three: Cluster, redis: Redis) -> None:
    async with company(three.instances) as everybody:
        await everybody.talk_on(NORMAL)
        killed = time.monotonic()
        redis.kill()
        await everybody.talk_on(2 * NORMAL)
        redis.start()
        back = time.monotonic()
        everybody.tell_latency("before Redis was killed", 0, killed)
        everybody.tell_latency("while Redis was dead", killed, back)
        await everybody.talk_on(NORMAL)
        print(await everybody.finish(), "messages")
        assert all(talker.connects == 1 for talker in everybody.talkers), "nobody was cut off"
        await everybody.until(lambda talker: bool(talker.resyncs))


async def test_redis_forgets_everything(three: Cluster, redis: Redis) -> None:
    async with company(three.instances) as everybody:
        await everybody.talk_on(NORMAL)
        redis.flush()
        await everybody.talk_on(NORMAL)
        print(await everybody.finish(), "messages")
        assert all(talker.connects == 1 for talker in everybody.talkers)


async def test_redis_hangs(three: Cluster, redis: Redis) -> None:
    """Sends do not wait for it: after the first moment their ACKs are as fast as before."""
    async with company(three.instances) as everybody:
        await everybody.talk_on(NORMAL)
        stopped = time.monotonic()
        redis.pause()
        try:
            await time_passes(HANG_S)
        finally:
            redis.resume()
        back = time.monotonic()
        before = everybody.tell_latency("before Redis hung", 0, stopped)
        during = everybody.tell_latency("while Redis hung", stopped, back)
        await everybody.talk_on(NORMAL)
        print(await everybody.finish(), "messages")
        assert len(during) > 20
        # one that waited for Redis would take half a second more (redis.timeout_ms)
        assert sorted(during)[len(during) // 2] < sorted(before)[len(before) // 2] + 250


async def test_while_redis_is_away_messages_are_found_in_the_database() -> None:
    """Those who are connected learn of new messages before the bus is back."""
    with Redis("appendonly no") as redis, cluster("postgresql", 2, redis=redis) as two:
        async with company(two.instances, 4) as everybody:
            await everybody.talk_on(NORMAL)
            redis.kill()
            print(await everybody.finish(), "messages, all of them received without Redis")
        assert "redis_back" not in two.output


@pytest.mark.parametrize("kind", [MariaDb, Postgres] if LONG else [Postgres])
async def test_the_database_is_killed_and_comes_back(kind: type[MariaDb | Postgres]) -> None:
    with kind() as database, Redis("appendonly no") as redis:
        url = database.create_database()
        await asyncio.to_thread(migrate_database, url)
        with Cluster(url, redis.url, 2) as two:
            async with company(two.instances, 5) as everybody:
                await everybody.talk_on(NORMAL)
                await asyncio.to_thread(database.kill)
                await time_passes(OUTAGE_S)
                await asyncio.to_thread(database.start)
                await everybody.talk_on(NORMAL)
                print(await everybody.finish(), "messages")
            two.check()


async def test_one_instance_is_cut_off_from_redis(three: Cluster, redis: Redis) -> None:
    async with (
        proxy_to(redis.url) as proxy,
        another(three, redis__url=proxy.url) as fourth,
        company([*three.instances[:2], fourth], 7) as everybody,
    ):
        await everybody.talk_on(NORMAL)
        proxy.refuse()
        proxy.cut()
        await time_passes(DETECT_S)  # noticed, and too short for sending its clients to the others
        proxy.flow()
        await everybody.talk_on(NORMAL)
        print(await everybody.finish(), "messages")
        assert all(talker.connects == 1 for talker in everybody.talkers)


async def test_a_listener_learns_of_the_last_message_whose_push_was_lost(three: Cluster, redis: Redis) -> None:
    """It is sent through an instance that cannot tell anybody, and nothing comes after it."""
    async with (
        proxy_to(redis.url) as proxy,
        another(three, redis__url=proxy.url) as fourth,
        company([three[0], fourth], 5, pause_s=0.05) as everybody,
    ):
        await everybody.talk_on(NORMAL)
        proxy.refuse()
        proxy.cut()
        await everybody.talk_on(20)
        ended = time.monotonic()
        print(await everybody.finish(), "messages; everybody had them", f"{time.monotonic() - ended:.1f} s later")
        assert [talker for talker in everybody.talkers if not talker.saved], "somebody only listens"


async def test_who_was_let_in_by_an_instance_that_is_not_heard_gets_the_sync_entry_first(
    three: Cluster, redis: Redis
) -> None:
    """Messages that were saved after the event reach the newcomer before it."""
    async with proxy_to(redis.url) as proxy, another(three, redis__url=proxy.url) as fourth, world(three) as here:
        ann, ben, cid, dan = await here.people("ann", "ben", "cid", "dan")
        group = await ann.found_group(ben, cid)
        talker, newcomer = [await person.connect(uri=three[0].ws_address) for person in (ben, dan)]
        here.server = fourth
        proxy.stall()
        await ann.post("/group/invite", group_id=group, user_ids=[dan.user_id])
        here.server = three
        saved = await talker.say(group, "before the event")
        await newcomer.expect("GROUP_CHAT", msgSeq=saved["msgSeq"])
        (entry,) = (await newcomer.expect("SYNC"))["conversations"]
        assert (entry["conversationId"], entry["minSeq"]) == (f"sg_{group}", saved["msgSeq"] - 1)
        kinds = [frame["type"] for frame in newcomer.frames]
        assert kinds.index("SYNC", kinds.index("RESEND_DONE")) < kinds.index("GROUP_CHAT")
        proxy.flow()


@pytest.mark.parametrize("offset", ["+5m", "-5m"] if LONG else ["-5m"])
async def test_one_instances_clock_is_five_minutes_off(redis: Redis, offset: str) -> None:
    """Nobody takes it for dead, late or forgotten. (Other tests leave dead instances behind, and a busy machine may
    hold one up for some seconds: these know of no others, and are patient; the clock is off by much more.)"""
    wrapper = [shutil.which("faketime") or pytest.fail("faketime is not installed"), "-f", offset]
    with cluster("mariadb", 2, redis=redis, bus__detect_s=10, redis__prefix=f"{secrets.token_hex(4)}:") as two:
        async with another(two, wrapper=wrapper) as third, company([*two.instances, third], 7) as everybody:
            await everybody.talk_on(2 * NORMAL)
            print(await everybody.finish(), "messages")
            assert all(talker.connects == 1 for talker in everybody.talkers)
            assert [reason for talker in everybody.talkers for reason in talker.resyncs] == [], (
                two.output + third.output
            )


@contextlib.asynccontextmanager
async def another(three: Cluster, wrapper: list[str] | None = None, **settings: object) -> AsyncIterator[ServerProcess]:
    """One more instance, started beside the event loop that carries its connections to Redis."""
    server = ServerProcess(wrapper=wrapper or (), **(three.settings | settings))
    try:
        await asyncio.to_thread(server.start)
        yield server
    finally:
        server.kill()
