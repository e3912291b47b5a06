"""A WebSocket connection with as little around it as possible: frames are built and taken apart by hand, and no
task, queue or future waits for them.

Clients mask with the key 0, which is legal and leaves the payload as it is. What is sent while frames are being
read leaves in one write when the read is done.
"""

from __future__ import annotations

import asyncio
import base64
import os
import socket
from collections.abc import Callable
from typing import cast

from nexo.bench.http import ServerAddress

MASK = b"\x00\x00\x00\x00"
_TEXT, _CLOSE, _PING = 1, 8, 9
MAX_BUFFER_BYTES = 16 << 20  # a server that never finishes a frame


def client_frame(payload: bytes) -> bytes:
    size = len(payload)
    if size < 126:
        return b"\x81" + bytes((0x80 | size,)) + MASK + payload
    if size < 65_536:
        return b"\x81\xfe" + size.to_bytes(2, "big") + MASK + payload
    return b"\x81\xff" + size.to_bytes(8, "big") + MASK + payload


class BenchConnection(asyncio.Protocol):
    """`on_text` gets every text message, `on_lost` the close code (None without one) once."""

    __slots__ = ("_buffer", "_head", "_out", "_reading", "_upgrade", "allowed_bytes", "close_code", "on_lost",
                 "on_opened", "on_text", "open", "read_bytes", "transport")  # fmt: skip

    def __init__(
        self,
        upgrade: bytes,
        on_opened: Callable[[], None],
        on_text: Callable[[bytes], None],
        on_lost: Callable[[str], None],
    ) -> None:
        self.on_opened = on_opened
        self.on_text = on_text
        self.on_lost = on_lost
        self.open = False
        self.close_code: int | None = None
        self.read_bytes = 0
        self.allowed_bytes = 0  # for a client that reads slowly
        self._upgrade = upgrade
        self._head = True
        self._reading = False
        self._buffer = b""
        self._out: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.write(self._upgrade)

    def connection_lost(self, error: Exception | None) -> None:
        self.open = False
        if self._head:
            self.on_lost("the upgrade was not answered")
        else:
            self.on_lost(str(self.close_code or error or "cut"))

    def send(self, payload: bytes) -> None:
        frame = client_frame(payload)
        if self._reading:
            self._out.append(frame)
        else:
            self.transport.write(frame)

    def cut(self) -> None:
        """End without a closing handshake, like a phone in a tunnel."""
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        self.read_bytes += len(data)
        buffer = self._buffer + data if self._buffer else data
        position = 0
        if self._head:
            position = self._read_head(buffer)
            if position == 0:
                return
        self._reading = True
        total = len(buffer)
        on_text = self.on_text
        while total - position >= 2:
            size = buffer[position + 1]
            start = position + 2
            if size == 126:
                if total - position < 4:
                    break
                size = buffer[position + 2] << 8 | buffer[position + 3]
                start = position + 4
            elif size == 127:
                if total - position < 10:
                    break
                size = int.from_bytes(buffer[position + 2 : position + 10], "big")
                start = position + 10
            end = start + size
            if total < end:
                break
            opcode = buffer[position] & 0x0F
            position = end
            if opcode == _TEXT:
                on_text(buffer[start:end])
            elif opcode == _PING:
                self._out.append(b"\x8a" + bytes((0x80 | size,)) + MASK + buffer[start:end])
            elif opcode == _CLOSE:
                self.close_code = int.from_bytes(buffer[start : start + 2], "big") or None
                self.transport.close()
        self._buffer = buffer[position:]
        self._reading = False
        if self._out:
            self.transport.write(b"".join(self._out))
            self._out.clear()
        if len(self._buffer) > MAX_BUFFER_BYTES:
            self.transport.abort()

    def _read_head(self, buffer: bytes) -> int:
        """Returns where the frames begin; 0 while the answer to the upgrade is incomplete, or when it was a refusal."""
        end = buffer.find(b"\r\n\r\n")
        if end < 0:
            self._buffer = buffer
            return 0
        if not buffer.startswith(b"HTTP/1.1 101"):
            self.transport.abort()
            return 0
        self._head = False
        self.open = True
        self._buffer = b""
        self.on_opened()
        return end + 4


def upgrade_request(address: ServerAddress, path: str, subprotocol: str, token: str = "") -> bytes:
    key = base64.b64encode(os.urandom(16)).decode()
    bearer = f"Authorization: Bearer {token}\r\n" if token else ""
    return (
        f"GET {address.prefix}{path} HTTP/1.1\r\nHost: {address.host}:{address.port}\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
        f"Sec-WebSocket-Protocol: {subprotocol}\r\n{bearer}\r\n"
    ).encode()


async def open_connection(
    address: ServerAddress, make: Callable[[], BenchConnection], receive_buffer_bytes: int | None = None
) -> BenchConnection:
    """Returns when the transport is there; everything after that comes by callback."""
    loop = asyncio.get_running_loop()
    if receive_buffer_bytes is None:
        _, connection = await loop.create_connection(make, address.host, address.port, ssl=address.tls)
        return connection
    # for a client that does not read: otherwise the kernel buffers megabytes for it; it must be set before connecting
    family, kind, protocol, _, place = (await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM))[0]
    end = socket.socket(family, kind, protocol)
    try:
        end.setblocking(False)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        await loop.sock_connect(end, place)
        tls_name = address.host if address.tls else None
        _, connection = await loop.create_connection(make, sock=end, ssl=address.tls, server_hostname=tls_name)
    except BaseException:
        end.close()
        raise
    return connection
