"""The Redis master falls silent or dies, and another server takes over: pushes between instances are back soon, and
two-phase acknowledgement too. Sends never wait for it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from harness import processes
from harness.cluster import Cluster
from harness.followers import Follower, following
from harness.migrated import migrated_database
from harness.redis_failover import ReplicatedCluster, SentinelGroup
from harness.two_phase import ON, QUICK, metric
from harness.waiting import until, until_blocking

pytestmark = pytest.mark.servers

SEND_S = 20.0  # what was accepted by a master that is lost is accepted again after five seconds
FAILOVER_S = 30.0  # of Redis itself; 2 to 4 s on a machine of its own
BACK_S = 5.0  # after that


@contextlib.contextmanager
def two_instances(redis_url: str) -> Iterator[Cluster]:
    with contextlib.ExitStack() as stack:
        store_url = stack.enter_context(migrated_database("postgresql", processes.new_dir("failover")))
        settings = {**ON, **QUICK, "bus__detect_s": 1}
        running = stack.enter_context(Cluster(store_url, redis_url, 2, **settings))
        yield running
        assert "Traceback" not in running.output, running.output[-5000:]
        running.check()


@contextlib.asynccontextmanager
async def failing_over(
    running: Cluster, what: str, is_replaced: Callable[[], object] = lambda: True
) -> AsyncIterator[None]:
    """Something happens to Redis in the block. When another server has taken over, and the lost one is still away, the
    instances hear each other again within BACK_S; accepted and pushed messages are back."""
    async with following(running.instances, 0, 1) as (sender, receiver):
        await until(lambda: _is_pushed(sender, receiver), "pushed between instances")
        accepted = len(sender.accepted)
        before = time.monotonic()
        yield
        await asyncio.to_thread(until_blocking, is_replaced, "another server takes over", patience_s=FAILOVER_S)
        replaced = time.monotonic()
        await asyncio.to_thread(until_blocking, lambda: _is_up(running), "the instances hear", patience_s=BACK_S)
        heard = time.monotonic()
        sent: list[str] = []

        async def is_back() -> bool:
            name = sender.put(receiver.user_id)
            sent.append(name)
            await sender.saved(name, SEND_S)
            return len(sender.accepted) > accepted and await _is_pushed(sender, receiver)

        await until(is_back, "pushes between instances and accepted sends are back", patience_s=SEND_S)
        print(
            f"{what}: replaced after {replaced - before:.1f} s, heard again after {heard - before:.1f} s, "
            f"accepted again after {time.monotonic() - before:.1f} s, {len(sent)} sends meanwhile"
        )
        assert {error["reason"] for error in sender.errors} <= {"server_busy"}


def _is_up(running: Cluster) -> bool:
    """Whether all instances hear each other. Two-phase and the database push messages on other ways meanwhile."""
    return all(metric(server, "nexo_bus_up") == 1 for server in running.instances)


async def _is_pushed(sender: Follower, receiver: Follower) -> bool:
    """Whether a message arrives as itself, not as a head that was found in the database."""
    saved = await sender.saved(sender.put(receiver.user_id), SEND_S)

    def learned() -> str:
        found = (note.kind for note in receiver.notices if note[2:] == (saved.conversation_id, saved.seq))
        return next(found, "")

    return await until(learned, "the receiver learns of it") == "SINGLE_CHAT"


@pytest.fixture(scope="module")
def guarded() -> Iterator[tuple[SentinelGroup, Cluster]]:
    with SentinelGroup() as group, two_instances(group.url) as running:
        yield group, running


async def test_a_master_that_falls_silent_without_a_reset_is_replaced(guarded: tuple[SentinelGroup, Cluster]) -> None:
    group, running = guarded
    silent = group.master()
    try:
        async with failing_over(running, "master frozen", lambda: group.master() is not silent):
            silent.pause()
    finally:
        silent.resume()


async def test_a_dead_and_a_silent_sentinel_do_not_hide_the_third(guarded: tuple[SentinelGroup, Cluster]) -> None:
    """The first of them is dead when the master dies; the second does not answer, too, when an instance starts."""
    group, running = guarded
    first, second, _ = group.sentinels
    first.kill()
    try:
        lost = group.master()
        async with failing_over(
            running, "master killed, one of three sentinels dead", lambda: group.master() is not lost
        ):
            lost.kill()
        second.pause()
        await asyncio.to_thread(running[1].restart)
        async with failing_over(running, "an instance started, two of three sentinels away"):
            pass
    finally:
        second.resume()
        first.start()


async def test_a_node_of_a_cluster_falls_silent() -> None:
    with ReplicatedCluster() as nodes, two_instances(nodes.url) as running:
        silent = nodes.master_of("{instances}:seen")
        replica = nodes.nodes[nodes.nodes.index(silent) + 3]
        try:
            async with failing_over(running, "a node of the cluster frozen", lambda: nodes.is_master(replica)):
                silent.pause()
        finally:
            silent.resume()
