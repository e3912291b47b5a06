"""Files against real servers: messages with files in every dialect, and clients of tus by others, unmodified, through
lost connections and a killed server. The long mode has 200 MiB and 20 cuts."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import os
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tusclient.client import TusClient
from tusclient.uploader import Uploader

from harness.chat import Person, world
from harness.dialects import SPEAKERS, Said
from harness.mounts import own_mounts
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


def curl(*options: str) -> bytes:
    return subprocess.run(["curl", "-sS", *options], capture_output=True, check=True, timeout=60).stdout


def get(url: str, *options: str) -> tuple[int, dict[str, str], bytes]:
    """Returns the status, the headers and the body that curl gets."""
    head, _, body = curl("-i", *options, url).partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    return int(lines[0].split()[1]), dict(line.lower().split(": ", 1) for line in lines[1:]), body


async def test_curl_gets_ranges_conditions_and_the_rest_of_a_download(server: ServerProcess, tmp_path: Path) -> None:
    data = secrets.token_bytes(700_001)
    async with world(server) as here:
        ann, ben = await here.people("ann", "ben")
        file = await upload(ann, data, "a.bin")
        content = {"file_id": file["file_id"]}
        sent = await ann.post(
            "/msg/send", client_msg_id=secrets.token_hex(8), recv_id=ben.user_id, msg_type=5, content=content
        )
        url = server.address + sent["content"]["url"]
    status, headers, body = get(url)
    assert (status, body, headers["accept-ranges"]) == (200, data, "bytes")
    assert "immutable" in headers["cache-control"]
    assert headers["content-disposition"].startswith("attachment")
    status, ranged, body = get(url, "-r", "1000-1999")
    assert (status, body, ranged["content-range"]) == (206, data[1000:2000], f"bytes 1000-1999/{len(data)}")
    assert get(url, "-r", "-5")[2] == data[-5:]
    assert get(url, "-r", f"{len(data)}-")[0] == 416
    assert get(url, "-H", f"If-None-Match: {headers['etag']}")[0] == 304
    assert get(url, "-H", 'If-Range: "other"', "-r", "0-9")[0] == 200
    part = tmp_path / "part"
    part.write_bytes(data[:300_000])
    curl("-C", "-", "-o", str(part), url)
    assert part.read_bytes() == data
    forged = url.replace("sig=", "sig=0")
    assert get(forged)[0] == 404


async def test_a_full_disk_of_files_refuses_uploads_and_messages_go_on(tmp_path: Path) -> None:
    """On a real small disk, which is mounted for the server alone."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = f'mount -t tmpfs -o size=6m nexo-small-disk {disk} && exec "$@"'
    wrapper = [*own_mounts(), "sh", "-c", mount, "sh"]
    with ServerProcess(files__url=f"file://{disk}", wrapper=wrapper) as server:
        async with world(server) as here:
            ann, ben = await here.people("ann", "ben")
            headers = {"Authorization": f"Bearer {ann.tokens.access}", "Tus-Resumable": "1.0.0"}
            async with httpx.AsyncClient(base_url=server.address, headers=headers, timeout=30) as http:
                begun = await http.post("/files/tus", headers={"Upload-Length": str(8 * MIB)})
                path = begun.headers["location"]
                kind = {"Content-Type": "application/offset+octet-stream"}
                body = secrets.token_bytes(8 * MIB)
                refused = await http.patch(path, content=body, headers={**kind, "Upload-Offset": "0"})
                assert (refused.status_code, refused.json()["err_msg"]) == (507, "storage_full")
                small = await http.post("/files", content=secrets.token_bytes(7 * MIB))
                assert (small.status_code, small.json()["err_msg"]) == (507, "storage_full")
                await ann.post("/msg/send", client_msg_id="c", recv_id=ben.user_id, content="still here")
                assert (await http.delete(path)).status_code == 204
                stored = await http.post("/files", content=secrets.token_bytes(3 * MIB))
                assert stored.status_code == 200, "what was refused takes no room"
