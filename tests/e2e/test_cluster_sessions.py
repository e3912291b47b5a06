"""Everything of test_session_policies.py once more: who has to go is on another instance."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest

from e2e import test_session_policies
from harness.chat import Client, world
from harness.cluster import Cluster, cluster, suite
from harness.engines import SERVER_ENGINES
from harness.waiting import until

pytestmark = [pytest.mark.servers, pytest.mark.xdist_group("three")]
globals().update(suite(test_session_policies, "single_server", "platform_server"))


async def test_of_many_newcomers_at_once_one_stays_and_nobody_is_refused(single_server: Cluster) -> None:
    """As in the suite; which one stays is known only after all have heard of each other."""
    async with world(single_server) as here:
        ann, ben = await here.people("ann", "ben")
        tokens = [await ann.log_in(5, f"device{i}") for i in range(8)]
        clients = [await ann.open() for _ in tokens]
        for client, login in zip(clients, tokens, strict=True):
            await client.send({"type": "AUTH", "token": login.access})
        await asyncio.gather(*(client.expect("AUTH_OK") for client in clients))

        def left() -> list[Client]:
            return [client for client in clients if not client.seen("ERROR", reason="kicked")]

        await until(lambda: len(left()) <= 1, left)
        (last,) = left()
        await last.expect("RESEND_DONE")
        last.is_signed_in = True
        await test_session_policies.assert_reached(last, ben)
        assert last.seen("ERROR") == []


LONG = bool(os.environ.get("NEXO_LONG_TESTS"))


@pytest.fixture(scope="module", params=list(SERVER_ENGINES) if LONG else ["mariadb"])
def single_server(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with cluster(request.param, session__policy="single") as running:
        yield running


@pytest.fixture(scope="module", params=list(SERVER_ENGINES) if LONG else ["postgresql"])
def platform_server(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with cluster(request.param, session__policy="per_platform") as running:
        yield running
