"""Many pairs who chat at a steady pace: every message is followed from the sender to the receiver.

Used by the suite in small and by `bench/five_thousand.py` in full.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import resource
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

SUBPROTOCOL = "nexo.envelope.v1"
PASSWORD = "correct horse battery"
AT_ONCE = 32  # of anything that is not the load itself
DRAIN_S = 30.0

T = TypeVar("T")
_runs = itertools.count(1)


def allow_many_files() -> None:
    """A connection is a file descriptor, here and in the server."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def few_at_a_time(work: Callable[[T], Awaitable[Any]], items: Sequence[T], at_once: int = AT_ONCE) -> None:
    left = iter(items)

    async def worker() -> None:
        for item in left:
            await work(item)

    await asyncio.gather(*(worker() for _ in range(at_once)))


async def sign_up(address: str, names: Sequence[str]) -> dict[str, str]:
    """Register these users; their access tokens."""
    tokens: dict[str, str] = {}
    limits = httpx.Limits(max_connections=AT_ONCE)
    async with httpx.AsyncClient(base_url=address, timeout=60, limits=limits, verify=False, trust_env=False) as http:

        async def one(name: str) -> None:
            for path in ("/user/register", "/auth/login"):
                answer = (await http.post(path, json={"user_id": name, "password": PASSWORD})).json()
                assert answer["err_code"] == 0, answer
            tokens[name] = answer["data"]["access_token"]

        await few_at_a_time(one, names, 16)
    return tokens


async def open_socket(
    ws_address: str, token: str, *, receive_buffer_bytes: int | None = None, **fields: Any
) -> ClientConnection:
    """A connection that has sent its AUTH; the answers are still to be read."""
    address = urlsplit(ws_address)
    end = socket.socket()
    end.setblocking(False)
    if receive_buffer_bytes is not None:  # or the kernel takes megabytes for one who does not read
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
    try:
        await asyncio.get_running_loop().sock_connect(end, (address.hostname, address.port))
        connection = await connect(
            ws_address,
            sock=end,
            subprotocols=[SUBPROTOCOL],  # type: ignore[list-item]
            compression=None,
            ping_interval=None,
            open_timeout=60,
            close_timeout=10,
            max_size=None,
            max_queue=4,  # frames it reads ahead
            proxy=None,
        )
    except BaseException:
        end.close()
        raise
    await connection.send(json.dumps({"type": "AUTH", "token": token} | fields))
    return connection


class Report:
    def __init__(self) -> None:
        self.connections = 0
        self.sent = 0
        self.saved = 0
        self.received = 0
        self.duplicates = 0
        self.reordered = 0
        self.errors: list[str] = []
        self.seconds = 0.0
        self.ack_ms: list[float] = []
        self.end_to_end_ms: list[float] = []

    def check(self) -> None:
        """Everything saved, everything received, once and in order."""
        assert self.errors == [], self.errors[:5]
        assert self.saved == self.sent, f"{self.sent} sent, {self.saved} saved"
        assert self.received == self.sent, f"{self.sent} sent, {self.received} received"
        assert self.duplicates == 0, f"{self.duplicates} came twice"
        assert self.reordered == 0, f"{self.reordered} came out of order"

    def __str__(self) -> str:
        lines = [
            f"{self.connections} connections, {self.sent} messages in {self.seconds:.1f} s "
            f"({self.sent / max(self.seconds, 0.001):.0f}/s)",
            f"saved {self.saved / max(self.sent, 1):.2%}, received {self.received / max(self.sent, 1):.2%}, "
            f"duplicates {self.duplicates}, out of order {self.reordered}",
        ]
        for name, values in (("ACK saved", self.ack_ms), ("end to end", self.end_to_end_ms)):
            p50, p95, p99 = (percentile(values, part) for part in (0.5, 0.95, 0.99))
            lines.append(f"{name:<10}  p50 {p50:.1f} ms  p95 {p95:.1f} ms  p99 {p99:.1f} ms")
        return "\n".join(lines)


def percentile(values: list[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] if ordered else 0.0


class Pair:
    """One who sends and one who receives, each on a connection of their own."""

    def __init__(self, number: str, report: Report) -> None:
        self.names = (f"s{number}", f"r{number}")
        self._report = report
        self._sent_at: dict[str, float] = {}
        self._unacked: set[str] = set()
        self._unreceived: set[str] = set()
        self._seen: set[str] = set()
        self._last_seq = 0
        self._sockets: list[ClientConnection] = []
        self._readers: list[asyncio.Task[None]] = []
        self._ready = [asyncio.Event(), asyncio.Event()]
        self._first = asyncio.Event()

    async def connect(self, ws_address: str, tokens: dict[str, str]) -> None:
        for i, (name, handle) in enumerate(zip(self.names, (self._acknowledged, self._received), strict=True)):
            connection = await open_socket(ws_address, tokens[name])
            self._sockets.append(connection)
            self._readers.append(asyncio.create_task(self._read(connection, handle, self._ready[i])))
            await self._ready[i].wait()
            self._report.connections += 1

    async def _read(
        self, connection: ClientConnection, handle: Callable[[Any, float], Any], ready: asyncio.Event
    ) -> None:
        try:
            async for data in connection:
                now = time.perf_counter()
                frame = json.loads(data)
                if frame["type"] == "RESEND_DONE":
                    ready.set()
                elif frame["type"] in ("ERROR", "AUTH_FAIL", "RESYNC"):
                    self._report.errors.append(f"{self.names}: {frame}")
                    ready.set()
                else:
                    answer = handle(frame, now)
                    if answer is not None:
                        await connection.send(answer)
        except ConnectionClosed as error:
            self._report.errors.append(f"{self.names}: {error}")

    def _acknowledged(self, frame: Any, now: float) -> None:
        if frame["type"] == "ACK" and frame["ackType"] == "saved" and frame["clientMsgId"] != "first":
            self._unacked.discard(frame["clientMsgId"])
            self._report.saved += 1
            self._report.ack_ms.append((now - self._sent_at[frame["clientMsgId"]]) * 1000)

    def _received(self, frame: Any, now: float) -> str | None:
        if frame["type"] != "SINGLE_CHAT":
            return None
        if frame["serverMsgId"] in self._seen:
            self._report.duplicates += 1
            return None
        self._seen.add(frame["serverMsgId"])
        if frame["msgSeq"] != self._last_seq + 1:
            self._report.reordered += 1
        self._last_seq = frame["msgSeq"]
        if frame["clientMsgId"] == "first":
            self._first.set()
            return None
        self._unreceived.discard(frame["clientMsgId"])
        self._report.received += 1
        self._report.end_to_end_ms.append((now - self._sent_at[frame["clientMsgId"]]) * 1000)
        return json.dumps({"type": "ACK", "ackType": "delivered", "serverMsgId": frame["serverMsgId"]})

    async def get_acquainted(self) -> None:
        """One message before anything is measured, so that the chat exists."""
        await self._sockets[0].send(
            json.dumps({"type": "SINGLE_CHAT", "clientMsgId": "first", "to": self.names[1], "body": "hello"})
        )
        await self._first.wait()

    async def chat(self, interval_s: float, duration_s: float, body: str) -> None:
        """One message per interval, beginning somewhere in the first."""
        started = time.perf_counter() + random.random() * interval_s
        for i in range(round(duration_s / interval_s)):
            await asyncio.sleep(max(0.0, started + i * interval_s - time.perf_counter()))
            client_msg_id = f"{self.names[0]}-{i}"
            frame = {"type": "SINGLE_CHAT", "clientMsgId": client_msg_id, "to": self.names[1], "body": body}
            self._unacked.add(client_msg_id)
            self._unreceived.add(client_msg_id)
            self._report.sent += 1
            self._sent_at[client_msg_id] = time.perf_counter()
            await self._sockets[0].send(json.dumps(frame))

    async def drain(self, deadline: float) -> None:
        while (self._unacked or self._unreceived) and time.perf_counter() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.05)

    async def close(self) -> None:
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        for connection in self._sockets:
            connection.transport.abort()


async def run_pairs(
    address: str,
    ws_address: str,
    pairs: int,
    *,
    interval_s: float = 3.0,
    duration_s: float = 60.0,
    body: str = "x" * 100,
    acquainted: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> Report:
    allow_many_files()
    run = next(_runs)
    report = Report()
    everybody = [Pair(f"{run}-{i}", report) for i in range(pairs)]
    tell(f"registering {2 * pairs} users")
    tokens = await sign_up(address, [name for pair in everybody for name in pair.names])
    tell("connecting")
    await few_at_a_time(lambda pair: pair.connect(ws_address, tokens), everybody)
    if acquainted:
        await few_at_a_time(Pair.get_acquainted, everybody)
    tell(f"chatting for {duration_s:g} s")
    started = time.perf_counter()
    try:
        await asyncio.gather(*(pair.chat(interval_s, duration_s, body) for pair in everybody))
        report.seconds = time.perf_counter() - started
        deadline = time.perf_counter() + DRAIN_S
        await asyncio.gather(*(pair.drain(deadline) for pair in everybody))
    finally:
        await asyncio.gather(*(pair.close() for pair in everybody))
    return report
