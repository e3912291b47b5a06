"""HTTP requests that are too large, or never arrive: the bounds that uvicorn leaves to a proxy."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from harness.ws_client import RawClient, open_client, raw_client, request_head, text
from harness.ws_server import scripted_server
from nexo.gateway import http_link
from nexo.gateway.links import MAKERS

HOST = [("Host", "localhost")]
PIECE = 16 * 1024


@pytest.fixture(params=MAKERS)
def implementation(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("start", [b"GET / HTTP/1.1\r\nX: ", b"GET / HTTP/1.1\r\n", b"GET /"])
async def test_a_head_without_end_is_refused(implementation: str, start: bytes) -> None:
    filler = b"a" * PIECE if not start.endswith(b"\n") else b"a: b\r\n" * (PIECE // 6)

    async def pour(client: RawClient) -> None:
        await client.send(start)
        while True:
            await client.send(filler)

    async with scripted_server(implementation) as server, raw_client(server.port) as client:
        pouring = asyncio.create_task(pour(client))
        try:
            assert (await client.response()).status == 431
        finally:
            pouring.cancel()
            await asyncio.wait({pouring})


async def test_a_long_body_is_no_long_head(implementation: str) -> None:
    body = bytes(100_000)
    post = request_head("/", [*HOST, ("Content-Length", str(len(body)))], "POST") + body
    async with scripted_server(implementation) as server, raw_client(server.port) as client:
        # all at once: of a read that ends one request and begins another, nobody knows how much is the head's
        get = request_head("/", [*HOST, ("X-Much", "x" * 30_000)])
        await client.send(post + get[:20_000])
        assert (await client.response()).body == b"hello"
        await client.send(get[20_000:])
        assert (await client.response()).body == b"hello"


async def test_what_does_not_arrive_is_given_up_and_nothing_else_is(
    implementation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_link, "ARRIVAL_S", 1.0)
    async with scripted_server(implementation) as server, AsyncExitStack() as stack:
        server.uvicorn.config.timeout_keep_alive = 300
        kept = await stack.enter_async_context(raw_client(server.port))
        assert (await kept.request("/", HOST)).body == b"hello"
        socket = await stack.enter_async_context(open_client(server.port))
        late = []
        for start in (b"", b"GET / HT", request_head("/", [*HOST, ("Content-Length", "5")], "POST")):
            late.append(await stack.enter_async_context(raw_client(server.port)))
            await late[-1].send(start)
        for client in late:
            while await client.receive():
                pass
        assert (await kept.request("/", HOST)).body == b"hello"
        await socket.send(text("still here"))
        assert (await socket.next_frame()).payload == b"still here"
