"""A WebSocket client that can do everything wrong: frames are built by hand and sent as they are."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import os
import socket
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import NamedTuple, Self

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
PATIENCE_S = 30.0  # only a broken server makes a test wait this long; the machine may be busy

Headers = list[tuple[str, str]]


def frame(
    opcode: int,
    payload: bytes = b"",
    *,
    fin: bool = True,
    rsv: int = 0,
    mask: bytes | None = b"\x12\x34\x56\x78",
    length_bytes: int | None = None,
    length: int | None = None,
) -> bytes:
    """A client's frame. `length_bytes` (1, 2 or 8) forces an encoding, `length` a lie."""
    size = len(payload) if length is None else length
    if length_bytes is None:
        length_bytes = 1 if size < 126 else 2 if size < 65536 else 8
    masked = 0x80 if mask is not None else 0
    marker = {1: size, 2: 126, 8: 127}[length_bytes]
    head = bytes((0x80 * fin | rsv << 4 | opcode, masked | marker))
    if length_bytes > 1:
        head += size.to_bytes(length_bytes, "big")
    if mask is None:
        return head + payload
    keys = mask * (len(payload) // 4 + 1)
    mixed = int.from_bytes(payload, "big") ^ int.from_bytes(keys[: len(payload)], "big")
    return head + mask + mixed.to_bytes(len(payload), "big")


def text(payload: str) -> bytes:
    return frame(TEXT, payload.encode())


def close(code: int, reason: bytes = b"") -> bytes:
    return frame(CLOSE, code.to_bytes(2, "big") + reason)


class Received(NamedTuple):
    """A frame from the server."""

    opcode: int
    payload: bytes

    @property
    def close_code(self) -> int | None:
        return int.from_bytes(self.payload[:2], "big") if self.opcode == CLOSE and self.payload else None


def parse_frames(data: bytearray) -> Iterator[Received]:
    """Take whole frames from the front of `data`, insisting on what a server may send."""
    while len(data) >= 2:
        assert data[0] & 0xF0 == 0x80, f"FIN only, no reserved bits: {data[0]:#x}"
        assert data[1] < 0x80, "a server does not mask"
        start, size = 2, data[1]
        if size > 125:
            start += 2 if size == 126 else 8
            size = int.from_bytes(data[2:start], "big")
        if len(data) < start + size:
            return
        opcode, payload = data[0] & 0x0F, bytes(data[start : start + size])
        del data[: start + size]
        yield Received(opcode, payload)


class Response(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


def new_key() -> str:
    return base64.b64encode(os.urandom(16)).decode()


def accept_for(key: str) -> str:
    return base64.b64encode(hashlib.sha1(key.encode() + GUID).digest()).decode()


def request_head(path: str, headers: Iterable[tuple[str, str]], method: str = "GET") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers), "", ""]
    return "\r\n".join(lines).encode("latin-1")


def plain_headers(**changes: str | None) -> Headers:
    """What every upgrade needs; `changes` by name with _ for -, None leaves one out."""
    headers: dict[str, str | None] = {
        "host": "localhost",
        "upgrade": "websocket",
        "connection": "Upgrade",
        "sec-websocket-key": new_key(),
        "sec-websocket-version": "13",
    }
    headers |= {name.replace("_", "-"): value for name, value in changes.items()}
    return [(name, value) for name, value in headers.items() if value is not None]


class RawClient:
    """A TCP connection, and what was received on it but not asked for yet."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.data = bytearray()
        self.frames: list[Received] = []
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def connect(cls, port: int, *, receive_buffer_bytes: int | None = None) -> Self:
        sock = socket.socket()
        sock.setblocking(False)
        if receive_buffer_bytes is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return cls(sock)

    async def send(self, *parts: bytes) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await self._loop.sock_sendall(self.sock, b"".join(parts))

    async def receive(self) -> bytes:
        """What comes next; empty at the end of the stream."""
        async with asyncio.timeout(PATIENCE_S):
            data = await self._loop.sock_recv(self.sock, 65536)
        self.data += data
        return data

    async def request(self, path: str = "/ws", headers: Headers | None = None, method: str = "GET") -> Response:
        await self.send(request_head(path, plain_headers() if headers is None else headers, method))
        return await self.response()

    async def response(self) -> Response:
        while b"\r\n\r\n" not in self.data:
            assert await self.receive(), f"the connection ended before the response: {bytes(self.data)!r}"
        head, _, rest = bytes(self.data).partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        size = int(headers.get("content-length", "0"))
        self.data = bytearray(rest)
        while len(self.data) < size:
            assert await self.receive(), "the connection ended before the body"
        body = bytes(self.data[:size])
        del self.data[:size]
        return Response(int(first.split(" ")[1]), headers, body)

    async def next_frame(self) -> Received:
        while not self.frames:
            self.frames += parse_frames(self.data)
            if not self.frames:
                assert await self.receive(), "the connection ended instead of a frame"
        return self.frames.pop(0)

    async def next_frames(self, count: int) -> list[Received]:
        return [await self.next_frame() for _ in range(count)]

    async def rest(self) -> list[Received]:
        """All frames up to the end of the stream, which must not be a reset."""
        while await self.receive():
            pass
        self.frames += parse_frames(self.data)
        assert not self.data, f"half a frame is left: {bytes(self.data)!r}"
        frames, self.frames = self.frames, []
        return frames

    async def is_reset(self) -> bool:
        """Read to the end; whether that was a reset."""
        try:
            while await self.receive():
                pass
        except ConnectionResetError:
            return True
        return False

    def half_close(self) -> None:
        self.sock.shutdown(socket.SHUT_WR)

    def vanish(self) -> None:
        """End with a reset, as a crashed machine's first packet after its restart does."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        self.sock.close()


@contextlib.asynccontextmanager
async def raw_client(port: int, *, receive_buffer_bytes: int | None = None) -> AsyncIterator[RawClient]:
    client = await RawClient.connect(port, receive_buffer_bytes=receive_buffer_bytes)
    try:
        yield client
    finally:
        client.sock.close()


@contextlib.asynccontextmanager
async def open_client(
    port: int, path: str = "/ws", *, receive_buffer_bytes: int | None = None
) -> AsyncIterator[RawClient]:
    """A raw client behind a finished handshake."""
    async with raw_client(port, receive_buffer_bytes=receive_buffer_bytes) as client:
        response = await client.request(path)
        assert response.status == 101, response
        yield client
