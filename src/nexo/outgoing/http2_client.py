"""A small HTTP/2 client for one server: POST only, many requests at a time over one connection, answers bounded.

As `http_client`, it resolves the name before each request and connects to an address that was checked.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Sequence
from functools import lru_cache

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    RemoteSettingsChanged,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)
from h2.exceptions import H2Error

from nexo.outgoing.addresses import HttpTarget, parse_target, resolve
from nexo.outgoing.http_client import LOOKED_UP_S, RESPONSE_MAX_BYTES, HttpAnswer, HttpFailure

STREAMS_MAX = 500  # requests at a time, unless the server allows fewer
IDLE_S = 600.0  # a connection that was not used for longer is not trusted
LAST_STREAM = 1 << 30  # ids of streams are used up: a new connection is opened

Headers = Sequence[tuple[str, str]]


@lru_cache(1)
def tls_h2() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["h2"])
    return context


class _Stream:
    """One request and what there is of its answer."""

    def __init__(self, answer: asyncio.Future[HttpAnswer]) -> None:
        self.answer = answer
        self.status = 0
        self.retry_after = ""
        self.body = bytearray()


class _Connection(asyncio.Protocol):
    def __init__(self, address: str) -> None:
        self.address = address
        self.used_at = time.monotonic()
        self.is_open = True
        self.transport: asyncio.Transport
        self._loop = asyncio.get_running_loop()
        self._h2 = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self._streams: dict[int, _Stream] = {}
        self._room = asyncio.Event()  # something may be sent that had to wait
        self.ready = self._loop.create_future()  # the server has sent its settings

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        self._h2.initiate_connection()
        self._flush()

    @property
    def is_usable(self) -> bool:
        is_fresh = time.monotonic() - self.used_at < IDLE_S or bool(self._streams)
        return self.is_open and is_fresh and not self.transport.is_closing()

    async def request(self, headers: Headers, body: bytes) -> HttpAnswer:
        limit = min(STREAMS_MAX, self._h2.remote_settings.max_concurrent_streams)
        while self.is_open and len(self._streams) >= limit:
            await self._wait_for_room()
        if not self.is_open:
            raise ConnectionResetError("the connection was closed before the request")
        self.used_at = time.monotonic()
        stream_id = self._h2.get_next_available_stream_id()
        if stream_id > LAST_STREAM:
            self.is_open = False
        stream = self._streams[stream_id] = _Stream(self._loop.create_future())
        try:
            self._h2.send_headers(stream_id, headers)
            self._flush()
            await self._send_body(stream_id, body)
            return await stream.answer
        except H2Error as error:
            raise HttpFailure(f"HTTP/2: {type(error).__name__}") from error
        finally:
            self._streams.pop(stream_id, None)
            self._room.set()
            if not stream.answer.done() and self.is_open:
                self._reset(stream_id)

    async def _send_body(self, stream_id: int, body: bytes) -> None:
        while True:
            stream = self._streams[stream_id]
            if stream.answer.done():  # it was refused before it was read
                return
            size = min(self._h2.local_flow_control_window(stream_id), self._h2.max_outbound_frame_size, len(body))
            if size or not body:
                is_last = size == len(body)
                self._h2.send_data(stream_id, body[:size], end_stream=is_last)
                self._flush()
                if is_last:
                    return
                body = body[size:]
            else:
                await self._wait_for_room()
                if not self.is_open:
                    return

    async def _wait_for_room(self) -> None:
        self._room.clear()
        await self._room.wait()

    def _reset(self, stream_id: int) -> None:
        try:
            self._h2.reset_stream(stream_id)
            self._flush()
        except H2Error:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        try:
            for event in self._h2.receive_data(data):
                self._handle(event)
        except H2Error as error:
            self._end(HttpFailure(f"the answer is not HTTP/2: {type(error).__name__}"))
            return
        self._flush()

    def _handle(self, event: object) -> None:
        if isinstance(event, ResponseReceived):
            stream = self._streams.get(event.stream_id or 0)
            if stream is not None:
                fields = {str(name): str(value) for name, value in event.headers or ()}
                stream.status = int(fields.get(":status", "0"))
                stream.retry_after = fields.get("retry-after", "")
        elif isinstance(event, DataReceived):
            self._h2.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id or 0)
            stream = self._streams.get(event.stream_id or 0)
            if stream is not None and len(stream.body) < RESPONSE_MAX_BYTES:
                stream.body += event.data or b""
        elif isinstance(event, StreamEnded):
            stream = self._streams.get(event.stream_id or 0)
            if stream is not None and not stream.answer.done():
                body = bytes(stream.body[:RESPONSE_MAX_BYTES])
                stream.answer.set_result(HttpAnswer(stream.status, body, stream.retry_after))
        elif isinstance(event, StreamReset):
            stream = self._streams.get(event.stream_id or 0)
            if stream is not None and not stream.answer.done():
                stream.answer.set_exception(HttpFailure(f"the request was reset ({event.error_code})"))
        elif isinstance(event, ConnectionTerminated):
            last = event.last_stream_id or 0
            self.is_open = False
            for stream_id, stream in self._streams.items():
                if stream_id > last and not stream.answer.done():
                    stream.answer.set_exception(ConnectionResetError("the server does not take more requests"))
            if not self._streams:
                self.transport.close()
        elif isinstance(event, RemoteSettingsChanged):
            if not self.ready.done():
                self.ready.set_result(None)
            self._room.set()
        elif isinstance(event, WindowUpdated):
            self._room.set()

    def connection_lost(self, error: Exception | None) -> None:
        self._end(error or ConnectionResetError("the connection was closed before the answer"))

    def _end(self, error: Exception) -> None:
        self.is_open = False
        if not self.ready.done():
            self.ready.set_exception(error)
            self.ready.exception()  # the caller may have given up
        for stream in self._streams.values():
            if not stream.answer.done():
                stream.answer.set_exception(error)
        self._room.set()
        self.transport.abort()

    def _flush(self) -> None:
        data = self._h2.data_to_send()
        if data and not self.transport.is_closing():
            self.transport.write(data)


class Http2Client:
    def __init__(self, url: str, *, allow_private: bool, agent: str) -> None:
        self.target: HttpTarget = parse_target(url)
        self._allow_private = allow_private
        self._agent = agent
        self._connection: _Connection | None = None
        self._opening = asyncio.Lock()
        self._addresses: list[str] = []
        self._looked_up_at = float("-inf")

    async def post(self, path: str, headers: Headers, body: bytes, timeout_s: float) -> HttpAnswer:
        """Returns the answer, whatever its status. Raises `bad_url` for an address that is not allowed, HttpFailure
        otherwise."""
        head = [
            (":method", "POST"),
            (":scheme", "https" if self.target.is_tls else "http"),
            (":authority", self.target.host_header),
            (":path", path),
            ("user-agent", self._agent),
            ("content-length", str(len(body))),
            *headers,
        ]
        try:
            async with asyncio.timeout(timeout_s):
                return await self._post(head, body)
        except TimeoutError:
            raise HttpFailure(f"no answer within {timeout_s:g} s") from None
        except OSError as error:  # of sockets, name resolution and TLS
            raise HttpFailure(f"{type(error).__name__}: {error}") from error

    async def _post(self, head: Headers, body: bytes) -> HttpAnswer:
        was_open = self._connection is not None
        connection = await self._connected()
        try:
            return await connection.request(head, body)
        except ConnectionResetError:
            if not was_open:
                raise
        return await (await self._connected()).request(head, body)  # the server closed an idle connection

    async def _connected(self) -> _Connection:
        async with self._opening:
            if time.monotonic() - self._looked_up_at > LOOKED_UP_S:
                self._addresses = await resolve(self.target, allow_private=self._allow_private)
                self._looked_up_at = time.monotonic()
            found = self._connection
            if found is not None and found.is_usable and found.address in self._addresses:
                return found
            self._connection = None
            self._connection = await self._connect()
            return self._connection

    async def _connect(self) -> _Connection:
        failure: OSError = OSError("no address")
        loop = asyncio.get_running_loop()
        for address in self._addresses:
            try:
                transport, connection = await loop.create_connection(
                    lambda address=address: _Connection(address),
                    address,
                    self.target.port,
                    ssl=tls_h2() if self.target.is_tls else None,
                    server_hostname=self.target.host if self.target.is_tls else None,
                )
            except OSError as error:
                failure = error
                continue
            tls = transport.get_extra_info("ssl_object")
            if tls is not None and tls.selected_alpn_protocol() != "h2":
                transport.abort()
                raise HttpFailure("the server does not speak HTTP/2")
            await connection.ready
            return connection
        raise failure

    def close(self) -> None:
        if self._connection is not None and not self._connection.transport.is_closing():
            self._connection.transport.abort()
        self._connection = None
