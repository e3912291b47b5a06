"""Connections of `nexo bench` for scripts that drive a server by themselves, and the calls they need before."""

from __future__ import annotations

import asyncio
import json
import random
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from nexo.bench.http import ServerAddress
from nexo.bench.websocket import BenchConnection, open_connection, upgrade_request


class Client(BenchConnection):
    """One connection that signs in by itself. `heard` gets every text message behind that."""

    def __init__(self, address: ServerAddress, token: str, heard: Callable[[Client, bytes], None], device: str) -> None:
        upgrade = upgrade_request(address, "/ws", "nexo.envelope.v1")
        super().__init__(upgrade, self._sign_in, self._wait, self._end)
        self._hello = json.dumps({"type": "AUTH", "token": token, "deviceId": device}).encode()
        self._heard = heard
        self.ready = asyncio.get_running_loop().create_future()

    def _sign_in(self) -> None:
        self.send(self._hello)

    def _wait(self, payload: bytes) -> None:
        if payload.startswith(b'{"type":"RESEND_DONE"'):
            self.on_text = lambda text: self._heard(self, text)
            self.ready.set_result(None)
        elif payload.startswith(b'{"type":"AUTH_FAIL"'):
            self.ready.set_exception(ConnectionError(payload.decode()))

    def _end(self, reason: str) -> None:
        if not self.ready.done():
            self.ready.set_exception(ConnectionError(reason))


async def connect(port: int, token: str, on_text: Callable[[Client, bytes], None], device: str = "") -> Client:
    """Connect and sign in; returns after the first RESEND_DONE."""
    address = ServerAddress(f"http://127.0.0.1:{port}")
    client = await open_connection(address, lambda: Client(address, token, on_text, device))
    assert isinstance(client, Client)
    await client.ready
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
