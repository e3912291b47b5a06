"""Bodies that go past the HTTP parser, from the socket to the file: what follows on their connection, and what becomes
of those that are not taken to their end."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from harness.chat import Person, world
from harness.server_process import ServerProcess

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with ServerProcess() as running:
        yield running


class Line:
    """A connection whose bytes the test writes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> None:
        self.reader = reader
        self.writer = writer
        self._common = f"Host: x\r\nAuthorization: Bearer {token}\r\nTus-Resumable: 1.0.0\r\n"

    def head(self, line: str, **headers: object) -> bytes:
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        return f"{line} HTTP/1.1\r\n{self._common}{lines}\r\n".encode()

    def patch(self, path: str, offset: int, size: int, **headers: object) -> bytes:
        kind = "application/offset+octet-stream"
        return self.head(f"PATCH {path}", Upload_Offset=offset, Content_Length=size, Content_Type=kind, **headers)

    async def write(self, *data: bytes) -> None:
        self.writer.write(b"".join(data))
        await self.writer.drain()

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        head = (await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), 60)).decode()
        headers = {name.lower(): value for name, value in re.findall(r"([^:\r\n]+): ([^\r\n]*)", head)}
        size = int(headers.get("content-length", 0))
        return int(head.split()[1]), headers, await self.reader.readexactly(size)

    async def begin(self, size: int) -> str:
        await self.write(self.head("POST /files/tus", Upload_Length=size, Content_Length=0))
        status, headers, _ = await self.answer()
        assert status == 201
        return headers["location"]

    async def offset(self, path: str) -> int:
        await self.write(self.head(f"HEAD {path}"))
        status, headers, _ = await self.head_answer()
        assert status == 200
        return int(headers["upload-offset"])

    async def head_answer(self) -> tuple[int, dict[str, str], bytes]:
        head = (await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), 60)).decode()
        headers = {name.lower(): value for name, value in re.findall(r"([^:\r\n]+): ([^\r\n]*)", head)}
        return int(head.split()[1]), headers, b""

    async def download(self, path: str) -> bytes:
        await self.write(self.head(f"GET /files/{path.rpartition('/')[2]}"))
        status, _, body = await self.answer()
        assert status == 200
        return body


@asynccontextmanager
async def line_to(server: ServerProcess, person: Person) -> AsyncIterator[Line]:
    parts = urlsplit(server.address)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        yield Line(reader, writer, person.tokens.access)
    finally:
        writer.close()


async def test_requests_follow_on_the_connection_of_a_large_body(server: ServerProcess) -> None:
    data = secrets.token_bytes(3 * MIB)
    async with world(server) as here, line_to(server, await here.person("ann")) as line:
        path = await line.begin(len(data))
        first, second = data[: 2 * MIB], data[2 * MIB :]
        await line.write(line.patch(path, 0, len(first)), first)
        status, headers, _ = await line.answer()
        assert (status, headers["upload-offset"]) == (204, str(len(first)))
        assert "close" not in headers.get("connection", "")
        # the next request is there before the body has been read
        await line.write(line.patch(path, len(first), len(second)), second, line.head(f"HEAD {path}"))
        assert (await line.answer())[0] == 204
        assert (await line.head_answer())[1]["upload-offset"] == str(len(data))
        assert await line.download(path) == data


async def test_a_client_that_asks_first_is_told_to_go_on(server: ServerProcess) -> None:
    data = secrets.token_bytes(MIB)
    async with world(server) as here, line_to(server, await here.person("ann")) as line:
        path = await line.begin(len(data))
        await line.write(line.patch(path, 0, len(data), Expect="100-continue"))
        assert (await line.answer())[0] == 100
        await line.write(data)
        assert (await line.answer())[0] == 204
        assert await line.download(path) == data


async def test_a_request_takes_an_upload_over_from_one_that_hangs(server: ServerProcess) -> None:
    data = secrets.token_bytes(4 * MIB)
    async with world(server) as here:
        ann = await here.person("ann")
        async with line_to(server, ann) as hanging, line_to(server, ann) as line:
            path = await line.begin(len(data))
            await hanging.write(hanging.patch(path, 0, len(data)), data[:MIB])
            offset = await line.offset(path)
            assert 0 <= offset <= MIB
            status, headers, body = await hanging.answer()
            assert (status, headers["connection"]) == (409, "close")
            assert b"Another request" in body
            assert await asyncio.wait_for(hanging.reader.read(), 60) == b"", "nothing of its rest can be a request"
            await line.write(line.patch(path, offset, len(data) - offset), data[offset:])
            assert (await line.answer())[0] == 204
            assert await line.download(path) == data


async def test_what_arrived_of_a_body_counts_when_its_connection_ends(server: ServerProcess) -> None:
    data = secrets.token_bytes(4 * MIB)
    async with world(server) as here:
        ann = await here.person("ann")
        async with line_to(server, ann) as line:
            path = await line.begin(len(data))
            async with line_to(server, ann) as ending:
                await ending.write(ending.patch(path, 0, len(data)), data[:MIB])
                ending.writer.write_eof()
                assert await asyncio.wait_for(ending.reader.read(), 60) != b""
            assert await line.offset(path) == MIB
            await line.write(line.patch(path, MIB, len(data)), data)
            status, headers, _ = await line.answer()
            assert (status, headers["connection"]) == (400, "close"), "longer than announced"
        async with line_to(server, ann) as line:
            await line.write(line.patch(path, MIB, 3 * MIB), data[MIB:])
            assert (await line.answer())[0] == 204
            assert await line.download(path) == data
