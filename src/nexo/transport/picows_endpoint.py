"""The fast WebSocket implementation: uvloop reads directly into the parser of picows, which is Cython.

`WSProtocol` is not public API: no other module imports it, pyproject.toml pins the version, and the conformance suite
checks what Nexo needs of it. It only parses here: what it would write is discarded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import structlog
from picows import WSAutoPingStrategy, WSFrame, WSListener, WSMsgType, WSTransport, WSUpgradeRequest, WSUpgradeResponse
from picows.common import WSUpgradeResponseWithListener
from picows.picows import WSProtocol  # type: ignore[attr-defined]
from uvicorn.config import Config
from uvicorn.server import ServerState

from nexo.transport.endpoint import PROTOCOL_ERROR, Endpoint
from nexo.transport.upgrade import Upgrade
from nexo.transport.websocket import Gate, Peer, SocketLimits

log = structlog.get_logger()

TEXT, PONG = WSMsgType.TEXT, WSMsgType.PONG
# picows's buffer starts with this much room and doubles whenever a read leaves it nine tenths full, also
# when all of it is parsed at once; it never shrinks. So a read is bounded: what a connection can pin is then
# twice its largest message and a read, not all that the kernel had for it. And see `Parser.slim`.
BUFFER_MIN_BYTES = 2048 - 256
READ_MAX_BYTES = 32 * 1024

# The handshake is done when the parser comes into play, but it insists on one.
HEAD = (
    b"GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
RESPONSE = WSUpgradeResponse.create_101_response()
NO_HEADERS = type(RESPONSE.headers)()
DISCARDED = memoryview(bytearray(64 * 1024))  # written by all connections that have ended, read by none


class Nowhere:
    """Stands in for a transport and its socket towards picows: the parser must not write, close or set options."""

    def get_extra_info(self, name: str) -> Any:
        return self  # also as `ssl_object`, or picows would write to the file descriptor itself

    def fileno(self) -> int:
        return -1

    def getsockopt(self, *args: object) -> int:
        return 0

    def get_write_buffer_size(self) -> int:
        return 0

    def _ignore(self, *args: object) -> None: ...

    setsockopt = write = writelines = close = abort = _ignore


class Quiet:
    """Not a `logging.Logger`, or picows makes a new one per connection; a bad client is no error of ours."""

    def isEnabledFor(self, level: int) -> bool:
        return False

    def _ignore(self, *args: object) -> None: ...

    log = debug = info = warning = error = _ignore

    def exception(self, message: str, *args: object) -> None:
        log.exception("websocket_parser_failed", detail=message)


NOWHERE, QUIET = Nowhere(), Quiet()


class PicowsEndpoint(Endpoint, WSListener):  # in this order: both know `pause_writing`
    def __init__(self, transport: asyncio.Transport, peer: Peer, limits: SocketLimits) -> None:
        Endpoint.__init__(self, transport, peer, limits)
        self.is_idle = False

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        if frame.rsv1 or frame.rsv2 or frame.rsv3:
            self.fail(PROTOCOL_ERROR, "a reserved bit is set")
        elif frame.msg_type is TEXT and frame.fin and self.partial is None and not self.deaf:
            payload = frame.get_payload_as_bytes()
            try:  # as `begin_read` and `message` do it, without the calls
                self.in_read = True
                if payload.isascii():
                    self.frames_in += 1
                    self.peer.text(payload)
                    return
            except Exception:
                self._peer_failed()
                return
            self.message(True, payload)
        else:
            # A client that only sends PONG has been silent since the last heartbeat.
            self.is_idle = frame.msg_type is PONG and frame.tail_size == 0
            self.frame(frame.msg_type.value, frame.fin == 1, frame.get_payload_as_bytes())


class Parser(WSProtocol):  # type: ignore[misc]
    """The transport's protocol. It must not be an `asyncio.Protocol`, or uvloop does not read into its buffer."""

    __slots__ = ("_link",)

    def __init__(self, link: PicowsEndpoint) -> None:
        self._link = link
        super().__init__(
            host_port=None,
            ws_path=None,
            is_client_side=False,
            ws_listener_factory=self._give_link,
            logger=QUIET,
            disconnect_on_exception=False,
            websocket_handshake_timeout=None,
            enable_auto_ping=False,  # it is a task per connection
            auto_ping_idle_timeout=None,
            auto_ping_reply_timeout=None,
            auto_ping_strategy=WSAutoPingStrategy.PING_WHEN_IDLE,
            enable_auto_pong=False,
            max_frame_size=link.limits.message_bytes,
            extra_headers=None,
            read_buffer_init_size=0,
        )
        super().connection_made(NOWHERE)
        super().get_buffer(-1)[: len(HEAD)] = HEAD
        super().buffer_updated(len(HEAD))
        self.transport.request.headers = NO_HEADERS  # otherwise kept as long as the connection

    def _give_link(self, request: WSUpgradeRequest) -> WSUpgradeResponseWithListener:
        return WSUpgradeResponseWithListener(RESPONSE, self._link)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        raise AssertionError("the transport is connected already")

    def get_buffer(self, size_hint: int) -> memoryview:
        if self._link.ended:
            return DISCARDED
        room: memoryview = get_buffer(self, size_hint)
        return room if len(room) <= READ_MAX_BYTES else room[:READ_MAX_BYTES]

    def buffer_updated(self, size: int) -> None:
        link = self._link
        if link.ended:
            return
        link.bytes_in += size
        if link.deaf:
            link.wait_through(size)
            if link.ended:
                return
        buffer_updated(self, size)
        if self.transport.is_close_frame_sent:  # set by the parser when it has failed
            sent = self.transport.close_handshake.sent
            link.parser_failed(int(sent.code), sent.reason)
        elif link.is_idle:
            self.slim()
        link.read_end()

    def slim(self) -> None:
        """Give a grown buffer back. The last frame had no tail, so there is nothing in it."""
        self._link.is_idle = False
        if len(get_buffer(self, -1)) > BUFFER_MIN_BYTES:
            self._link.transport.set_protocol(Parser(self._link))

    def pause_writing(self) -> None:
        self._link.pause_writing()

    def resume_writing(self) -> None:
        self._link.resume_writing()

    def eof_received(self) -> None:
        self._link.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._link.connection_lost(exc)


# Looked up once: both are called for every read.
get_buffer: Callable[[WSProtocol, int], memoryview] = WSProtocol.get_buffer
buffer_updated: Callable[[WSProtocol, int], None] = WSProtocol.buffer_updated


def open_link(transport: asyncio.Transport, peer: Peer, limits: SocketLimits) -> Endpoint:
    link = PicowsEndpoint(transport, peer, limits)
    transport.set_protocol(Parser(link))
    link.open()
    return link


def make_protocol(gate: Gate, limits: SocketLimits) -> type[asyncio.Protocol]:
    """The class for uvicorn's `Config(ws=…)`."""

    class PicowsUpgrade(Upgrade):
        def __init__(self, config: Config, server_state: ServerState, app_state: dict[str, object]) -> None:
            super().__init__(gate, limits, open_link, server_state)

    return PicowsUpgrade
