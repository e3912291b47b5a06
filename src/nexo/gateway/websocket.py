"""What the gateway asks of a WebSocket implementation, and the frames both sides share.

An implementation (`picows_link.py`, `websockets_link.py`) owns the handshake, the parsing and everything
RFC 6455 demands; it is a protocol class that uvicorn hands an upgraded connection to. There is no task
and no queue per connection: an implementation calls the `Peer`, and the peer calls the `Link`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Protocol

from msgspec import Struct


class Request(Struct, frozen=True):
    """An upgrade request. Header names are lower case; a repeated header is joined with a comma."""

    path: str
    query: str
    headers: Mapping[str, str]
    remote: str  # the address of the socket's other end
    subprotocols: tuple[str, ...]


class Accept(Struct, frozen=True):
    peer: Peer
    subprotocol: str | None = None


class Refuse(Struct, frozen=True):
    """Answered as plain HTTP; the connection is closed after it."""

    status: int
    body: bytes
    content_type: str = "application/json"


class Gate(Protocol):
    """Decides about upgrades, at once where it can; the implementation reads nothing until it has.

    A client may go meanwhile: then the peer is not opened, or opened and closed at once."""

    def decide(self, request: Request) -> Accept | Refuse | Awaitable[Accept | Refuse]: ...


class Link(Protocol):
    """One open connection, as its peer sees it."""

    frames_in: int  # whole messages that came, until the peer takes them over for the metrics
    bytes_in: int
    extra_frames: int  # control frames and fragments that came since the peer last set it to 0

    def write(self, frames: bytes) -> None:
        """Whole frames, as `text_frame` makes them. Never blocks; ignored once the connection is closing."""

    def ping(self) -> None: ...

    def close(self, code: int, reason: str = "") -> None:
        """Say goodbye with a close frame, wait a moment for the answer, then end. Reads no more messages."""

    def abort(self) -> None:
        """Reset the connection now: nothing that is buffered, here or in the kernel, is waited for."""

    def buffered(self) -> int:
        """Bytes written and not yet taken by the kernel."""

    def pause_reading(self) -> None:
        """What the current read brought is still handed over."""

    def resume_reading(self) -> None: ...


class Peer(Protocol):
    """The gateway's side of a connection. Calls come from the event loop, one at a time, in order."""

    def opened(self, link: Link) -> None:
        """The upgrade is done. Nothing was received yet."""

    def text(self, payload: bytes) -> None:
        """One whole text message, valid UTF-8, put together from its fragments."""

    def binary(self) -> None:
        """One whole binary message came; nobody wants it."""

    def seen(self) -> None:
        """Some frame came, of whatever kind (for the heartbeat): once per read, before `text` and `binary`."""

    def read_done(self) -> None:
        """Everything that one read brought has been handed over: what it led to can be written at once."""

    def too_big(self, limit: int) -> None:
        """A message over the limit began; the implementation closes with 1009 after this."""

    def pause_writing(self) -> None:
        """The write buffer went over the high-water mark. Called from within the `write` that did it."""

    def resume_writing(self) -> None:
        """It is under the low-water mark again."""

    def closed(self, code: int | None) -> None:
        """The connection is gone. Called exactly once after `opened`; `code` is the close code that was
        received, if any, and 1005 if a close frame came without one."""


class Limits(Struct, frozen=True):
    message_bytes: int = 64 * 1024
    high_water_bytes: int = 512 * 1024
    low_water_bytes: int = 256 * 1024
    close_wait_s: float = 2.0  # how long to wait for the answer to a close frame


# of payloads up to this size they are made beforehand: almost every frame is one of those
_HEADS = [bytes((0x81, size)) if size < 126 else b"\x81\x7e" + size.to_bytes(2, "big") for size in range(1024)]


def text_frame(payload: bytes) -> bytes:
    """An unmasked text frame: made once, written to every receiver."""
    size = len(payload)
    if size < 1024:
        return _HEADS[size] + payload
    if size < 65536:
        return b"\x81\x7e" + size.to_bytes(2, "big") + payload
    return b"\x81\x7f" + size.to_bytes(8, "big") + payload
