"""A fast WebSocket load generator: no library in the way, frames built and parsed by hand.

Clients mask with the key 0, which is legal and leaves the payload as it is. Everything runs in one process
that the caller pins to a core of its own.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import random
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

MASK = b"\x00\x00\x00\x00"


def client_frame(payload: bytes) -> bytes:
    size = len(payload)
    if size < 126:
        return b"\x81" + bytes((0x80 | size,)) + MASK + payload
    return b"\x81\xfe" + size.to_bytes(2, "big") + MASK + payload


class Client(asyncio.Protocol):
    """One connection. `on_text` gets every text message; what it sends within one read leaves in one write."""

    def __init__(self, on_text: Callable[[Client, bytes], None]) -> None:
        self.on_text = on_text
        self.opened = asyncio.get_running_loop().create_future()
        self.closed = False
        self.out: list[bytes] = []
        self._buffer = b""
        self._reading = False
        self._head = True

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        key = base64.b64encode(os.urandom(16)).decode()
        transport.write(
            f"GET /ws HTTP/1.1\r\nHost: bench\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )

    def connection_lost(self, error: Exception | None) -> None:
        self.closed = True
        if not self.opened.done():
            self.opened.set_exception(ConnectionError("refused"))

    def send(self, payload: bytes) -> None:
        frame = client_frame(payload)
        if self._reading:
            self.out.append(frame)
        else:
            self.transport.write(frame)

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer + data if self._buffer else data
        position = 0
        if self._head:
            end = buffer.find(b"\r\n\r\n")
            if end < 0:
                self._buffer = buffer
                return
            if not buffer.startswith(b"HTTP/1.1 101"):
                self.opened.set_exception(ConnectionError(buffer[:300].decode("latin-1")))
                return
            self._head = False
            position = end + 4
            self.opened.set_result(None)
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
            if total - start < size:
                break
            opcode = buffer[position] & 0x0F
            payload = buffer[start : start + size]
            position = start + size
            if opcode == 1:
                on_text(self, payload)
            elif opcode == 9:
                self.out.append(b"\x8a" + bytes((0x80 | size,)) + MASK + payload)
            elif opcode == 8:
                self.transport.close()
        self._buffer = buffer[position:]
        self._reading = False
        if self.out:
            self.transport.write(b"".join(self.out))
            self.out.clear()


async def connect(port: int, token: str, on_text: Callable[[Client, bytes], None], device: str = "") -> Client:
    """Connect and sign in; returns after the first RESEND_DONE."""
    ready = asyncio.get_running_loop().create_future()

    def first(client: Client, payload: bytes) -> None:
        if payload.startswith(b'{"type":"RESEND_DONE"'):
            client.on_text = on_text
            if not ready.done():
                ready.set_result(None)
        elif payload.startswith(b'{"type":"AUTH_FAIL"'):
            ready.set_exception(ConnectionError(payload.decode()))

    loop = asyncio.get_running_loop()
    _, client = await loop.create_connection(lambda: Client(first), "127.0.0.1", port)
    await client.opened
    client.send(json.dumps({"type": "AUTH", "token": token, "deviceId": device}).encode())
    await ready
    return client


def call(port: int, path: str, body: dict[str, Any] | None = None, token: str = "") -> Any:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}",
        None if body is None else json.dumps(body).encode(),
        {"content-type": "application/json", **({"authorization": f"Bearer {token}"} if token else {})},
    )
    with urllib.request.urlopen(request, timeout=30) as reply:
        return json.load(reply)["data"]


def register(port: int, names: list[str]) -> dict[str, str]:
    """Users with their access tokens."""

    def one(name: str) -> tuple[str, str]:
        call(port, "/user/register", {"user_id": name, "password": "benchmark"})
        return name, call(port, "/auth/login", {"user_id": name, "password": "benchmark"})["access_token"]

    with ThreadPoolExecutor(8) as pool:
        return dict(pool.map(one, names))


def random_id(source: random.Random) -> str:
    return f"{source.getrandbits(96):024x}"
