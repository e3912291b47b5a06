"""Calls with media that flow: devices with the Python SDK and aiortc, directly and through a real TURN server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.call_peer import CallPeer, call_peer
from harness.chat import PASSWORD, Person, world
from harness.coturn import Coturn
from harness.server_process import ServerProcess
from harness.waiting import until


@pytest.fixture(scope="module")
def coturn() -> Iterator[Coturn]:
    with Coturn() as running:
        yield running


@pytest.fixture(scope="module")
def relaying(coturn: Coturn) -> Iterator[ServerProcess]:
    settings = {"calls__turn": coturn.url(), "calls__turn_secret": coturn.secret}
    with ServerProcess(log_level="debug", **settings) as running:
        yield running


def device(server: ServerProcess, person: Person, *, relayed: bool = False) -> object:
    return call_peer(server.address, person.user_id, PASSWORD, relayed=relayed)


async def talk(caller: CallPeer, callee: CallPeer, user_id: str) -> None:
    rung: list[object] = []
    callee.client.calls.on("incoming", rung.append)
    await caller.invite(user_id)
    await until(lambda: rung)
    await callee.accept(rung[0])
    for side in (caller, callee):
        await side.sees_and_hears()


async def test_picture_and_sound_flow_directly(server: ServerProcess) -> None:
    async with world(server, check_pushes=False) as here:
        ann, ben = await here.people("ann", "ben")
        async with device(server, ann) as caller, device(server, ben) as callee:
            await talk(caller, callee, ben.user_id)
            assert caller.routes() == {("host", "host")}


async def test_picture_and_sound_flow_through_a_turn_server(relaying: ServerProcess, coturn: Coturn) -> None:
    async with world(relaying, check_pushes=False) as here:
        ann, ben = await here.people("ann", "ben")
        async with device(relaying, ann, relayed=True) as caller, device(relaying, ben, relayed=True) as callee:
            await talk(caller, callee, ben.user_id)
            assert caller.routes() == callee.routes() == {("relay", "relay")}
            print(coturn.output)
