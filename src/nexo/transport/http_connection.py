"""uvicorn's HTTP connection with the bounds that it leaves to a proxy: connections per address, the size of a head, the
time a request may take to arrive and an answer to be taken, and the requests that wait behind another one.

Without them a client that is not signed in could fill the memory, or hold sockets open for ever.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from functools import partial
from typing import Any, cast

import httptools
import msgspec
import structlog
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from nexo.errors import NexoError
from nexo.transport.connection_counts import PER_ADDRESS, CountedConnection
from nexo.transport.direct import LEAST_BYTES, SocketBody
from nexo.transport.endpoint import hang_up, reset
from nexo.transport.http_watch import REFUSED_MAX, HttpWatch
from nexo.transport.upgrade import Upgrade, refusal
from nexo.transport.websocket import Refuse

log = structlog.get_logger()

HEAD_MAX_BYTES = 64 * 1024
HEADERS_MAX = 256
FRAMING_SHARE = 16  # the bytes around a byte of a chunked body; the smallest chunk needs five
BODY_BYTES_PER_S = 8 * 1024  # a body that arrives faster than this has as much time as it needs
TOO_LARGE = Refuse(431, b"The head of a request has at most %d bytes" % HEAD_MAX_BYTES, "text/plain")
TOO_MANY = Refuse(431, b"A request has at most %d headers" % HEADERS_MAX, "text/plain")
MALFORMED = Refuse(400, b"Invalid HTTP request received.", "text/plain; charset=utf-8")
DIRECT = "nexo.direct"  # the extension of a scope that takes a body from its socket
LATE = Refuse(408, b"The request did not arrive in time", "text/plain")


class _Stopped(Exception):
    """Ends the parsing of a read from within a callback of the parser."""


def _full(limit: str) -> Refuse:
    name, why = ("server_busy", "This instance has as many connections as it may have")
    if limit == PER_ADDRESS:
        name, why = ("too_many_requests", "Too many connections from this address")
    error = NexoError(name, why)
    body = {"err_code": error.number, "err_msg": error.name, "data": None, "detail": error.detail}
    return Refuse(error.row.http_status, msgspec.json.encode({**body, "retry_after_ms": 5000}))


class CountedTransport(asyncio.Transport):
    """The transport, as the requests of a connection use it: nothing fails when the client has left, and the bytes
    written are counted."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self.raw = transport
        self.written = 0
        self.lingers = False  # the client may have sent more: closing at once could discard what was written last
        self.has_hung_up = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self.raw.get_extra_info(name, default)

    def is_closing(self) -> bool:
        return self.raw.is_closing()

    def write(self, data: Any) -> None:
        if not self.raw.is_closing():
            self.written += len(data)
            self.raw.write(data)

    def close(self) -> None:
        if not self.raw.is_closing():
            if self.lingers:
                self.hang_up()
            else:
                self.raw.close()

    def hang_up(self) -> None:
        if not self.has_hung_up:
            self.has_hung_up = True
            hang_up(self.raw)

    def pause_reading(self) -> None:
        if not self.raw.is_closing():
            self.raw.pause_reading()

    def resume_reading(self) -> None:
        if not self.raw.is_closing():
            self.raw.resume_reading()


class PipelineFlow(FlowControl):
    """Reads nothing while a request waits behind another one, whatever the request under way asks for."""

    def __init__(self, transport: asyncio.Transport, pipeline: deque[Any]) -> None:
        super().__init__(transport)
        self._pipeline = pipeline

    def resume_reading(self) -> None:
        if not self._pipeline:
            super().resume_reading()


class HttpConnection(HttpToolsProtocol):
    def __init__(self, watch: HttpWatch, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._watch = watch
        self._counted: CountedConnection | None = None
        self._running: RequestResponseCycle | None = None
        self._reason = ""  # why the parser was stopped
        self._refusal: Refuse | None = None
        self._is_deaf = False  # what arrives is discarded
        self._ends_at = 0.0
        self._in_message = self._in_head = False
        self._arriving = True  # the first request is awaited from the start
        self._arriving_since = self.loop.time()
        self._begins_read = False  # no other request has a part in this read
        self._head_bytes = 0  # at least
        self._head_bytes_max = 0  # at most
        self._read_bytes = 0
        self._body_bytes = 0
        self._framing_bytes = 0  # behind the head, and no part of the body: sizes of chunks, extensions, trailers
        self._taken = 0
        self._taken_at = 0.0
        self._direct: SocketBody | None = None  # the body that goes past the parser
        self._is_leaving = False

    # Calls of the transport.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._out = CountedTransport(transport)
        super().connection_made(self._out)
        self.flow = PipelineFlow(self._out, self.pipeline)
        self._watch.add(self)
        counted = self._watch.counts.admit(self.client[0] if self.client else "")
        if isinstance(counted, CountedConnection):
            self._counted = counted
        else:
            self._refuse_connection(counted)

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        if self._direct is not None:
            self._direct.cut()
            self._direct = None
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        # Every request refers to this connection: what is not cut here is left to the cycle collector.
        for cycle in (self._running, *(waiting for waiting, _ in self.pipeline)):
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
                cycle.on_response = _ignore
        self.pipeline.clear()
        self._running = self.cycle = None  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        if self._is_deaf:  # until the client has read the refusal, or the time is over
            return
        self._unset_keepalive_if_required()
        self._read_bytes = len(data)
        self._begins_read = not self._in_message
        if self._in_message and not self._in_head:  # what is the body's is subtracted in `on_body`
            self._framing_bytes += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._upgrade()
        except httptools.HttpParserError:
            self._stop(self._reason or "malformed", self._refusal or MALFORMED)
        else:
            if self._in_head:
                self._head_bytes += len(data)
                self._head_bytes_max += len(data)
                if self._head_bytes > HEAD_MAX_BYTES:
                    self._stop("head", TOO_LARGE)
                elif len(self.headers) > HEADERS_MAX:
                    self._stop("head", TOO_MANY)
            elif self._in_message and self._framing_bytes > HEAD_MAX_BYTES + FRAMING_SHARE * self._body_bytes:
                self._stop("head", TOO_LARGE)

    # Calls of the parser.

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= self._watch.bounds.pipelined_max and self._is_answering:
            self._reason = "pipelined"
            raise _Stopped
        self._in_message = self._in_head = self._arriving = True
        self._arriving_since = self.loop.time()
        # How much of a read stands before the head is unknown, unless nothing does.
        self._head_bytes = 0 if self._begins_read else -self._read_bytes
        self._begins_read = False
        self._head_bytes_max = self._body_bytes = self._framing_bytes = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        # Trailers are dropped: they would be unlimited, and could replace headers that a proxy has checked.
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        if self._head_bytes_max + self._read_bytes > HEAD_MAX_BYTES:
            size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
            if size > HEAD_MAX_BYTES:
                self._reason, self._refusal = "head", TOO_LARGE
                raise _Stopped
        if len(self.headers) > HEADERS_MAX:
            self._reason, self._refusal = "head", TOO_MANY
            raise _Stopped
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        self._framing_bytes -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_message = self._arriving = False
        super().on_message_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        if cycle.scope["method"] == "PATCH":
            cycle.scope["extensions"] = {DIRECT: partial(self._take_body, cycle)}  # type: ignore[dict-item]
        # A request that waited is started by the end of the one before it: without a context of its own it would have
        # that one's, with whose limits it counts.
        contextvars.Context().run(super()._start_asgi_task, cycle, app)

    def shutdown(self) -> None:
        self._is_leaving = True
        super().shutdown()

    # Bodies past the parser.

    def _take_body(self, cycle: RequestResponseCycle) -> SocketBody | None:
        """Returns the rest of a body for taking it from the socket; None for one that is parsed as usual. Nothing is
        read any more once it is returned."""
        announced = dict(cycle.scope["headers"]).get(b"content-length", b"")
        left = int(announced) - self._body_bytes if announced.isdigit() and len(announced) < 16 else 0
        if (
            left < LEAST_BYTES
            or cycle is not self.cycle
            or cycle.disconnected
            or self._is_deaf
            or self._out.is_closing()
        ):
            return None
        if self._out.get_extra_info("ssl_object") is not None:
            return None
        self.flow.pause_reading()
        if cycle.waiting_for_100_continue:
            self._out.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            cycle.waiting_for_100_continue = False
        first, cycle.body = bytes(cycle.body), bytearray()
        keeps_alive, cycle.keep_alive = cycle.keep_alive, False
        self._is_deaf = self._out.lingers = True  # until the end of the body is found
        self._direct = SocketBody(
            self._out.raw, first, len(first) + left, partial(self._end_body, cycle, keeps_alive, left)
        )
        return self._direct

    def _end_body(self, cycle: RequestResponseCycle, keeps_alive: bool, size: int) -> None:
        self._direct = None
        self._is_deaf = self._out.lingers = False
        cycle.keep_alive = keeps_alive and not self._is_leaving
        self._body_bytes += size
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self.on_message_complete()

    # The timer.

    def check(self, now: float) -> None:
        """End the connection if its time is over (`http_watch.Watched`)."""
        raw, bounds = self._out.raw, self._watch.bounds
        taken = self._out.written - raw.get_write_buffer_size()
        if taken != self._taken or taken == self._out.written:
            self._taken, self._taken_at = taken, now
        elif now - self._taken_at >= bounds.stalled_s:
            self._end("stalled")
            return
        if self._ends_at:
            if now >= self._ends_at:
                reset(raw)
        elif self._out.has_hung_up:
            self._ends_at = now + bounds.goodbye_s
        elif self._direct is not None and self._direct.is_waiting:
            if self._late_s(now) - self._direct.received / BODY_BYTES_PER_S >= bounds.arrival_s:
                self._watch.ended.add("arrival")
                self._direct.cut()
        elif self.flow.read_paused:
            self._arriving_since = now  # the rest of the request is not read: that is not the client's delay
        elif self._arriving and self._late_s(now) >= bounds.arrival_s:
            self._stop("arrival", LATE)

    def _late_s(self, now: float) -> float:
        return now - self._arriving_since - self._body_bytes / BODY_BYTES_PER_S

    def _end(self, reason: str) -> None:
        self._watch.ended.add(reason)
        log.info("http_connection_ended", reason=reason, address=self.client[0] if self.client else "")
        reset(self._out.raw)

    # Refusals.

    def _refuse_connection(self, limit: str) -> None:
        self._is_deaf = True
        if self._watch.refused >= REFUSED_MAX:
            reset(self._out.raw)
            return
        self._watch.refused += 1
        self._ends_at = self.loop.time() + self._watch.bounds.goodbye_s
        self._out.write(refusal(_full(limit), self.server_state.default_headers))
        self._out.hang_up()

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _stop(self, reason: str, refuse: Refuse) -> None:
        """Read no more requests. Those that have arrived are answered first; then the connection ends. A client has to
        repeat what was not answered, as on every connection that ends."""
        if self._is_deaf or self._out.is_closing():
            return
        self._is_deaf = self._out.lingers = True
        self._watch.ended.add(reason)
        if self._is_answering and (self._in_head or not self._in_message):
            self.cycle.keep_alive = False  # the last one that has arrived as a whole
            return
        if self._is_answering:  # its body will never be complete
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        is_answered = not self._in_head and self.cycle is not None and self.cycle.response_started
        if self._in_message and not is_answered:
            self._out.write(refusal(refuse, self.server_state.default_headers))
        self._out.close()

    # Upgrades.

    def _upgrade(self) -> None:
        """Hand the connection over to the WebSocket side, together with its place in the count."""
        if not self._should_upgrade() or self._is_answering:  # an unknown protocol, or answers would be mixed
            self._stop("malformed", MALFORMED)
            return
        raw = self._out.raw
        head = [self.scope["method"].encode(), b" ", self.url, b" HTTP/1.1\r\n"]
        for name, value in self.scope["headers"]:
            head += (name, b": ", value, b"\r\n")
        self.connections.discard(self)
        counted, self._counted = self._counted, None
        self._forget()
        assert self.ws_protocol_class is not None
        upgrade = cast(
            Upgrade,
            self.ws_protocol_class(  # type: ignore[call-arg]
                config=self.config, server_state=self.server_state, app_state=self.app_state
            ),
        )
        upgrade.counted = counted
        upgrade.connection_made(raw)
        upgrade.data_received(b"".join([*head, b"\r\n"]))
        raw.set_protocol(upgrade)
        self.parser = None  # type: ignore[assignment]  # it refers to this object

    def _forget(self) -> None:
        self._watch.discard(self)
        if self._counted is not None:
            self._counted.leave()
            self._counted = None
        elif self._is_deaf and self._ends_at:
            self._watch.refused = max(0, self._watch.refused - 1)


def _ignore() -> None: ...


def make_http_protocol(watch: HttpWatch) -> type[HttpToolsProtocol]:
    """The class for uvicorn's `Config(http=…)`."""

    class WatchedHttpConnection(HttpConnection):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(watch, *args, **kwargs)

    return WatchedHttpConnection
