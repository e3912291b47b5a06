"""Push: notifications per second to a local provider, and the p99 of a send with and without it (P1).

    .venv/bin/python bench/push.py
    .venv/bin/python bench/push.py --seconds 10 --rounds 3 --users 1000

The receivers are away. One connection sends at a steady rate, to one receiver after the other, first while no device is
registered, then with one device for each receiver (the operator's webhook, in a process of its own); a p99 is the
median of the rounds. Then each receiver gets a message at once, and the time is taken from the first to the last
notification. The server has one core, provider and sender share the other.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import os
import re
import statistics
import subprocess
import time
import urllib.request
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import websockets

from nexo.bench.server import NEXO, OwnServer, own_server
from page import replace_part

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
WAIT_MS = 1000


class ProviderProtocol(asyncio.Protocol):
    """Notes when notifications arrive, without parsing more than needed: the provider must not be the limit."""

    times: list[float] = []  # noqa: RUF012

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._data = b""

    def data_received(self, data: bytes) -> None:
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            found = re.search(rb"content-length: (\d+)", self._data[:end])
            size = end + 4 + int(found[1] if found else 0)
            if len(self._data) < size:
                return
            self._data = self._data[size:]
            ProviderProtocol.times.append(time.perf_counter())
            self._transport.write(ANSWER)


def provide(pipe: Connection, core: int) -> None:
    """The process of the provider: the port first, then for each question when notifications have arrived since."""
    os.sched_setaffinity(0, {core})

    async def main() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(ProviderProtocol, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])

        def answer() -> None:
            if pipe.recv() == "stop":
                loop.stop()
            pipe.send(ProviderProtocol.times)
            ProviderProtocol.times = []

        loop.add_reader(pipe.fileno(), answer)
        await asyncio.Event().wait()

    with contextlib.suppress(RuntimeError):  # stopped
        asyncio.run(main())


def call(server: OwnServer, token: str, method: str, path: str, body: dict[str, Any]) -> Any:
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    request = urllib.request.Request(server.url + path, json.dumps(body).encode(), headers, method=method)
    with urllib.request.urlopen(request, timeout=30) as reply:
        return json.load(reply)["data"]


async def send(server: OwnServer, token: str, users: list[str], rate: float, count: int, mark: str) -> list[float]:
    """Send `count` messages at a rate (0: at once). Returns the times to their ACKs in ms."""
    began: dict[str, float] = {}
    taken: list[float] = []
    address = server.url.replace("http", "ws", 1) + "/ws"
    async with websockets.connect(address, subprotocols=["nexo.envelope.v1"], max_queue=None) as socket:  # type: ignore[list-item]
        await socket.send(json.dumps({"type": "AUTH", "token": token}))

        async def read() -> None:
            while len(taken) < count:
                frame = json.loads(await socket.recv())
                if frame.get("ackType") == "saved":
                    taken.append((time.perf_counter() - began[frame["clientMsgId"]]) * 1000)

        reading = asyncio.create_task(read())
        start = time.perf_counter()
        for number in range(count):
            if rate:
                await asyncio.sleep(max(0.0, start + number / rate - time.perf_counter()))
            name = f"{mark}{number}"
            began[name] = time.perf_counter()
            frame = {"type": "SINGLE_CHAT", "clientMsgId": name, "to": users[number % len(users)], "body": "hello"}
            await socket.send(json.dumps(frame))
            if not rate and number % 100 == 99:
                await asyncio.sleep(0.02)
        await asyncio.wait_for(reading, 60)
    return sorted(taken)


def figures(pipe: Connection) -> list[float]:
    pipe.send("figures")
    found: list[float] = pipe.recv()
    return found


def settle(pipe: Connection) -> list[float]:
    """Wait until no notification has arrived for two seconds. Returns when each has."""
    found: list[float] = []
    quiet_since = time.perf_counter()
    while time.perf_counter() - quiet_since < 2 + WAIT_MS / 1000:
        more = figures(pipe)
        if more:
            found += more
            quiet_since = time.perf_counter()
        time.sleep(0.1)
    return found


def row(what: str, must: str, measured: str, reached: bool) -> str:
    return f"| P1 | {what} | {must} | {measured} | {'yes' if reached else '**no**'} |"


def at(share: float, rounds: list[list[float]]) -> float:
    """Returns the median of the rounds of a percentile."""
    return statistics.median(times[int(len(times) * share)] for times in rounds)


def measure(seconds: float, users: int, rate: int, rounds: int) -> list[str]:
    os.sched_setaffinity(0, {1})
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=provide, args=(theirs, 1), daemon=True)
    process.start()
    port = ours.recv()
    settings = {
        "push.hook.url": f"http://127.0.0.1:{port}/push",
        "push.wait_ms": str(WAIT_MS),
        "limits.inflight_sends": "0",
        "limits.sends_per_s": "0",
        "limits.frames_per_s": "0",
        "limits.requests_per_s": "0",
    }
    with own_server(settings=settings, cores={0}) as server:
        command = [*NEXO, "key", "add", "bench", "--scope", "users,tokens", "--data", str(server.data)]
        key = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        away = [f"away{number}" for number in range(users)]
        for first in range(0, users, 500):
            made = [{"user_id": user} for user in [*away[first : first + 500], "ann"]]
            call(server, key, "PUT", "/server/users", {"users": made})
        token = call(server, key, "POST", "/server/tokens", {"user_id": "ann", "ttl_s": 3600})["access_token"]
        count = int(rate * seconds)
        asyncio.run(send(server, token, away, rate, users, "warm"))
        without = [asyncio.run(send(server, token, away, rate, count, f"a{n}-")) for n in range(rounds)]
        for user in away:
            own = call(server, key, "POST", "/server/tokens", {"user_id": user})["access_token"]
            device = {"kind": "hook", "token": user, "device_id": "phone"}
            call(server, own, "POST", "/push/register", device)
        settle(ours)
        began = time.perf_counter()
        with_push = [asyncio.run(send(server, token, away, rate, count, f"b{n}-")) for n in range(rounds)]
        took_s = time.perf_counter() - began
        within = [moment for moment in settle(ours) if moment < began + took_s]
        asyncio.run(send(server, token, away, 0, users, "c"))
        times = settle(ours)
    burst = len(times) / (times[-1] - times[0])
    slower = at(0.99, with_push) / at(0.99, without)
    shown = ", ".join(
        f"p{share * 100:.0f} {at(share, without):.2f} and {at(share, with_push):.2f} ms" for share in (0.5, 0.99)
    )
    lines = [
        row(f"{len(times):,} notifications at once", "≥ 500/s", f"{burst:,.0f}/s", burst >= 500),
        row(
            f"{rate} sends/s, without and with push ({len(within) / took_s:,.0f} notifications/s)",
            "p99 ≤ 1.5 ×",
            f"{slower:.2f} × ({shown})",
            slower <= 1.5,
        ),
    ]
    ours.send("stop")
    process.terminate()
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--users", type=int, default=1000)
    parser.add_argument("--rate", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--markdown", type=Path, help="also write the rows into this page")
    given = parser.parse_args()
    found = measure(given.seconds, given.users, given.rate, given.rounds)
    print("\n".join(found))
    if given.markdown:
        head = "| # | what | must | measured | reached |\n|---|---|---|---|---|"
        replace_part(given.markdown, "push.py", "\n".join([head, *found]))
