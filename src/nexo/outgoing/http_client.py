"""A small HTTP/1.1 client for one URL: POST only, no redirects, connections kept open, answers bounded.

A general client costs several times as much per request on the event loop that also serves the chat
(docs/design/0013-webhooks.md has the figures). Every request resolves the name, or uses a look-up that is at most
`LOOKED_UP_S` old, and uses a connection to one of the addresses that were checked.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import httptools

from nexo.outgoing.addresses import HttpTarget, parse_target, resolve
from nexo.outgoing.lookups import OPERATORS, NameLookups

RESPONSE_MAX_BYTES = 64 * 1024
LOOKED_UP_S = 0.25
IDLE_S = 30.0  # an open connection that was not used for longer is not trusted
CONNECTIONS_MAX = 64


class HttpAnswer(NamedTuple):
    status: int
    body: bytes  # at most RESPONSE_MAX_BYTES
    retry_after: str = ""  # the header of this name


class HttpFailure(Exception):
    """There is no usable answer; the text states why."""


@lru_cache(1)
def tls() -> ssl.SSLContext:
    return ssl.create_default_context()


class _Exchange(asyncio.Protocol):
    """One connection, with at most one request under way."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.used_at = 0.0
        self.is_reused = False
        self.transport: asyncio.Transport
        self._loop = asyncio.get_running_loop()
        self._answer: asyncio.Future[HttpAnswer] | None = None
        self._parser: httptools.HttpResponseParser
        self._has_head = False
        self._retry_after = ""
        self._body: list[bytes] = []
        self._size = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    async def request(self, data: bytes) -> HttpAnswer:
        self._parser = httptools.HttpResponseParser(self)
        self._has_head = False
        self._retry_after = ""
        self._body, self._size = [], 0
        self._answer = self._loop.create_future()
        self.transport.write(data)
        try:
            return await self._answer
        finally:
            self._answer = None

    @property
    def is_usable(self) -> bool:
        return not self.transport.is_closing() and time.monotonic() - self.used_at < IDLE_S

    def data_received(self, data: bytes) -> None:
        if self._answer is None:  # bytes that no request asked for
            self.transport.abort()
            return
        self._size += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(HttpFailure(f"the answer is not HTTP: {error}"))
            return
        if self._size > RESPONSE_MAX_BYTES and self._answer is not None and not self._answer.done():
            if self._has_head:
                self._finish(keep=False)
            else:
                self._fail(HttpFailure("the head of the answer is too large"))

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"retry-after":
            self._retry_after = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._has_head = self._parser.get_status_code() >= 200

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        if self._has_head:
            self._finish(keep=self._parser.should_keep_alive())

    def connection_lost(self, error: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            if self._has_head and not self._parser.should_keep_alive():
                self._finish(keep=False)  # the end of the connection ends the body
            else:
                self._fail(error or ConnectionResetError("the connection was closed before the answer"))

    def _finish(self, *, keep: bool) -> None:
        if self._answer is not None and not self._answer.done():
            body = b"".join(self._body)[:RESPONSE_MAX_BYTES]
            self._answer.set_result(HttpAnswer(self._parser.get_status_code(), body, self._retry_after))
        if not keep:
            self.transport.abort()

    def _fail(self, error: Exception) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)
        self.transport.abort()


class HttpClient:
    def __init__(
        self,
        url: str,
        *,
        allow_private: bool,
        agent: str,
        content_type: str = "application/json",
        lookups: NameLookups = OPERATORS,
    ) -> None:
        """`lookups` are those of whom the URL comes from."""
        self.target: HttpTarget = parse_target(url)
        self._allow_private = allow_private
        self._lookups = lookups
        self._idle: list[_Exchange] = []
        self._addresses: list[str] = []
        self._looked_up_at = float("-inf")
        self._head = (
            f" HTTP/1.1\r\nhost: {self.target.host_header}\r\nuser-agent: {agent}\r\n"
            f"content-type: {content_type}\r\naccept: application/json\r\n"
        )

    async def post(
        self, body: bytes, headers: Iterable[tuple[str, str]], timeout_s: float, path: str = ""
    ) -> HttpAnswer:
        """Returns the answer, whatever its status. Raises `bad_url` for an address that is not allowed, HttpFailure
        otherwise. `path` replaces that of the URL; it has to come from `parse_target`, or be known to be one."""
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
        head = f"POST {path or self.target.path}{self._head}{lines}content-length: {len(body)}\r\n\r\n"
        data = head.encode("ascii") + body
        try:
            async with asyncio.timeout(timeout_s):
                return await self._post(data)
        except TimeoutError:
            raise HttpFailure(f"no answer within {timeout_s:g} s") from None
        except OSError as error:  # of sockets, name resolution and TLS
            raise HttpFailure(f"{type(error).__name__}: {error}") from error

    async def _post(self, data: bytes) -> HttpAnswer:
        addresses = await self._resolve()
        while True:
            exchange = self._take(addresses) or await self._connect(addresses)
            try:
                answer = await exchange.request(data)
            except OSError:
                if not exchange.is_reused:  # otherwise the server closed it just before: use another one
                    raise
                continue
            except BaseException:
                exchange.transport.abort()
                raise
            if not exchange.transport.is_closing() and len(self._idle) < CONNECTIONS_MAX:
                exchange.used_at, exchange.is_reused = time.monotonic(), True
                self._idle.append(exchange)
            return answer

    async def _resolve(self) -> list[str]:
        if time.monotonic() - self._looked_up_at > LOOKED_UP_S:
            self._addresses = await resolve(self.target, allow_private=self._allow_private, lookups=self._lookups)
            self._looked_up_at = time.monotonic()
        return self._addresses

    def _take(self, addresses: list[str]) -> _Exchange | None:
        while self._idle:
            exchange = self._idle.pop()
            if exchange.is_usable and exchange.address in addresses:
                return exchange
            exchange.transport.abort()
        return None

    async def _connect(self, addresses: list[str]) -> _Exchange:
        failure: OSError = OSError("no address")
        loop = asyncio.get_running_loop()
        for address in addresses:
            try:
                _, exchange = await loop.create_connection(
                    lambda address=address: _Exchange(address),
                    address,
                    self.target.port,
                    ssl=tls() if self.target.is_tls else None,
                    server_hostname=self.target.host if self.target.is_tls else None,
                )
            except OSError as error:
                failure = error
            else:
                return exchange
        raise failure

    def close(self) -> None:
        while self._idle:
            self._idle.pop().transport.abort()
