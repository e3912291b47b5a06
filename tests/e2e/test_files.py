"""Files against real servers: messages with files in every dialect, and clients of tus by others, unmodified, through
lost connections and a killed server. The long mode has 200 MiB and 20 cuts."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tusclient.client import TusClient
from tusclient.uploader import Uploader

from harness.chat import Person, world
from harness.dialects import SPEAKERS, Said
from harness.proxy import Moment, proxy_to
from harness.server_process import ServerProcess
from harness.tus import tus_js_client

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
MIB = 1024 * 1024
IS_LONG = os.environ.get("NEXO_LONG_TESTS", "") == "1"
SIZE, CUTS, CHUNK = (200 * MIB + 7, 20, 6 * MIB) if IS_LONG else (24 * MIB + 7, 6, 2 * MIB)


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with ServerProcess() as running:
        yield running


async def upload(person: Person, data: bytes = PICTURE, name: str = "a.png") -> Any:
    headers = {"Authorization": f"Bearer {person.tokens.access}"}
    return await person.world.call("POST", f"/files?name={name}", content=data, headers=headers)


@pytest.mark.parametrize("name", SPEAKERS)
async def test_a_message_with_a_file_is_pushed_pulled_and_downloaded_in_every_dialect(
    server: ServerProcess, name: str
) -> None:
    async with world(server) as here:
        ann, ben = await here.people("ann", "ben")
        file = await upload(ann)
        speaking, listening = [await SPEAKERS[name].connect(person) for person in (ann, ben)]
        sent = await speaking.say(ben.user_id, {"file_id": file["file_id"], "text": "see"})
        said = await listening.expect(Said, msg_id=sent.msg_id)
        described = {key: said.content[key] for key in ("file_id", "name", "mime", "size", "text")}
        assert described == {**{key: file[key] for key in ("file_id", "name", "mime", "size")}, "text": "see"}
        assert (await here.http.get(said.content["url"])).content == PICTURE
        (pulled,) = await listening.history(ann.user_id)
        assert pulled.content == said.content
        await speaking.recall(sent.msg_id)
        assert (await here.http.get(said.content["url"])).status_code == 404


def carry_on(uploader: Uploader) -> None:
    """Uploads as an application does: after any failure it asks for the offset and continues."""
    while uploader.offset < uploader.get_file_size():
        try:
            uploader.upload()
        except Exception:
            try:
                uploader.offset = uploader.get_offset()
            except Exception:
                continue


def marked_data() -> bytes:
    """Random bytes with a mark wherever a connection is to be cut: in the middle of requests."""
    data = bytearray(secrets.token_bytes(SIZE))
    for number in range(CUTS):
        mark = mark_of(number).encode() * 100
        place = SIZE // CUTS * number + SIZE // CUTS // 2
        data[place : place + len(mark)] = mark
    return bytes(data)


def mark_of(number: int) -> str:
    return f"<cut {number:04d}>"


async def survive(server: ServerProcess, traps: list[asyncio.Event]) -> None:
    """Waits until all connections have been cut, and kills the server after half of them."""
    for number, trap in enumerate(traps):
        await asyncio.wait_for(trap.wait(), 120)
        if number == CUTS // 2:
            server.kill()
            await asyncio.to_thread(server.start)


async def check_bytes(server: ServerProcess, person: Person, url: str, data: bytes) -> None:
    headers = {"Authorization": f"Bearer {person.tokens.access}"}
    async with httpx.AsyncClient(base_url=server.address, headers=headers, timeout=60) as http:
        found = await http.get(f"/files/{url.rpartition('/')[2]}")
        assert found.status_code == 200, found.text
        assert hashlib.sha256(found.content).digest() == hashlib.sha256(data).digest()
    assert (await asyncio.to_thread(server.run, "check", "--files")).returncode == 0


async def test_tuspy_survives_lost_connections_and_a_killed_server() -> None:
    data = marked_data()
    with ServerProcess(files__max_bytes=SIZE) as server, io.BytesIO(data) as source:
        async with world(server) as here, proxy_to(server.address) as proxy:
            ann = await here.person("ann")
            headers = {"Authorization": f"Bearer {ann.tokens.access}"}
            client = TusClient(proxy.url.replace("@", "") + "/files/tus", headers=headers)
            uploader = await asyncio.to_thread(client.uploader, file_stream=source, chunk_size=CHUNK)
            uploader.set_url(await asyncio.to_thread(uploader.create_url))
            traps = [proxy.cut_at(mark_of(number), Moment.BEFORE) for number in range(CUTS)]
            uploading = asyncio.create_task(asyncio.to_thread(carry_on, uploader))
            await survive(server, traps)
            await asyncio.wait_for(uploading, 300)
            await check_bytes(server, ann, uploader.url, data)


async def test_tus_js_client_survives_lost_connections_and_a_killed_server(tmp_path: Path) -> None:
    data = marked_data()
    path = tmp_path / "large.bin"
    path.write_bytes(data)
    with ServerProcess(files__max_bytes=SIZE) as server:
        async with world(server) as here, proxy_to(server.address) as proxy:
            ann = await here.person("ann")
            endpoint = proxy.url.replace("@", "") + "/files/tus"
            traps = [proxy.cut_at(mark_of(number), Moment.BEFORE) for number in range(CUTS)]
            async with tus_js_client(endpoint, ann.tokens.access, path, CHUNK) as client:
                await survive(server, traps)
                url = await client.address(300)
            await check_bytes(server, ann, url, data)
