"""A dialect of binary frames through the real server: its messages, and messages of the other kind."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from harness.binary_dialect import NAME, SERVER, pack, unpack
from harness.chat import PATIENCE_S, Person, World, world
from harness.server_process import ServerProcess


@pytest.fixture(scope="module")
def binary_server() -> Iterator[ServerProcess]:
    with ServerProcess(wrapper=SERVER) as running:
        yield running


class BinaryClient:
    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def send(self, **fields: Any) -> None:
        await self.socket.send(pack(fields))

    async def next(self) -> dict[str, Any]:
        payload = await asyncio.wait_for(self.socket.recv(), PATIENCE_S)
        assert isinstance(payload, bytes), payload
        return unpack(payload)

    async def expect(self, field: str) -> dict[str, Any]:
        """The next frame with this field; what is between is for other eyes."""
        while field not in (frame := await self.next()):
            pass
        return frame


async def open_binary(here: World, person: Person) -> BinaryClient:
    socket = await connect(here.server.ws_address, subprotocols=[Subprotocol(NAME)], compression=None, proxy=None)
    assert socket.subprotocol == NAME
    client = BinaryClient(socket)
    await client.send(token=person.tokens.access)
    assert await client.expect("hello") == {"hello": person.user_id}
    return client


async def test_a_send_its_ack_and_the_push_are_binary_frames(binary_server: ServerProcess) -> None:
    async with world(binary_server, check_pushes=False) as here:
        ann, ben = await here.people("ann", "ben")
        at_ann, at_ben = await open_binary(here, ann), await open_binary(here, ben)
        await at_ann.send(id="m1", to=ben.user_id, text="x" * 3000)
        assert await at_ann.expect("saved") == {"saved": "m1", "seq": 1}
        assert await at_ben.expect("text") == {"from": ann.user_id, "seq": 1, "text": "x" * 3000}
        for client in (at_ann, at_ben):
            await client.socket.close()


async def test_binary_and_text_dialects_chat_with_each_other(binary_server: ServerProcess) -> None:
    async with world(binary_server) as here:
        ann, ben = await here.people("ann", "ben")
        binary, text = await open_binary(here, ann), await ben.connect()
        await binary.send(id="m1", to=ben.user_id, text="from binary")
        assert (await text.expect("SINGLE_CHAT"))["body"] == "from binary"
        await text.say(ann, "from text")
        assert (await binary.expect("text"))["text"] == "from text"
        await binary.socket.close()


async def test_what_is_sent_behind_the_token_waits_for_it(binary_server: ServerProcess) -> None:
    async with world(binary_server, check_pushes=False) as here:
        ann, ben = await here.people("ann", "ben")
        socket = await connect(here.server.ws_address, subprotocols=[Subprotocol(NAME)], compression=None, proxy=None)
        client = BinaryClient(socket)
        await client.send(token=ann.tokens.access)
        await client.send(id="m1", to=ben.user_id, text="at once")
        assert await client.expect("saved") == {"saved": "m1", "seq": 1}
        await socket.close()


async def test_a_text_message_violates_a_binary_dialect(binary_server: ServerProcess) -> None:
    async with world(binary_server, check_pushes=False) as here:
        ann, ben = await here.people("ann", "ben")
        client = await open_binary(here, ann)
        for _ in range(3):
            await client.socket.send("text")
            assert await client.expect("error") == {"error": "bad_json"}
        await client.send(id="m1", to=ben.user_id, text="three are endured")
        assert (await client.expect("saved"))["saved"] == "m1"
        await client.socket.send("text")
        with pytest.raises(ConnectionClosed):
            await client.expect("something after the fourth error")
        assert client.socket.close_code in range(4000, 4500)


async def test_a_binary_message_violates_a_text_dialect(binary_server: ServerProcess) -> None:
    """Also when what is inside would do as text."""
    async with world(binary_server, check_pushes=False) as here:
        (ann,) = await here.people("ann")
        client = await ann.connect()
        await client.send_raw(json.dumps({"type": "PING"}).encode())
        assert (await client.expect("ERROR"))["reason"] == "bad_json"
