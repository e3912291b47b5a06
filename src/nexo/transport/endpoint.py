"""The server's end of one open WebSocket: the part of RFC 6455 that does not depend on the parser of frames.

An implementation passes frames (`frame`), errors of the parser (`parser_failed`) and the end of each read
(`read_end`), and is otherwise a protocol of the transport. There is no task; the only timer limits the closing
handshake.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable

import structlog

from nexo.transport.connection_counts import CountedConnection
from nexo.transport.websocket import Peer, SocketLimits

log = structlog.get_logger()

CONTINUATION, TEXT, BINARY, CLOSE, PING = 0x0, 0x1, 0x2, 0x8, 0x9

PROTOCOL_ERROR = 1002
NO_CODE = 1005  # never on the wire: stands for a close frame without a code
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
    """Half-close, so that the client can read what was written last.

    Closing while unread bytes are in the socket makes the kernel send a reset, which on many systems discards
    what the client has not read yet. The caller discards what still arrives and limits the wait.
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


def _ignore(frames: bytes) -> None: ...


class Endpoint:
    """A `Socket`, from the upgrade to the last byte.

    First it is open. It is `deaf` as soon as no more messages are passed on, because one of the sides has closed
    or violated the protocol. It has `ended` when everything that still arrives is discarded.
    """

    def __init__(self, transport: asyncio.Transport, peer: Peer, limits: SocketLimits) -> None:
        self.transport = transport
        self.write: Callable[[bytes], None] = transport.write  # replaced once nothing more may be written
        self.peer = peer
        self.limits = limits
        self.counted: CountedConnection | None = None  # counted until the connection ends
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

    # Calls of the peer.

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

    # Calls of the parser.

    def frame(self, opcode: int, fin: bool, payload: bytes) -> None:
        """Take a frame that is valid by itself; the rules for sequences of frames are checked here."""
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
                self.peer.binary(payload)
        except Exception:
            self._peer_failed()

    def wait_through(self, size: int) -> None:
        """Count bytes that arrive after the close frame: the client's close frame may follow data that was under way,
        but not an unlimited amount."""
        self._after_goodbye_bytes += size
        if self._after_goodbye_bytes > AFTER_GOODBYE_MAX_BYTES:
            self.abort()

    def begin_read(self) -> None:
        self.in_read = True

    def read_end(self) -> None:
        """End a read: all its frames were passed on. Close frames wait for this, so that answers are written before."""
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
        """Note a violation by the client, or a failure of the peer (1011). The first counts, but a client's before the
        peer's: what follows it cannot be parsed, so there is no answer to wait for."""
        self.deaf = True
        if self._failure is None or self._failure[0] == INTERNAL_ERROR:
            self._failure = code, reason

    # Calls of the transport.

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
        if self.counted is not None:
            self.counted.leave()
        if self._timer is not None:
            self._timer.cancel()
        try:
            self.peer.closed(self._received)
        except Exception:
            log.exception("websocket_peer_failed")
        del self.peer  # breaks the reference cycle: both are freed at once

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
            self.begin_read()  # so that the peer's answer is written with the rest
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
            if code == INTERNAL_ERROR:  # the client is not at fault: wait for its close frame
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
        self.write = _ignore
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

    # An exception of the peer closes its own connection and affects no other.

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
