"""The opening handshake of every WebSocket implementation, and its life inside uvicorn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from harness.waiting import loop_turns, nothing_for
from harness.ws_client import (
    PATIENCE_S,
    TEXT,
    Headers,
    accept_for,
    close,
    new_key,
    open_client,
    plain_headers,
    raw_client,
    request_head,
    text,
)
from harness.ws_server import (
    Decision,
    ScriptedGate,
    ScriptedServer,
    listen,
    make_server,
    scripted_server,
)
from nexo.transport.implementations import MAKERS
from nexo.transport.websocket import Accept, Refuse, UpgradeRequest


@pytest.fixture(scope="module", params=MAKERS)
def implementation(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# The opening handshake


def browser_headers(connection: str, extensions: str, agent: str) -> Headers:
    return [
        ("Host", "chat.example:8900"),
        ("Connection", connection),
        ("Pragma", "no-cache"),
        ("Cache-Control", "no-cache"),
        ("User-Agent", agent),
        ("Upgrade", "websocket"),
        ("Origin", "https://chat.example"),
        ("Sec-WebSocket-Version", "13"),
        ("Accept-Encoding", "gzip, deflate, br, zstd"),
        ("Accept-Language", "en-US,en;q=0.9"),
        ("Cookie", "theme=dark"),
        ("Sec-WebSocket-Key", new_key()),
        ("Sec-WebSocket-Extensions", extensions),
        ("Sec-WebSocket-Protocol", "nexo.envelope.v1, nexo.command.v1"),
    ]


BROWSERS = {
    "chrome": browser_headers("Upgrade", "permessage-deflate; client_max_window_bits", "Mozilla/5.0 Chrome/143"),
    "firefox": [
        *browser_headers("keep-alive, Upgrade", "permessage-deflate", "Mozilla/5.0 Firefox/145"),
        ("Accept", "*/*"),
        ("Sec-Fetch-Dest", "empty"),
        ("Sec-Fetch-Mode", "websocket"),
        ("Sec-Fetch-Site", "same-origin"),
    ],
    "safari": browser_headers("Upgrade", "permessage-deflate", "Mozilla/5.0 Version/26 Safari/605"),
    "shouting": [
        ("HOST", "chat.example"),
        ("UPGRADE", "WebSocket"),
        ("CONNECTION", "UPGRADE"),
        ("SEC-WEBSOCKET-VERSION", "13"),
        ("SEC-WEBSOCKET-KEY", new_key()),
    ],
}


@pytest.mark.parametrize("browser", BROWSERS)
async def test_browsers_are_let_in_without_extensions(implementation: str, browser: str) -> None:
    headers = BROWSERS[browser]
    key = next(value for name, value in headers if name.lower() == "sec-websocket-key")
    async with scripted_server(implementation) as server, raw_client(server.port) as client:
        response = await client.request("/ws", headers)
        assert response.status == 101
        assert response.headers["upgrade"].lower() == "websocket"
        assert response.headers["connection"].lower() == "upgrade"
        assert response.headers["sec-websocket-accept"] == accept_for(key)
        assert "sec-websocket-extensions" not in response.headers
        assert "sec-websocket-protocol" not in response.headers
        await client.send(text("ä"))
        assert await client.next_frame() == (TEXT, "ä".encode())


async def test_the_gate_sees_the_request(implementation: str) -> None:
    headers = [
        *plain_headers(sec_websocket_protocol="a,b , c"),
        ("X-Thing", "1"),
        ("x-thing", "2"),
        ("Sec-WebSocket-Protocol", "d"),
    ]
    async with scripted_server(implementation) as server, raw_client(server.port) as client:
        assert (await client.request("/w%C3%A4/x?a=1&b=%20?", headers)).status == 101
        (request,) = server.gate.requests
        assert (request.path, request.query, request.remote) == ("/wä/x", "a=1&b=%20?", "127.0.0.1")
        assert request.headers["x-thing"] == "1, 2"
        assert request.headers["host"] == "localhost"
        assert request.subprotocols == ("a", "b", "c", "d")


async def test_a_request_in_absolute_form_has_the_same_path(implementation: str) -> None:
    async with scripted_server(implementation) as server, raw_client(server.port) as client:
        assert (await client.request("http://localhost/ws?a=1", plain_headers())).status == 101
        (request,) = server.gate.requests
        assert (request.path, request.query) == ("/ws", "a=1")


async def test_the_chosen_subprotocol_is_told(implementation: str) -> None:
    async with scripted_server(implementation) as server, raw_client(server.port) as client:
        server.gate.decision = lambda request: server.gate.accept(subprotocol=request.subprotocols[1])
        response = await client.request("/ws", plain_headers(sec_websocket_protocol="a, b"))
        assert response.headers["sec-websocket-protocol"] == "b"


@pytest.mark.parametrize("later", [False, True])
async def test_a_refusal_is_plain_http(implementation: str, later: bool) -> None:
    refusal = Refuse(403, b'{"err_msg": "no"}')
    async with scripted_server(implementation) as server, raw_client(server.port) as client:
        server.gate.decision = lambda _: in_a_while(refusal) if later else refusal
        response = await client.request()
        assert (response.status, response.body) == (403, refusal.body)
        assert response.headers["content-type"] == "application/json"
        assert response.headers["connection"] == "close"
        assert "date" in response.headers
        assert await client.receive() == b""


async def in_a_while(decision: Accept | Refuse) -> Accept | Refuse:
    await loop_turns(2)
    return decision


@pytest.mark.parametrize(
    ("status", "changes", "method"),
    [
        (426, {"sec_websocket_version": "8"}, "GET"),
        (426, {"sec_websocket_version": None}, "GET"),
        (400, {"sec_websocket_key": None}, "GET"),
        (400, {"sec_websocket_key": ""}, "GET"),
        (400, {"sec_websocket_key": "c2hvcnQ="}, "GET"),
        (400, {"sec_websocket_key": "!!!!!!!!!!!!!!!!!!!!!!=="}, "GET"),
        (400, {"sec_websocket_key": "\xe4" * 24}, "GET"),
        (405, {}, "POST"),
    ],
)
async def test_a_handshake_that_breaks_the_rules_does_not_reach_the_gate(
    implementation: str, status: int, changes: dict[str, str | None], method: str
) -> None:
    async with scripted_server(implementation) as server, raw_client(server.port) as client:
        response = await client.request("/ws", plain_headers(**changes), method)
        assert response.status == status
        assert int(response.headers["content-length"]) == len(response.body) > 0
        assert response.headers.get("sec-websocket-version") == ("13" if status == 426 else None)
        assert await client.receive() == b""
        assert server.gate.requests == []


async def test_http_goes_on_beside_it(implementation: str) -> None:
    async with scripted_server(implementation) as server, raw_client(server.port) as client:
        assert (await client.request("/", [("Host", "localhost")])).body == b"hello"
        assert (await client.request("/ws")).status == 101  # on the same, kept-alive connection


async def test_what_is_sent_while_the_gate_decides_is_read_afterwards(implementation: str) -> None:
    async with scripted_server(implementation) as server, raw_client(server.port) as client:
        decided: asyncio.Future[Accept | Refuse] = asyncio.get_running_loop().create_future()
        server.gate.decision = lambda _: decided
        await client.send(request_head("/ws", plain_headers()))
        await server.gate.asked.wait()
        await client.send(*(text(f"hasty {number}") for number in range(500)))
        await nothing_for(0.05)
        assert server.gate.peers == []
        decided.set_result(server.gate.accept())
        assert (await client.response()).status == 101
        received = await client.next_frames(500)
        assert [frame.payload.decode() for frame in received] == [f"hasty {number}" for number in range(500)]
        assert server.gate.peer.names()[:2] == ["opened", "text"]


async def test_a_refusal_reaches_a_client_that_has_sent_more(implementation: str) -> None:
    async with scripted_server(implementation) as server, raw_client(server.port) as client:
        decided: asyncio.Future[Accept | Refuse] = asyncio.get_running_loop().create_future()
        server.gate.decision = lambda _: decided
        await client.send(request_head("/ws", plain_headers()))
        await server.gate.asked.wait()
        await client.send(text("x" * 500) * 100)
        decided.set_result(Refuse(401, b"no"))
        assert (await client.response()).status == 401
        await client.send(text("x" * 500) * 100)  # not a reset, which could overtake the response elsewhere
        assert await client.receive() == b""


async def test_a_client_cannot_fill_memory_while_the_gate_decides(implementation: str) -> None:
    async with scripted_server(implementation) as server, raw_client(server.port) as client:
        decided: asyncio.Future[Accept | Refuse] = asyncio.get_running_loop().create_future()
        server.gate.decision = lambda _: decided
        await client.send(request_head("/ws", plain_headers()))
        await server.gate.asked.wait()
        with pytest.raises(TimeoutError):  # the kernel takes some megabytes, and then no more
            async with asyncio.timeout(1):
                await asyncio.get_running_loop().sock_sendall(client.sock, bytes(64 * 1024 * 1024))


@pytest.mark.parametrize("later", [False, True])
async def test_a_gate_that_fails_is_an_internal_error(implementation: str, later: bool) -> None:
    async def fail_later() -> Accept | Refuse:
        raise RuntimeError("the gate is broken")

    def decide(request: UpgradeRequest) -> Decision:
        if later:
            return fail_later()
        raise RuntimeError("the gate is broken")

    async with scripted_server(implementation) as server, raw_client(server.port) as client:
        server.gate.decision = decide
        with capture_logs() as logs:
            assert (await client.request()).status == 500
        assert [entry["event"] for entry in logs] == ["websocket_gate_failed"]


async def test_a_client_that_went_while_the_gate_decided_is_gone_at_once(implementation: str) -> None:
    async with scripted_server(implementation) as server:
        decided: asyncio.Future[Accept | Refuse] = asyncio.get_running_loop().create_future()
        server.gate.decision = lambda _: decided
        async with raw_client(server.port) as client:
            await client.send(request_head("/ws", plain_headers()))
            await server.gate.asked.wait()
            client.vanish()
        decided.set_result(server.gate.accept())
        # Nobody reads from the socket before, so the end is seen only behind the upgrade.
        assert await server.gate.peer.until("closed") == [None]
        assert server.gate.peer.names() == ["opened", "closed"]


async def test_a_stopping_server_refuses_those_it_has_not_decided_about(implementation: str) -> None:
    async with scripted_server(implementation) as server, raw_client(server.port) as client:
        server.gate.decision = lambda _: asyncio.get_running_loop().create_future()
        await client.send(request_head("/ws", plain_headers()))
        await server.gate.asked.wait()
        (task,) = server.uvicorn.server_state.tasks  # so that uvicorn waits for it
        task.cancel()
        assert (await client.response()).status == 503


# The server around it


async def test_uvicorn_stops_without_waiting_and_lets_goodbyes_be_said(implementation: str) -> None:
    gate = ScriptedGate()

    async def app(scope: dict[str, Any], receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
        assert (await receive())["type"] == "lifespan.startup"
        await send({"type": "lifespan.startup.complete"})
        assert (await receive())["type"] == "lifespan.shutdown"
        gate.peer.link.close(4500, "server_shutdown")
        await gate.peer.until("closed")
        await send({"type": "lifespan.shutdown.complete"})

    server = make_server(implementation, gate, lifespan="on")
    server.config.app = app
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    with listen() as listener:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        async with open_client(listener.getsockname()[1]) as client:
            await gate.peer.until("opened")
            server.should_exit = True
            assert (await client.next_frame()).close_code == 4500
            await client.send(close(4500))
            async with asyncio.timeout(PATIENCE_S):
                await serving
            assert await client.rest() == []


# An independent client


async def test_the_websockets_client_agrees(implementation: str) -> None:
    async with scripted_server(implementation) as server:
        server.gate.decision = lambda request: server.gate.accept(subprotocol=request.subprotocols[-1])
        async with connect(f"ws://127.0.0.1:{server.port}/ws?x=1", subprotocols=["a", "b"]) as client:  # type: ignore[list-item]
            assert client.subprotocol == "b"
            for message in ("", "héllo", "x" * 65_000):
                await client.send(message)
                assert await client.recv() == message
            await client.send(["frag", "men", "ted"])
            assert await client.recv() == "fragmented"
            await (await client.ping(b"payload"))
            await client.close(4321, "bye")
            assert client.close_code == 4321
        assert await server.gate.peer.until("closed") == [4321]


async def test_the_websockets_client_understands_our_goodbye(implementation: str) -> None:
    async with scripted_server(implementation) as server:
        async with connect(f"ws://127.0.0.1:{server.port}/ws") as client:
            (await server.gate.peer.until("opened"),)
            server.gate.peer.link.close(4001, "kicked")
            with pytest.raises(ConnectionClosed) as closed:
                await client.recv()
            assert closed.value.rcvd is not None
            assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4001, "kicked")
        assert await server.gate.peer.until("closed") == [4001]


async def test_many_clients_at_once(implementation: str) -> None:
    async def talk(server: ScriptedServer, number: int) -> None:
        async with connect(f"ws://127.0.0.1:{server.port}/ws") as client:
            for turn in range(20):
                await client.send(f"{number} {turn}")
                assert await client.recv() == f"{number} {turn}"

    async with scripted_server(implementation) as server:
        server.gate.decision = lambda _: in_a_while(server.gate.accept())
        await asyncio.gather(*(talk(server, number) for number in range(50)))
        for peer in server.gate.peers:
            assert await peer.until("closed") == [1000]
