"""HTTP requests that are too large, or never arrive: the bounds that uvicorn leaves to a proxy."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from contextvars import ContextVar
from typing import Any

import pytest
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from harness.waiting import until
from harness.ws_client import RawClient, open_client, raw_client, request_head, text
from harness.ws_server import scripted_server
from nexo.config import load
from nexo.transport.connection_counts import ConnectionCounts
from nexo.transport.http_watch import HttpBounds, HttpWatch
from nexo.transport.implementations import MAKERS

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
        # all at once: of a read that ends one request and begins another, it is unknown how much is the head's
        get = request_head("/", [*HOST, ("X-Much", "x" * 30_000)])
        await client.send(post + get[:20_000])
        assert (await client.response()).body == b"hello"
        await client.send(get[20_000:])
        assert (await client.response()).body == b"hello"


CHUNKED = request_head("/", [*HOST, ("Transfer-Encoding", "chunked")], "POST")


@pytest.mark.parametrize(
    ("start", "filler"),
    [(b"0\r\n", b"a: b\r\n" * (PIECE // 6)), (b"0\r\nX: ", b"a" * PIECE), (b"1;", b"a" * PIECE)],
    ids=["trailers", "one_trailer", "chunk_extension"],
)
async def test_what_surrounds_a_body_has_an_end(implementation: str, start: bytes, filler: bytes) -> None:
    async def pour(client: RawClient) -> None:
        await client.send(CHUNKED + start)
        while True:
            await client.send(filler)

    async def read_body(scope: dict[str, Any], receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass

    async with scripted_server(implementation, app=read_body) as server, raw_client(server.port) as client:
        pouring = asyncio.create_task(pour(client))
        try:
            assert (await client.response()).status == 431
        finally:
            pouring.cancel()
            await asyncio.wait({pouring})


async def test_many_small_chunks_are_no_long_head(implementation: str) -> None:
    body = b"1\r\nx\r\n" * 50_000
    async with scripted_server(implementation) as server, raw_client(server.port) as client:
        for start in range(0, len(body), PIECE):
            await client.send((CHUNKED if not start else b"") + body[start : start + PIECE])
        await client.send(b"0\r\n\r\n")
        assert (await client.response()).body == b"hello"


async def test_a_trailer_is_no_header(implementation: str) -> None:
    seen: list[bytes] = []

    async def note(scope: dict[str, Any], receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        seen.extend(name for name, _ in scope["headers"])
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

    async with scripted_server(implementation, app=note) as server, raw_client(server.port) as client:
        await client.send(CHUNKED + b"2\r\n{}\r\n0\r\nNexo-User: ann\r\n\r\n")
        assert (await client.response()).status == 200
        assert seen == [b"host", b"transfer-encoding"]


async def test_a_request_that_waited_knows_nothing_of_the_one_before_it(implementation: str) -> None:
    name: ContextVar[str] = ContextVar("name", default="")
    found: list[str] = []

    async def note(scope: dict[str, Any], receive: Any, send: Any) -> None:
        found.append(name.get())
        name.set(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

    async with scripted_server(implementation, app=note) as server, raw_client(server.port) as client:
        await client.send(b"".join(request_head(path, HOST) for path in ("/key", "/user", "/other")))
        for _ in range(3):
            assert (await client.response()).status == 200
    assert found == ["", "", ""]


async def test_what_does_not_arrive_is_given_up_and_nothing_else_is(implementation: str) -> None:
    watch = HttpWatch(ConnectionCounts(), HttpBounds(arrival_s=1.0))
    async with scripted_server(implementation, watch=watch) as server, AsyncExitStack() as stack:
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


async def test_a_head_that_arrives_in_one_read_is_bounded_too(implementation: str) -> None:
    """uvloop reads up to 256 KB at once: the head of this request is complete with its first read."""
    async with scripted_server(implementation) as server:
        for much in ([("X-Much", "x" * 100_000)], [(f"X-{i}", "x") for i in range(300)]):
            async with raw_client(server.port) as client:
                await client.send(request_head("/", [*HOST, *much]))
                assert (await client.response()).status == 431
                while await client.receive():
                    pass


class Answers:
    """An application whose answers wait for `go`; counts the requests that have begun and the objects behind them."""

    def __init__(self, body: bytes = b"hello") -> None:
        self.go = asyncio.Event()
        self.begun = asyncio.Semaphore(0)
        self.count = 0
        self.body = body

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        self.count += 1
        self.begun.release()
        await self.go.wait()
        length = b"%d" % len(self.body)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
        await send({"type": "http.response.body", "body": self.body})


@contextmanager
def without_collector() -> Iterator[None]:
    """Leaves what is only freed by the cycle collector in the memory."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def requests_in_memory() -> int:
    return sum(isinstance(found, RequestResponseCycle) for found in gc.get_objects())


async def until_equal(count: Callable[[], int], wanted: int) -> None:
    await until(lambda: count() == wanted, f"the count is {wanted}")


async def test_requests_behind_another_one_are_few_and_leave_nothing_behind(implementation: str) -> None:
    """A client that sends and never reads may not fill the memory, neither before it leaves nor after."""
    app = Answers()
    watch = HttpWatch(ConnectionCounts(), HttpBounds(pipelined_max=16))
    with without_collector():
        before = requests_in_memory()
        async with scripted_server(implementation, watch=watch, app=app) as server:
            async with raw_client(server.port) as client:
                for _ in range(10):
                    await client.send(request_head("/", HOST) * 100)
                async with asyncio.timeout(10):
                    await app.begun.acquire()
                assert 1 <= requests_in_memory() - before <= 17
            app.go.set()
            await until_equal(lambda: watch.counts.plain, 0)
            await until_equal(lambda: requests_in_memory() - before, 0)
        assert app.count <= 17


async def test_requests_that_have_arrived_in_front_of_too_many_are_answered_in_order(implementation: str) -> None:
    app = Answers()
    app.go.set()
    watch = HttpWatch(ConnectionCounts(), HttpBounds(pipelined_max=4))
    async with scripted_server(implementation, watch=watch, app=app) as server, raw_client(server.port) as client:
        await client.send(request_head("/", HOST) * 3)
        for _ in range(3):
            assert (await client.response()).body == b"hello"
        await client.send(request_head("/", HOST) * 20)
        answers = [await client.response() for _ in range(5)]
        assert [answer.body for answer in answers] == [b"hello"] * 5
        assert [answer.headers.get("connection") for answer in answers] == [None] * 4 + ["close"]
        while await client.receive():
            pass
        assert not client.data
        assert watch.ended["pipelined"] == 1


async def test_a_body_behind_another_request_arrives_once_it_is_wanted(implementation: str) -> None:
    async def read_all(scope: dict[str, Any], receive: Any, send: Any) -> None:
        size, more = 0, True
        while more:
            message = await receive()
            size += len(message["body"])
            more = message["more_body"]
        text = b"%d" % size
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(text))]})
        await send({"type": "http.response.body", "body": text})

    body = bytes(200_000)
    post = request_head("/", [*HOST, ("Content-Length", str(len(body)))], "POST") + body
    async with scripted_server(implementation, app=read_all) as server, raw_client(server.port) as client:
        sending = asyncio.create_task(client.send(post * 5))
        for _ in range(5):
            assert (await client.response()).body == b"200000"
        await sending


async def test_an_answer_that_is_not_taken_ends_its_connection(implementation: str) -> None:
    app = Answers(bytes(3_000_000))
    app.go.set()
    watch = HttpWatch(ConnectionCounts(), HttpBounds(stalled_s=0.5, keep_alive_s=1))
    serving = scripted_server(implementation, send_buffer_bytes=4096, watch=watch, app=app)
    async with serving as server, AsyncExitStack() as stack:
        for _ in range(3):
            tight = raw_client(server.port, receive_buffer_bytes=4096)
            await (await stack.enter_async_context(tight)).send(request_head("/", HOST))
        slow = await stack.enter_async_context(raw_client(server.port, receive_buffer_bytes=4096))
        await slow.send(request_head("/", HOST))

        async def only_the_slow_one_is_left() -> bool:
            await slow.receive()
            return watch.counts.plain == 1

        await until(only_the_slow_one_is_left)
        assert watch.ended["stalled"] == 3
        assert len((await slow.response()).body) == 3_000_000


async def test_a_request_that_trickles_in_has_a_deadline(implementation: str) -> None:
    watch = HttpWatch(ConnectionCounts(), HttpBounds(arrival_s=1.0))
    body = request_head("/", [*HOST, ("Content-Length", "1000")], "POST")

    async with scripted_server(implementation, watch=watch, app=Answers()) as server:
        for count, start in enumerate((b"GET /", body), 1):
            async with raw_client(server.port) as client:
                await client.send(start)

                async def is_given_up(client: RawClient = client, count: int = count) -> bool:
                    await client.send(b"x")
                    return watch.ended["arrival"] == count

                await until(is_given_up)
                assert (await client.response()).status == 408
        await until_equal(lambda: watch.counts.plain, 0)


async def test_plain_connections_are_counted_by_address_and_in_total(implementation: str) -> None:
    refused: list[str] = []
    config = load(env={}, flags={"limits.connections_per_ip": 3})
    watch = HttpWatch(ConnectionCounts(config, refused.append))
    async with scripted_server(implementation, watch=watch) as server, AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(raw_client(server.port)) for _ in range(3)]
        for client in clients:
            assert (await client.request("/", HOST)).status == 200
        async with raw_client(server.port) as one_more:
            answer = await one_more.request("/", HOST)
            assert answer.status == 429
            assert b'"err_msg":"too_many_requests"' in answer.body
        clients[0].sock.close()
        await until_equal(lambda: watch.counts.plain, 2)
        async with raw_client(server.port) as again:
            assert (await again.request("/", HOST)).status == 200
    assert refused == ["connections_per_ip"]


async def test_the_total_leaves_room_for_a_few_plain_connections(implementation: str) -> None:
    refused: list[str] = []
    watch = HttpWatch(ConnectionCounts(load(env={}, flags={"limits.connections_total": 2}), refused.append))
    async with scripted_server(implementation, watch=watch) as server, AsyncExitStack() as stack:
        for _ in range(10):
            await stack.enter_async_context(raw_client(server.port))
        await until_equal(lambda: watch.counts.plain, 10)
        async with raw_client(server.port) as one_more:
            assert (await one_more.request("/", HOST)).status == 503
    assert refused == ["connections_total"]


@pytest.mark.parametrize("start", ["waiting", "answering", "body", "pipelined"])
async def test_a_client_that_hangs_up_is_no_error(
    implementation: str, start: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = Answers(bytes(1_000_000))
    post = request_head("/", [*HOST, ("Content-Length", "1000")], "POST") + b"part"
    sent = {"body": post, "pipelined": request_head("/", HOST) * 5}.get(start, request_head("/", HOST))
    failures: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    with caplog.at_level(logging.INFO):
        async with scripted_server(implementation, send_buffer_bytes=4096, app=app) as server:
            for _ in range(10):
                async with raw_client(server.port, receive_buffer_bytes=4096) as client:
                    await client.send(sent)
                    async with asyncio.timeout(10):
                        await app.begun.acquire()
                    if start in ("answering", "pipelined"):
                        app.go.set()
                        await client.receive()
                    client.vanish()
                app.go.set()
                await until_equal(lambda: len(server.uvicorn.server_state.connections), 0)
                await until_equal(lambda: len(server.uvicorn.server_state.tasks), 0)
                app.go.clear()
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []
    assert failures == []


async def test_a_finished_connection_is_freed_without_the_collector(implementation: str) -> None:
    def connections_in_memory() -> int:
        return sum(isinstance(found, HttpToolsProtocol) for found in gc.get_objects())

    with without_collector():
        before = connections_in_memory()
        async with scripted_server(implementation) as server:
            async with raw_client(server.port) as client, open_client(server.port) as socket:
                assert (await client.request("/", HOST)).status == 200
                await socket.send(text("hello"))
                await socket.next_frame()
                assert connections_in_memory() > before
            await until_equal(lambda: connections_in_memory() - before, 0)
