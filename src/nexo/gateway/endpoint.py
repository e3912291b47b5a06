"""The server's end of one open WebSocket: all of RFC 6455 that does not depend on who parses the frames.

An implementation feeds it frames (`frame`), the parser's complaints (`parser_failed`) and the end of each
read (`read_end`), and is otherwise a protocol of the transport. There is no task: the only timer is the one
that ends a goodbye which takes too long.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable

import structlog

from nexo.gateway.websocket import Limits, Peer

log = structlog.get_logger()

CONTINUATION, TEXT, BINARY, CLOSE, PING = 0x0, 0x1, 0x2, 0x8, 0x9

PROTOCOL_ERROR = 1002
NO_CODE = 1005  # never on the wire: a close frame came, and it was empty
INVALID_TEXT = 1007
TOO_BIG = 1009
INTERNAL_ERROR = 1011

PING_FRAME = b"\x89\x00"
# All that RFC 6455 and the IANA registry let an endpoint send; 1004, 1005, 1006 and 1015 are not for the wire.
REGISTERED_CODES = frozenset({1000, 1001, 1002, 1003, *range(1007, 1015)})
REASON_MAX_BYTES = 123
AFTER_GOODBYE_MAX_BYTES = 1024 * 1024
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


def close_frame(code: int, reason: str = "") -> bytes:
    # A reason that is cut must stay valid UTF-8, or the client fails the connection over our goodbye.
    text = reason.encode()[:REASON_MAX_BYTES].decode(errors="ignore").encode()
    return bytes((0x88, len(text) + 2)) + code.to_bytes(2, "big") + text


def is_sendable(code: int) -> bool:
    return code in REGISTERED_CODES or 3000 <= code < 5000


def hang_up(transport: asyncio.Transport) -> None:
    """Half-close, and let the client read our last words.

    Closing while unread bytes lie in the socket makes the kernel send a reset, which on many systems throws
    away what the client has not read yet. The caller discards what still comes and bounds the wait.
    """
    if transport.can_write_eof():
        transport.write_eof()
        transport.resume_reading()
    else:  # TLS has no half-close
        transport.close()


def reset(transport: asyncio.Transport) -> None:
    # Without it the socket of a client that does not read stays in FIN_WAIT1, with all its backlog in the
    # kernel, until TCP gives up.
    end = transport.get_extra_info("socket")
    if end is not None:
        with contextlib.suppress(OSError):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
    transport.abort()


class Endpoint:
    """A `Link`, from the upgrade to the last byte.

    First it is open. It is `deaf` as soon as no more messages are handed over, because one of the sides said
    goodbye or broke the rules. It has `ended` when whatever still comes is thrown away.
    """

    def __init__(self, transport: asyncio.Transport, peer: Peer, limits: Limits) -> None:
        self.transport = transport
        self.peer = peer
        self.limits = limits
        self.deaf = False
        self.ended = False
        self.in_read = False  # the current read brought a frame
        self.frames_in = 0  # whole messages
        self.extra_frames = 0  # control frames and fragments, since the peer last set it to 0
        self.bytes_in = 0
        self.partial: bytearray | None = None  # the message whose fragments are coming in
        self._partial_is_text = False
        self._may_write = True
        self._paused = False
        self._gone = False
        self._pongs: bytearray | None = None
        self._failure: tuple[int, str] | None = None
        self._received: int | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._after_goodbye_bytes = 0

    def open(self) -> None:
        low = min(self.limits.low_water_bytes, self.limits.high_water_bytes)
        self.transport.set_write_buffer_limits(self.limits.high_water_bytes, low)
        self._tell(self.peer.opened, self)
        self.transport.resume_reading()

    # What the peer may do.

    def write(self, frames: bytes) -> None:
        if self._may_write:
            self.transport.write(frames)

    def ping(self) -> None:
        self.write(PING_FRAME)

    def close(self, code: int, reason: str = "") -> None:
        if not self._may_write:
            return
        self._say_goodbye(close_frame(code, reason))
        self._bound_the_wait()
        self.transport.resume_reading()  # for the answer, which may stand behind messages the peer did not want

    def abort(self) -> None:
        if not self._gone:
            self._silence()
            self.ended = True
            reset(self.transport)

    def buffered(self) -> int:
        return self.transport.get_write_buffer_size()

    def pause_reading(self) -> None:
        if self._may_write:
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        if self._may_write:
            self.transport.resume_reading()

    # What the parser tells.

    def frame(self, opcode: int, fin: bool, payload: bytes) -> None:
        """A frame that keeps to the rules for single frames; those for sequences are checked here."""
        if opcode == CLOSE:
            self._close_came(payload)
        elif not self.deaf:
            self.begin_read()
            if opcode <= BINARY:
                self._data(opcode, fin, payload)
                return
            self.extra_frames += 1
            if opcode == PING:
                self._owe_pong(payload)

    def message(self, is_text: bool, payload: bytes) -> None:
        self.frames_in += 1
        if is_text and not payload.isascii():  # the check is a tenth of the decoding
            try:
                payload.decode()
            except UnicodeDecodeError:
                self.fail(INVALID_TEXT, "invalid UTF-8")
                return
        try:
            if is_text:
                self.peer.text(payload)
            else:
                self.peer.binary()
        except Exception:
            self._peer_failed()

    def wait_through(self, size: int) -> None:
        """So much came although no more is wanted: the answer to our goodbye stands behind what was on its way, but
        not behind a flood."""
        self._after_goodbye_bytes += size
        if self._after_goodbye_bytes > AFTER_GOODBYE_MAX_BYTES:
            self.abort()

    def begin_read(self) -> None:
        if not self.in_read:
            self.in_read = True
            self._tell(self.peer.seen)

    def read_end(self) -> None:
        """All frames of one read were told. Goodbyes wait for this, so that answers still get out before them."""
        if self.in_read:
            self.in_read = False
            self._send_pongs()
            if self._may_write:
                self._tell(self.peer.read_done)
        if self.deaf:
            self._settle()

    def parser_failed(self, code: int, reason: str) -> None:
        if code == TOO_BIG:
            self._too_big()
        else:
            self.fail(code, reason)

    def fail(self, code: int, reason: str) -> None:
        """The client broke the rules, or the peer did (1011). The first counts, but a client's before the peer's:
        what is behind it cannot be read any more, so there is no answer to wait for."""
        self.deaf = True
        if self._failure is None or self._failure[0] == INTERNAL_ERROR:
            self._failure = code, reason

    # What the transport tells.

    def pause_writing(self) -> None:
        self._paused = True
        if self._may_write:
            self._tell(self.peer.pause_writing)

    def resume_writing(self) -> None:
        if not self._paused:
            return  # it was paused when the transport still spoke HTTP
        self._paused = False
        self._send_pongs()
        if self._may_write:
            self._tell(self.peer.resume_writing)

    def eof_received(self) -> None:
        # The transport closes by itself once its buffer is empty; that may never be.
        self._silence()
        self.ended = True
        self._bound_the_wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._silence()
        self._gone = self.ended = True
        if self._timer is not None:
            self._timer.cancel()
        try:
            self.peer.closed(self._received)
        except Exception:
            log.exception("websocket_peer_failed")
        del self.peer  # it knows us; without the circle both are freed at once

    # Messages.

    def _data(self, opcode: int, fin: bool, payload: bytes) -> None:
        if (self.partial is None) is (opcode == CONTINUATION):
            self.fail(PROTOCOL_ERROR, "a fragment out of place")
        elif len(payload) + len(self.partial or b"") > self.limits.message_bytes:
            self._too_big()
        elif self.partial is None and fin:
            self.message(opcode == TEXT, payload)
        else:
            self.extra_frames += 1
            if self.partial is None:
                # Not a list of fragments: a million empty ones must cost nothing.
                self.partial, self._partial_is_text = bytearray(), opcode == TEXT
            self.partial += payload
            if fin:
                whole, self.partial = bytes(self.partial), None
                self.message(self._partial_is_text, whole)

    def _too_big(self) -> None:
        if not self.deaf:
            self.begin_read()  # so that what the peer says to it is written with the rest
            self._tell(self.peer.too_big, self.limits.message_bytes)
        self.fail(TOO_BIG, f"a message has at most {self.limits.message_bytes} bytes")

    # Control frames.

    def _owe_pong(self, payload: bytes) -> None:
        # One write per read, however many pings; to a client that does not read, only the last is owed.
        if self._pongs is None or self._paused:
            self._pongs = bytearray()
        self._pongs += bytes((0x8A, len(payload)))
        self._pongs += payload

    def _send_pongs(self) -> None:
        if self._pongs is not None and not self._paused:
            self.write(bytes(self._pongs))
            self._pongs = None

    def _close_came(self, payload: bytes) -> None:
        if self._received is not None or self._failure is not None:
            return
        code = int.from_bytes(payload[:2], "big") if payload else NO_CODE
        if payload and not is_sendable(code):
            self.fail(PROTOCOL_ERROR, "a close code that is not for the wire")
        else:
            self._received = code
            self.deaf = True

    # Endings.

    def _settle(self) -> None:
        if self.ended:
            return
        if self._received is not None:
            self._say_goodbye(b"\x88\x00" if self._received == NO_CODE else close_frame(self._received))
            self._end(self.transport.close)
        elif self._failure is not None:
            code, reason = self._failure
            if code == INTERNAL_ERROR:  # the client did nothing wrong and may answer
                self._failure = None
                self.close(code, reason)
            else:
                self._say_goodbye(close_frame(code, reason))
                self._end(lambda: hang_up(self.transport))

    def _say_goodbye(self, frame: bytes) -> None:
        if self._may_write:
            self._silence()
            self.transport.write(frame)

    def _silence(self) -> None:
        self._may_write = False
        self.deaf = True
        self.partial = None

    def _end(self, leave: Callable[[], None]) -> None:
        self._silence()
        self.ended = True
        self._bound_the_wait()
        leave()

    def _bound_the_wait(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self.limits.close_wait_s, self.abort)

    # The peer is other people's code: whatever it raises costs its own connection and nothing else.

    def _tell(self, call: Callable[..., None], *args: object) -> None:
        try:
            call(*args)
        except Exception:
            self._peer_failed()

    def _peer_failed(self) -> None:
        log.exception("websocket_peer_failed")
        self.fail(INTERNAL_ERROR, "internal error")
        if not self.in_read:
            self._settle()
