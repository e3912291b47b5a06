"""Files against real servers: messages with files in every dialect, and a real client of tus through lost connections
and a killed server."""

from __future__ import annotations

import asyncio
import base64
import io
import secrets
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tusclient.client import TusClient
from tusclient.uploader import Uploader

from harness.chat import Person, world
from harness.dialects import SPEAKERS, Said
from harness.proxy import proxy_to
from harness.server_process import ServerProcess
from harness.waiting import until

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
MIB = 1024 * 1024


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


async def test_an_upload_survives_lost_connections_and_a_killed_server() -> None:
    data = secrets.token_bytes(24 * MIB + 7)
    with ServerProcess() as server, io.BytesIO(data) as source:
        async with world(server) as here, proxy_to(server.address) as proxy:
            ann = await here.person("ann")
            headers = {"Authorization": f"Bearer {ann.tokens.access}"}
            client = TusClient(proxy.url.replace("@", "") + "/files/tus", headers=headers)
            uploader = await asyncio.to_thread(client.uploader, file_stream=source, chunk_size=3 * MIB)
            uploader.set_url(await asyncio.to_thread(uploader.create_url))
            uploading = asyncio.create_task(asyncio.to_thread(carry_on, uploader))
            for cut in range(6):
                before = uploader.offset
                await until(lambda before=before: uploader.offset > before or uploading.done())  # type: ignore[misc]
                proxy.cut()
                if cut == 3:
                    server.kill()
                    server.start()
            await asyncio.wait_for(uploading, 60)
            file_id = uploader.url.rpartition("/")[2]
            async with httpx.AsyncClient(base_url=server.address, headers=headers, timeout=30) as http:
                assert (await http.get(f"/files/{file_id}")).content == data
            assert server.run("check", "--files").returncode == 0
