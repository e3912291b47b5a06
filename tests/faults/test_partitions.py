"""Law 6 in a cluster whose instances cannot reach Redis, the database or both, wholly or in one direction.

A user who stays connected, to whichever instance, learns of every saved message within `bus.detect_s` plus two
seconds; /readyz names what is wrong; clients of an instance that cannot serve them are sent to another one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Iterator

import httpx
import pytest

from harness.followers import Follower, Saved, following, stored
from harness.partition import DETECT_S, FAULTS, LEARN_S, Node, Partition, partition
from harness.server_process import ServerProcess
from harness.two_phase import ON, QUICK, metric
from harness.waiting import nothing_for, until
from nexo.cluster.verdict import STAY_S

pytestmark = pytest.mark.servers

LONG = bool(os.environ.get("NEXO_LONG_TESTS"))
TWO_PHASE = {**ON, **QUICK, "bus__breaker_ms": 200}
SAVE_S = 10.0  # within this time an accepted message is saved, or its sender has the error
BOTH_SIDES = ("sender", "receiver")
SHORT: dict[str, list[tuple[str, str]]] = {
    "postgresql-direct": [
        *((fault, side) for fault in ("deaf", "mute") for side in BOTH_SIDES),
        *((f"{what} cut", "sender") for what in ("redis", "both")),
        *((f"{what} frozen", "receiver") for what in ("redis", "both")),
        ("database cut", "receiver"),
        ("database frozen", "sender"),
    ],
    "postgresql-two_phase": [
        ("redis frozen", "sender"),
        ("deaf", "receiver"),
        ("mute", "sender"),
        ("database frozen", "sender"),
        ("both cut", "receiver"),
    ],
    "mariadb-direct": [("redis cut", "receiver"), ("database frozen", "receiver"), ("both frozen", "sender")],
    "mariadb-two_phase": [],
}
ALL = [(fault, side) for fault in FAULTS for side in BOTH_SIDES]
SETTINGS = {"direct": {}, "two_phase": TWO_PHASE}
CELLS = [
    pytest.param(name, fault, side, id=f"{name}-{fault.replace(' ', '_')}-at_the_{side}s")
    for name, some in SHORT.items()
    for fault, side in (ALL if LONG else some)
]


class Running:
    """One cluster at a time, kept as long as tests ask for the same one."""

    def __init__(self) -> None:
        self._name = ""
        self._open = contextlib.ExitStack()
        self._two: Partition

    def get(self, name: str) -> Partition:
        if name != self._name:
            self.close()
            engine, way = name.split("-")
            self._two, self._name = self._open.enter_context(partition(engine, **SETTINGS[way])), name
        return self._two

    def close(self) -> None:
        if self._name:
            output, self._name = self._two.output, ""
            self._open.close()
            assert "Traceback" not in output, output[output.index("Traceback") - 500 :][:5000]


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    kept = Running()
    yield kept
    kept.close()


async def send_and_measure(sender: Follower, receiver: Follower, limit_s: float) -> str:
    """One message; its clientMsgId, once the receiver has learned of it within the limit."""
    name = sender.put(receiver.user_id)
    message = await sender.saved(name, SAVE_S + DETECT_S)
    took = await receiver.learns(message, limit_s + 5)
    assert took <= limit_s, f"learned {took:.1f} s after it was saved; notices {receiver.notices[-3:]}"
    return name


@pytest.mark.parametrize("fault", ["redis cut", "redis frozen"])
async def test_when_redis_is_gone_for_all_clients_stay_where_they_are(running: Running, fault: str) -> None:
    two = await asyncio.to_thread(running.get, "postgresql-direct")
    await two.recover()
    async with following(two.sites, 0, 1) as (sender, receiver):
        await send_and_measure(sender, receiver, LEARN_S)
        try:
            for node in two.nodes:
                node.suffer(fault)
            ends = time.monotonic() + DETECT_S + STAY_S + 1.5
            while time.monotonic() < ends:
                await send_and_measure(sender, receiver, LEARN_S)
                assert [(await node.readiness())[0] for node in two.nodes] == [200, 200]
                await nothing_for(0.3)
            assert sender.drops == receiver.drops == []
        finally:
            await two.recover()


async def test_when_the_database_is_gone_for_all_clients_stay_where_they_are(running: Running) -> None:
    two = await asyncio.to_thread(running.get, "postgresql-direct")
    await two.recover()
    async with following(two.sites, 0, 1) as (sender, receiver):
        await send_and_measure(sender, receiver, LEARN_S)
        try:
            for node in two.nodes:
                node.suffer("database frozen")
            name = sender.put(receiver.user_id)
            for node in two.nodes:
                assert "database" in await node.until_not_ready(DETECT_S + 6)
            await nothing_for(1.5)
            assert sender.drops == receiver.drops == []
        finally:
            await two.recover()
        await receiver.knows(await sender.saved(name))


async def test_an_instance_with_a_wrong_password_for_redis_is_not_ready_and_takes_no_clients(running: Running) -> None:
    """What is sent through it over HTTP reaches users of the others all the same."""
    two = await asyncio.to_thread(running.get, "postgresql-direct")
    await two.recover()
    wrong = two.redis.url.replace("redis://", "redis://:wrong@")
    other = ServerProcess(**{**two.settings, "redis__url": wrong})
    try:
        await asyncio.to_thread(other.start)
        node = Node(other, two.nodes[0].redis, two.nodes[0].database)
        assert "Redis" in await node.until_not_ready(DETECT_S + 6)
        async with following([*two.sites, other], 0, 2) as (receiver, stranger):
            await until(lambda: metric(other, "nexo_connections", state="signed_in") == 0, "it sends them away")
            assert stranger.connects, "and others take them"
            for _ in range(2):
                message = await send(other, stranger, receiver)
                assert await receiver.learns(message, LEARN_S + 5) <= LEARN_S
            assert receiver.drops == []
    finally:
        other.kill()


@pytest.mark.parametrize(("name", "fault", "side"), CELLS)
async def test_who_stays_connected_learns_of_every_saved_message(
    running: Running, name: str, fault: str, side: str
) -> None:
    two = await asyncio.to_thread(running.get, name)
    faulty, healthy = two.nodes
    homes = (0, 1) if side == "sender" else (1, 0)
    await two.recover()
    async with following(two.sites, *homes, 1) as (sender, receiver, bystander):
        names = [await send_and_measure(sender, receiver, LEARN_S)]
        resyncs = len(bystander.resyncs)
        began = time.monotonic()
        faulty.suffer(fault)
        try:
            names.append(await send_and_measure(sender, receiver, LEARN_S))  # before the loss is noticed
            await send_and_measure(bystander, receiver, LEARN_S)  # a chat that is in no cache
            reason = await faulty.until_not_ready(began + DETECT_S + 6 - time.monotonic())
            assert ("database" if "database" in fault else "Redis") in reason, reason
            names.append(await send_and_measure(sender, receiver, LEARN_S))  # after it was noticed
            await until_left(faulty, sender if side == "sender" else receiver, began + DETECT_S + 6)
            assert (await healthy.readiness())[0] == 200
            names.append(await send_and_measure(sender, receiver, LEARN_S))
            if "database" in fault:
                assert len(bystander.resyncs) == resyncs, "what one instance cannot read does not concern the others"
        finally:
            await two.recover()
        names.append(await send_and_measure(sender, receiver, LEARN_S))
        conversation_id = "si_{}:{}".format(*sorted((sender.user_id, receiver.user_id)))
        assert await stored(healthy.server, sender.token, conversation_id) == names, "all of it, once, in order"


async def until_left(node: Node, follower: Follower, deadline: float) -> None:
    """The client was sent to another instance, by a code that lets it reconnect, and has done so."""
    await until(lambda: follower.drops, "its client has left", patience_s=deadline - time.monotonic())
    code, why = follower.drops[0]
    assert (code, why) == (4905, "server_shutdown"), node.server.output[-3000:]
    await follower.connected()


async def send(site: ServerProcess, sender: Follower, receiver: Follower) -> Saved:
    async with httpx.AsyncClient(base_url=site.address, timeout=30, trust_env=False) as http:
        answer = await http.post(
            "/msg/send",
            json={"recv_id": receiver.user_id, "content": "hello", "client_msg_id": f"h{time.monotonic_ns()}"},
            headers={"Authorization": f"Bearer {sender.token}"},
        )
    data = answer.json()["data"]
    return Saved(data["conversation_id"], data["seq"], "", time.monotonic())
