"""The client for outgoing requests: one request, one bounded answer, connections kept, no redirects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from harness.core import refused
from nexo.outgoing import http_client
from nexo.outgoing.http_client import RESPONSE_MAX_BYTES, HttpAnswer, HttpClient, HttpFailure

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"


class Server:
    """Answers each request with the bytes of the script, and closes the connection where it says None."""

    def __init__(self, *script: bytes | None) -> None:
        self._script = list(script)
        self.requests: list[bytes] = []
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while self._script:
                head = await reader.readuntil(b"\r\n\r\n")
                size = int(head.partition(b"content-length: ")[2].split(b"\r\n")[0])
                self.requests.append(head + await reader.readexactly(size))
                answer = self._script.pop(0)
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
                if b"connection: close" in answer:
                    break
            else:
                await reader.read()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()


@asynccontextmanager
async def client_of(server: Server) -> AsyncIterator[HttpClient]:
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    client = HttpClient(
        f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/in", allow_private=True, agent="Nexo/test"
    )
    try:
        yield client
    finally:
        client.close()
        listener.close()


async def post(client: HttpClient, timeout_s: float = 20) -> http_client.HttpAnswer:
    return await client.post(b'{"a":1}', [("webhook-id", "m")], timeout_s)


async def test_a_request_has_its_headers_and_the_connection_is_kept() -> None:
    server = Server(OK, OK)
    async with client_of(server) as client:
        assert await post(client) == HttpAnswer(200, b"hi")
        assert await post(client) == HttpAnswer(200, b"hi")
    assert server.connections == 1
    head = server.requests[0].decode()
    assert head.startswith("POST /in HTTP/1.1\r\nhost: 127.0.0.1:")
    assert "webhook-id: m\r\n" in head
    assert head.endswith('content-length: 7\r\n\r\n{"a":1}')


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n", (302, b"")),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", (200, b"abc")),
        (b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nall of it", (200, b"all of it")),
        (b"HTTP/1.1 204 No Content\r\n\r\n", (204, b"")),
        (b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", (200, b"")),
    ],
)
async def test_answers_of_every_form_are_read(answer: bytes, expected: tuple[int, bytes]) -> None:
    async with client_of(Server(answer)) as client:
        assert await post(client) == HttpAnswer(*expected)


async def test_a_long_answer_is_cut_and_its_connection_closed() -> None:
    size = RESPONSE_MAX_BYTES * 4
    server = Server(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size + b"x" * size, OK)
    async with client_of(server) as client:
        answer = await post(client)
        assert (answer.status, len(answer.body) <= RESPONSE_MAX_BYTES) == (200, True)
        assert (await post(client)).body == b"hi"
    assert server.connections == 2


@pytest.mark.parametrize(
    "answer",
    [b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 200 OK\r\nx: " + b"y" * RESPONSE_MAX_BYTES * 2 + b"\r\n\r\n", None],
)
async def test_what_is_no_answer_is_a_failure(answer: bytes | None) -> None:
    async with client_of(Server(answer)) as client:
        with pytest.raises(HttpFailure):
            await post(client)


async def test_a_connection_that_was_closed_meanwhile_is_replaced() -> None:
    server = Server(OK, None, OK)
    async with client_of(server) as client:
        await post(client)
        assert await post(client) == HttpAnswer(200, b"hi")
    assert (server.connections, len(server.requests)) == (2, 3)


async def test_an_answer_that_does_not_arrive_in_time_is_a_failure() -> None:
    async with client_of(Server(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab")) as client:
        with pytest.raises(HttpFailure, match="no answer within"):
            await post(client, 0.1)


async def test_an_open_connection_is_not_used_once_the_name_has_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [["127.0.0.1"], ["127.0.0.2"]]

    async def look_up(target: object, **how: object) -> list[str]:
        return answers.pop(0)

    monkeypatch.setattr(http_client, "resolve", look_up)
    monkeypatch.setattr(http_client, "LOOKED_UP_S", -1)
    server = Server(OK, OK)
    async with client_of(server) as client:
        await post(client)
        with pytest.raises(HttpFailure):  # the server listens at the first address only
            await post(client)
    assert len(server.requests) == 1


async def test_an_address_that_is_not_global_is_refused_before_a_connection_is_made() -> None:
    server = Server(OK)
    async with client_of(server) as outside:
        inside = HttpClient(f"http://localhost:{outside.target.port}/", allow_private=False, agent="x")
        with refused("bad_url"):
            await post(inside)
    assert server.connections == 0
