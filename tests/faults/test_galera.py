"""MariaDB Galera, three nodes: reads are causal on each, two nodes that lock one conversation are decided by
certification, and the cluster is started again after a full stop. Long mode only: `NEXO_LONG_TESTS=1`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest

from harness.core import found_group, fresh_id, open_test_core, say
from harness.galera import Galera
from nexo.assembly.core import Core
from nexo.config import parse_store_url
from nexo.errors import NexoError
from nexo.store import migrate
from nexo.store.check import check

pytestmark = pytest.mark.servers

LONG = bool(os.environ.get("NEXO_LONG_TESTS"))
MESSAGES = 40


@pytest.fixture(scope="module")
def galera() -> Iterator[Galera]:
    with Galera() as running:
        yield running


def alone(url: str, number: int) -> str:
    """The same database, on one node only."""
    account, _, rest = url.partition("@")
    hosts, _, database = rest.partition("/")
    return f"{account}@{hosts.split(',')[number]}/{database}"


async def test_two_nodes_are_written_at_once_and_the_cluster_starts_again(galera: Galera) -> None:
    url = await asyncio.to_thread(galera.create_database)
    await migrate.upgrade(parse_store_url(url))
    users = [f"u{i}" for i in range(4)]
    async with open_test_core(alone(url, 0), users) as one, open_test_core(alone(url, 2)) as two:
        group_id, conversation_id = await found_group(one, *users[:3])

        async def talk(core: Core, sender: str) -> None:
            for i in range(MESSAGES):
                while True:
                    try:
                        await say(core, sender, group_id, client_msg_id=f"{sender}-{i}")
                        break
                    except NexoError as error:
                        if error.name != "server_busy":
                            raise

        async def change(core: Core) -> None:
            """Changes under the lock of the conversation."""
            for _ in range(10):
                try:
                    await core.groups.invite(users[0], group_id, [users[3]])
                    await core.groups.leave(users[3], group_id)
                except NexoError as error:
                    if error.name not in ("server_busy", "not_group_member", "member_not_active"):
                        raise

        await asyncio.gather(talk(one, "u0"), talk(two, "u1"), change(one), change(two))
        for _ in range(20):  # what one node has acknowledged is seen on the other at once
            sent = await say(one, "u0", group_id, client_msg_id=fresh_id())
            page = await two.store.messages.history("u1", conversation_id, None, 1)
            assert page.head_seq >= sent.seq
    await _check(url)
    await asyncio.to_thread(_stop_and_start, galera)
    await _check(url)


# 30 s and 400 MB
test_two_nodes_are_written_at_once_and_the_cluster_starts_again.__test__ = LONG  # type: ignore[attr-defined]


async def _check(url: str) -> None:
    report = await check(parse_store_url(url))
    assert not report.counts, report.findings


def _stop_and_start(galera: Galera) -> None:
    for node in reversed(galera.nodes):
        node.stop()
    galera.nodes[0].may_be_first()
    for node in galera.nodes:
        node.start()
    galera.wait_for(len(galera.nodes))
