"""Three instances on one database: what happens on one is seen on the others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.chat import Client, Person, world
from harness.cluster import Cluster, cluster

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module", params=["mariadb", "postgresql"])
def three(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with cluster(request.param) as running:
        yield running


async def at(person: Person, three: Cluster, number: int, **options: object) -> Client:
    """A connection to a certain instance."""
    client = await person.open(uri=three[number].ws_address)
    await client.sign_in(**options)  # type: ignore[arg-type]
    return client


async def test_a_message_reaches_a_receiver_on_another_instance(three: Cluster) -> None:
    async with world(three) as here:
        ann, ben = await here.people("ann", "ben")
        sender, receiver = await at(ann, three, 0), await at(ben, three, 1)
        saved = await sender.say(ben, "across")
        got = await receiver.expect("SINGLE_CHAT", body="across")
        assert got["serverMsgId"] == saved["serverMsgId"]
        await receiver.acknowledge(got, "read")
        await sender.expect("ACK", ackType="read", serverMsgId=saved["serverMsgId"])
