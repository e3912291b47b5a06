"""A uvicorn server around a WebSocket implementation, with a gate and peers that do what a test says."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import uvicorn

from harness.ws_client import CLOSE, PATIENCE_S, RawClient, Received, open_client
from nexo.transport.connection_counts import ConnectionCounts
from nexo.transport.http_connection import make_http_protocol
from nexo.transport.http_watch import HttpWatch
from nexo.transport.implementations import make_protocol
from nexo.transport.websocket import Accept, Refuse, Socket, SocketLimits, UpgradeRequest
from nexo.wire.framing import text_frame

Decision = Accept | Refuse | Awaitable[Accept | Refuse]

HIGH, LOW = 150_000, 40_000  # not uvloop's own marks
PATIENT = SocketLimits(message_bytes=1000, high_water_bytes=HIGH, low_water_bytes=LOW, close_wait_s=PATIENCE_S)
HASTY = SocketLimits(message_bytes=1000, high_water_bytes=HIGH, low_water_bytes=LOW, close_wait_s=0.2)


class ScriptedPeer:
    """Notes every call, then runs the script of that name; answers each read with its messages, joined."""

    def __init__(self, *, echo: bool = True, **scripts: Callable[..., None]) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.link: Socket
        self._echo = echo
        self.scripts = scripts
        self._answers: list[bytes] = []
        self._changed = asyncio.Event()

    def _note(self, name: str, value: Any = None) -> None:
        self.calls.append((name, value))
        self._changed.set()
        script = self.scripts.get(name)
        if script is not None:
            script(*([] if value is None else [value]))

    def names(self) -> list[str]:
        return [name for name, _ in self.calls]

    def values(self, wanted: str) -> list[Any]:
        return [value for name, value in self.calls if name == wanted]

    async def until(self, name: str, count: int = 1) -> list[Any]:
        """Wait for the count-th call of that name; the values of all so far."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self.values(name)) < count:
                self._changed.clear()
                await self._changed.wait()
        return self.values(name)

    def opened(self, link: Socket) -> None:
        self.link = link
        self._note("opened")

    def text(self, payload: bytes) -> None:
        if self._echo:
            self._answers.append(text_frame(payload))
        self._note("text", payload)

    def binary(self, payload: bytes) -> None:
        self._note("binary", payload)

    def read_done(self) -> None:
        if self._answers:
            answers, self._answers = b"".join(self._answers), []
            self.link.write(answers)
        self._note("read_done")

    def too_big(self, limit: int) -> None:
        self._note("too_big", limit)

    def pause_writing(self) -> None:
        self._note("pause_writing")

    def resume_writing(self) -> None:
        self._note("resume_writing")

    def closed(self, code: int | None) -> None:
        self._note("closed", code)


class ScriptedGate:
    """Accepts everybody with a fresh echoing peer, unless a test sets `decision`."""

    def __init__(self) -> None:
        self.requests: list[UpgradeRequest] = []
        self.peers: list[ScriptedPeer] = []
        self.decision: Callable[[UpgradeRequest], Decision] = lambda _: self.accept()
        self.asked = asyncio.Event()

    def decide(self, request: UpgradeRequest) -> Decision:
        self.requests.append(request)
        self.asked.set()
        return self.decision(request)

    def accept(self, peer: ScriptedPeer | None = None, subprotocol: str | None = None) -> Accept:
        self.peers.append(peer or ScriptedPeer())
        return Accept(self.peers[-1], subprotocol)

    @property
    def peer(self) -> ScriptedPeer:
        return self.peers[-1]


async def say_hello(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """What is there besides WebSockets."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"hello"})


class ScriptedServer:
    def __init__(self, port: int, gate: ScriptedGate, server: uvicorn.Server) -> None:
        self.port = port
        self.gate = gate
        self.uvicorn = server


def make_server(
    implementation: str,
    gate: ScriptedGate,
    limits: SocketLimits | None = None,
    *,
    watch: HttpWatch | None = None,
    app: Any = None,
    **settings: Any,
) -> uvicorn.Server:
    protocol = make_protocol(implementation, gate, limits or SocketLimits())
    http = make_http_protocol(watch or HttpWatch(ConnectionCounts()))
    options = {"lifespan": "off", "log_config": None, "http": http, "ws": protocol, **settings}
    return uvicorn.Server(uvicorn.Config(app or say_hello, **options))


def listen(send_buffer_bytes: int | None = None) -> socket.socket:
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    if send_buffer_bytes is not None:  # inherited by every connection
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
    return listener


@contextlib.asynccontextmanager
async def scripted_server(
    implementation: str,
    limits: SocketLimits | None = None,
    *,
    send_buffer_bytes: int | None = None,
    watch: HttpWatch | None = None,
    app: Any = None,
) -> AsyncIterator[ScriptedServer]:
    """A real uvicorn in this event loop, without the tenths of a second its `serve` takes to stop."""
    gate = ScriptedGate()
    server = make_server(implementation, gate, limits, watch=watch, app=app)
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    with listen(send_buffer_bytes) as listener:
        await server.startup(sockets=[listener])
        await server.on_tick(0)  # sets the default headers
        try:
            yield ScriptedServer(listener.getsockname()[1], gate, server)
        finally:
            for accepting in server.servers:
                accepting.close()
            for peer in gate.peers:
                if "opened" in peer.names() and "closed" not in peer.names():
                    peer.link.abort()
                    await peer.until("closed")
            for task in server.server_state.tasks:
                task.cancel()


@contextlib.asynccontextmanager
async def one_client(
    implementation: str,
    peer: ScriptedPeer | None = None,
    limits: SocketLimits = PATIENT,
    *,
    tight: bool = False,
) -> AsyncIterator[tuple[RawClient, ScriptedPeer]]:
    """A server and one raw client with an open WebSocket; `tight` leaves the kernel little room in between."""
    buffer_bytes = 4096 if tight else None
    async with scripted_server(implementation, limits, send_buffer_bytes=buffer_bytes) as server:
        server.gate.decision = lambda _: server.gate.accept(peer)
        async with open_client(server.port, receive_buffer_bytes=buffer_bytes) as client:
            opened = server.gate.peer
            await opened.until("opened")
            yield client, opened


def closing(frames: list[Received]) -> int | None:
    """The code of the close frame, which must be the last frame."""
    assert [received.opcode for received in frames].count(CLOSE) == 1, frames
    return frames[-1].close_code


async def failed_with(client: RawClient, peer: ScriptedPeer) -> int | None:
    """The code that the server failed the connection with; nothing but a close frame may come."""
    frames = await client.rest()
    assert len(frames) == 1, frames
    client.sock.close()
    assert await peer.until("closed") == [None]
    return closing(frames)
