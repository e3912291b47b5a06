"""The opening handshake: from the upgrade request that uvicorn hands over to an open link, or to a refusal.

It is the same for every implementation. uvicorn creates one `Upgrade` per request, passes the head through
`data_received`, and only then makes it the transport's protocol. These connections are not in uvicorn's list, so its
shutdown neither ends nor awaits them: the gateway closes them.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import http.client
from collections.abc import Awaitable, Callable
from typing import Any, cast
from urllib.parse import unquote

import structlog
from uvicorn.server import ServerState

from nexo.transport.connection_counts import CountedConnection
from nexo.transport.endpoint import Endpoint, hang_up, reset
from nexo.transport.websocket import Accept, Gate, Peer, Refuse, SocketLimits, UpgradeRequest

log = structlog.get_logger()

OpenLink = Callable[[asyncio.Transport, Peer, SocketLimits], Endpoint]

ACCEPT_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
VERSION = "13"
NOT_GET = Refuse(405, b"A WebSocket is opened with GET", "text/plain")
NOT_OUR_VERSION = Refuse(426, b"The WebSocket version is 13", "text/plain")
BAD_KEY = Refuse(400, b"Sec-WebSocket-Key must be 16 bytes in base64", "text/plain")
FAILED = Refuse(500, b"internal error", "text/plain")
STOPPING = Refuse(503, b"the server is stopping", "text/plain")
# Headers that a status requires.
STATUS_HEADERS = {405: b"allow: GET\r\n", 426: b"upgrade: websocket\r\nsec-websocket-version: 13\r\n"}


def parse_head(head: bytes, remote: str, counted: CountedConnection | None) -> tuple[str, UpgradeRequest]:
    """Returns the method and the request. uvicorn has parsed it before: names are lower case, no line is malformed."""
    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    method, _, rest = first.partition(" ")
    target = rest.rpartition(" ")[0]
    if not target.startswith("/"):  # the absolute form, as sent to proxies
        target = "/" + target.partition("://")[2].partition("/")[2]
    path, _, query = target.partition("?")
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        value = value.strip(" \t")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    offered = (token.strip() for token in headers.get("sec-websocket-protocol", "").split(","))
    subprotocols = tuple(token for token in offered if token)
    return method, UpgradeRequest(unquote(path), query, headers, remote, subprotocols, counted)


def find_fault(method: str, request: UpgradeRequest) -> Refuse | None:
    """Returns the refusal of a request that is no valid upgrade; uvicorn has checked `Upgrade` and `Connection`."""
    if method != "GET":
        return NOT_GET
    if request.headers.get("sec-websocket-version") != VERSION:
        return NOT_OUR_VERSION
    try:
        key = base64.b64decode(request.headers.get("sec-websocket-key", ""), validate=True)
    except (binascii.Error, ValueError):
        return BAD_KEY
    return None if len(key) == 16 else BAD_KEY


def switching(key: str, subprotocol: str | None) -> bytes:
    accept = base64.b64encode(hashlib.sha1(key.encode() + ACCEPT_GUID, usedforsecurity=False).digest())
    chosen = b"" if subprotocol is None else b"Sec-WebSocket-Protocol: %b\r\n" % subprotocol.encode()
    return (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: %b\r\n%b\r\n" % (accept, chosen)
    )


def refusal(refuse: Refuse, defaults: list[tuple[bytes, bytes]]) -> bytes:
    return b"HTTP/1.1 %d %b\r\n%b%bcontent-type: %b\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b" % (
        refuse.status,
        http.client.responses.get(refuse.status, "").encode(),
        b"".join(b"%b: %b\r\n" % header for header in defaults),
        STATUS_HEADERS.get(refuse.status, b""),
        refuse.content_type.encode(),
        len(refuse.body),
        refuse.body,
    )


class Upgrade(asyncio.Protocol):
    """One upgrade request; the link's own protocol replaces it as soon as the gate accepts.

    Reading is paused until the gate has decided: data that a client sends directly behind its request waits in the
    kernel, where it is bounded, and reaches the parser as its first read.
    """

    def __init__(self, gate: Gate, limits: SocketLimits, open_link: OpenLink, server_state: ServerState) -> None:
        self._gate = gate
        self._limits = limits
        self._open_link = open_link
        self._server_state = server_state
        self._loop = asyncio.get_running_loop()
        self._deciding: asyncio.Task[Accept | Refuse] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._asked = self._lost = False
        self.counted: CountedConnection | None = None  # counted until the connection ends

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own class
        self._transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        if not self._asked:  # data after a refusal is discarded
            self._asked = True
            # In the next turn of the loop: uvicorn replaces the transport's protocol when this returns.
            self._loop.call_soon(self._ask, data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        if self.counted is not None:
            self.counted.leave()
        if self._timer is not None:
            self._timer.cancel()
        if self._deciding is not None:
            self._deciding.cancel()

    def _ask(self, head: bytes) -> None:
        if self._lost:
            return
        peername = self._transport.get_extra_info("peername")
        method, request = parse_head(head, str(peername[0]) if isinstance(peername, tuple) else "", self.counted)
        self._key = request.headers.get("sec-websocket-key", "")
        try:
            decision = find_fault(method, request) or self._gate.decide(request)
        except Exception:
            log.exception("websocket_gate_failed")
            decision = FAILED
        if isinstance(decision, Accept | Refuse):
            self._carry_out(decision)
        else:
            self._deciding = self._loop.create_task(_result_of(decision))
            # uvicorn waits for these when it stops, and cancels them when that takes too long.
            tasks = cast("set[asyncio.Task[Any]]", self._server_state.tasks)
            tasks.add(self._deciding)
            self._deciding.add_done_callback(tasks.discard)
            self._deciding.add_done_callback(self._decided)

    def _decided(self, task: asyncio.Task[Accept | Refuse]) -> None:
        if task.cancelled():
            self._carry_out(STOPPING)
        elif (error := task.exception()) is not None:
            log.error("websocket_gate_failed", exc_info=error)
            self._carry_out(FAILED)
        else:
            self._carry_out(task.result())

    def _carry_out(self, decision: Accept | Refuse) -> None:
        if self._lost or self._transport.is_closing():
            return
        if isinstance(decision, Refuse):
            self._refuse(decision)
        else:
            self._transport.write(switching(self._key, decision.subprotocol))
            self._open_link(self._transport, decision.peer, self._limits).counted = self.counted

    def _refuse(self, refuse: Refuse) -> None:
        if self.counted is not None:
            self.counted.move_back()
        self._transport.write(refusal(refuse, self._server_state.default_headers))
        self._timer = self._loop.call_later(self._limits.close_wait_s, self._give_up)
        hang_up(self._transport)

    def _give_up(self) -> None:
        if not self._lost:
            reset(self._transport)


async def _result_of(decision: Awaitable[Accept | Refuse]) -> Accept | Refuse:
    return await decision
