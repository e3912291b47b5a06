"""Calls whose media flow: devices with the Python SDK and aiortc, directly and through a real TURN server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager

import pytest
from aioice import stun, turn

from harness.call_peer import CallPeer, call_peer
from harness.chat import PASSWORD, Person, world
from harness.coturn import Coturn
from harness.server_process import ServerProcess
from harness.waiting import until
from nexo_client import Call


@pytest.fixture(scope="module")
def coturn() -> Iterator[Coturn]:
    with Coturn() as running:
        yield running


@pytest.fixture(scope="module")
def relaying(coturn: Coturn) -> Iterator[ServerProcess]:
    settings = {"calls__turn": coturn.url(), "calls__turn_secret": coturn.secret}
    with ServerProcess(log_level="debug", **settings) as running:
        yield running


def device(server: ServerProcess, person: Person, *, relayed: bool = False) -> AbstractAsyncContextManager[CallPeer]:
    return call_peer(server.address, person.user_id, PASSWORD, relayed=relayed)


async def talk(caller: CallPeer, callee: CallPeer, user_id: str) -> None:
    """Until picture and sound arrive on both sides."""
    rung: list[Call] = []
    callee.client.calls.on("incoming", rung.append)
    await caller.invite(user_id)
    await until(lambda: rung)
    await callee.accept(rung[0])
    for side in (caller, callee):
        await side.sees_and_hears()


async def test_picture_and_sound_flow_directly_and_outlive_the_server() -> None:
    with ServerProcess() as server:
        async with world(server, check_pushes=False) as here:
            ann, ben = await here.people("ann", "ben")
            async with device(server, ann) as caller, device(server, ben) as callee:
                await talk(caller, callee, ben.user_id)
                assert caller.routes() == {("host", "host")}
                server.kill()
                for side in (caller, callee):
                    await side.sees_and_hears()
                server.start()
                assert caller.call is not None
                assert callee.call is not None
                caller.call.end()
                await until(lambda: callee.call.state == "ended")
                await until(lambda: caller.client.state == "online")
                (listed,) = (await caller.client.calls.list()).calls
                assert (listed.call_id, listed.outcome) == (caller.call.call_id, "completed")


async def test_picture_and_sound_flow_through_a_turn_server(relaying: ServerProcess, coturn: Coturn) -> None:
    async with world(relaying, check_pushes=False) as here:
        ann, ben = await here.people("ann", "ben")
        async with device(relaying, ann, relayed=True) as caller, device(relaying, ben, relayed=True) as callee:
            await talk(caller, callee, ben.user_id)
            assert caller.routes() == callee.routes() == {("relay", "relay")}
            assert caller.rtc is not None
            description = caller.rtc.localDescription.sdp
            hidden = [line for line in description.splitlines() if "candidate" in line or "ice-pwd" in line]
            hidden += [one.credential for one in await caller.client.calls.ice_servers() if one.credential]
        assert len(hidden) >= 3
        said = relaying.output + coturn.output
        assert ann.user_id in said
        assert not [text for text in hidden if text in said]


async def test_the_turn_server_takes_the_credentials_that_nexo_gives_and_no_others(
    relaying: ServerProcess, coturn: Coturn
) -> None:
    async with world(relaying, check_pushes=False) as here:
        (ann,) = await here.people("ann")
        (given,) = (await ann.get("/call/ice"))["ice_servers"]
        server = ("127.0.0.1", coturn.port)

        async def allocate(username: str, credential: str) -> None:
            transport, _ = await turn.create_turn_endpoint(asyncio.DatagramProtocol, server, username, credential)
            transport.close()

        await allocate(given["username"], given["credential"])
        later = given["username"].replace(":", "0:")  # as if it were valid for longer
        with pytest.raises(stun.TransactionFailed):
            await allocate(later, given["credential"])
