"""The interface between the gateway and a WebSocket implementation.

An implementation (`picows_endpoint.py`, `websockets_endpoint.py`) covers the handshake, parsing and all other rules of
RFC 6455; it is a protocol class to which uvicorn hands an upgraded connection. There is no task and no queue per
connection: an implementation calls the `Peer`, and the peer calls the `Socket`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Protocol

from msgspec import Struct

from nexo.transport.connection_counts import CountedConnection


class UpgradeRequest(Struct, frozen=True):
    """An upgrade request. Header names are lower case; a repeated header is joined with a comma."""

    path: str
    query: str
    headers: Mapping[str, str]
    remote: str  # the address of the socket's other end
    subprotocols: tuple[str, ...]
    counted: CountedConnection | None = None  # this connection in the counts; None: not counted


class Accept(Struct, frozen=True):
    peer: Peer
    subprotocol: str | None = None


class Refuse(Struct, frozen=True):
    """Answered as plain HTTP; the connection is closed after it."""

    status: int
    body: bytes
    content_type: str = "application/json"


class Gate(Protocol):
    """Decides about upgrades, at once where it can; the implementation reads nothing before the decision.

    If the client disconnects meanwhile, the peer is not opened, or opened and closed at once."""

    def decide(self, request: UpgradeRequest) -> Accept | Refuse | Awaitable[Accept | Refuse]: ...


class Socket(Protocol):
    """One open connection, as its peer sees it."""

    frames_in: int  # whole messages received, until the peer takes them over for the metrics
    bytes_in: int
    extra_frames: int  # control frames and fragments received since the peer last set it to 0

    def write(self, frames: bytes) -> None:
        """Write whole frames, as `wire.framing` makes them. Never blocks; ignored once the connection is closing."""

    def ping(self) -> None: ...

    def close(self, code: int, reason: str = "") -> None:
        """Send a close frame, wait a moment for the answer, then end. Reads no more messages."""

    def abort(self) -> None:
        """Reset the connection now: nothing that is buffered, here or in the kernel, is waited for."""

    def buffered(self) -> int:
        """Returns the bytes written and not yet taken by the kernel."""

    def pause_reading(self) -> None:
        """Pause after the current read, whose messages are still passed on."""

    def resume_reading(self) -> None: ...


class Peer(Protocol):
    """The gateway's side of a connection. Calls come from the event loop, one at a time, in order."""

    def opened(self, link: Socket) -> None:
        """The upgrade is done. Nothing was received yet."""

    def text(self, payload: bytes) -> None:
        """One whole text message, valid UTF-8, put together from its fragments."""

    def binary(self, payload: bytes) -> None:
        """One whole binary message, put together from its fragments."""

    def read_done(self) -> None:
        """A read with a frame of any kind has ended (for the heartbeat), and all its messages have been passed on:
        answers can be written at once."""

    def too_big(self, limit: int) -> None:
        """A message over the limit began; the implementation closes with 1009 after this."""

    def pause_writing(self) -> None:
        """The write buffer has exceeded the high-water mark. Called from within the `write` that did it."""

    def resume_writing(self) -> None:
        """The write buffer is below the low-water mark again."""

    def closed(self, code: int | None) -> None:
        """The connection is gone. Called exactly once after `opened`; `code` is the close code that was
        received, if any, and 1005 for a close frame without one."""


class SocketLimits(Struct, frozen=True):
    message_bytes: int = 64 * 1024
    high_water_bytes: int = 512 * 1024
    low_water_bytes: int = 256 * 1024
    close_wait_s: float = 2.0  # how long to wait for the answer to a close frame
