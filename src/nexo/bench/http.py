"""HTTP/1.1 with as little around it as possible: one kept-alive connection, one request at a time, no parser but
what a server of ours needs (answers have a Content-Length)."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import cast
from urllib.parse import urlsplit

import msgspec

_LENGTH = b"\r\ncontent-length:"


class ServerAddress:
    """Where a server listens: one `http(s)://` (or `ws(s)://`) URL for both of its protocols."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in ("http", "https", "ws", "wss") or not parts.hostname:
            raise ValueError(f"{url} is no address of a server (http://HOST:PORT)")
        self.secure = parts.scheme in ("https", "wss")
        self.host = parts.hostname
        self.port = parts.port or (443 if self.secure else 80)
        self.prefix = parts.path.rstrip("/")
        self.tls = ssl.create_default_context() if self.secure else None

    def __str__(self) -> str:
        return f"{'https' if self.secure else 'http'}://{self.host}:{self.port}{self.prefix}"

    def request_head(self, method: str, target: str, token: str = "") -> bytes:
        """All of it but the length of the body, which `with_body` adds."""
        bearer = f"Authorization: Bearer {token}\r\n" if token else ""
        return (
            f"{method} {self.prefix}{target} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n{bearer}"
            "Content-Type: application/json\r\nContent-Length: "
        ).encode()


def with_body(head: bytes, body: bytes) -> bytes:
    return b"%b%d\r\n\r\n%b" % (head, len(body), body)


class Answer(msgspec.Struct):
    """The form of every answer of the API."""

    err_code: int
    err_msg: str
    data: msgspec.Raw = msgspec.Raw(b"null")
    detail: str = ""


decode_answer = msgspec.json.Decoder(Answer).decode


class BenchHttpConnection(asyncio.Protocol):
    """`on_answer` gets status, head and body of each answer, `on_lost` is called once when the connection is lost."""

    __slots__ = ("_buffer", "on_answer", "on_lost", "open", "transport")

    def __init__(self, on_answer: Callable[[int, bytes, bytes], None], on_lost: Callable[[], None]) -> None:
        self.on_answer = on_answer
        self.on_lost = on_lost
        self.open = False
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.open = True

    def connection_lost(self, error: Exception | None) -> None:
        self.open = False
        self.on_lost()

    def send(self, request: bytes) -> None:
        self.transport.write(request)

    def cut(self) -> None:
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer + data if self._buffer else data
        end = buffer.find(b"\r\n\r\n")
        if end >= 0:
            head = buffer[:end].lower()
            at = head.find(_LENGTH)
            length = int(head[at + len(_LENGTH) :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            whole = end + 4 + length
            if len(buffer) >= whole:
                self._buffer = buffer[whole:]
                self.on_answer(int(buffer[9:12]), head, buffer[end + 4 : whole])
                return
        self._buffer = buffer


def header(head: bytes, name: bytes) -> bytes:
    """Returns the value of a header of a lower-case head; empty when it is missing."""
    return head.partition(b"\r\n" + name + b":")[2].split(b"\r\n", 1)[0].strip()
