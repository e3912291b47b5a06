"""Webhooks: entries per second to a local receiver (W1), their lag at a steady load, and what one webhook costs (J1).

    .venv/bin/python bench/webhooks.py
    .venv/bin/python bench/webhooks.py --seconds 10 --rounds 3

W1: the webhook is paused, messages are sent, then the time is taken until the receiver has all of them. The lag is from
the commit of a message to the request that carries it, at 1,000 messages per second. J1 is a full single chat (`nexo
bench single`) without and with a webhook for everything that is saved, in turns. The server has one core, receiver and
generator share the other.
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
from typing import Any

from nexo.bench.server import NEXO, OwnServer, own_server

SETTINGS = {"hooks.allow_private": "true"}
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


class ReceiverProtocol(asyncio.Protocol):
    """Counts events and their ages without parsing more than needed: the receiver must not be the limit."""

    count = 0
    requests = 0
    ages_ms: list[float] = []  # noqa: RUF012

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._data = b""

    def data_received(self, data: bytes) -> None:
        self._data += data
        while True:
            end = self._data.find(b"\r\n\r\n")
            if end < 0:
                return
            found = re.search(rb"content-length: (\d+)", self._data[:end])
            size = end + 4 + int(found[1] if found else 0)
            if len(self._data) < size:
                return
            body, self._data = self._data[end + 4 : size], self._data[size:]
            now_ms = time.time() * 1000
            ages = [now_ms - int(at) for at in re.findall(rb'"type":"message.saved","at":(\d+)', body)]
            ReceiverProtocol.count += len(ages)
            ReceiverProtocol.requests += 1
            ReceiverProtocol.ages_ms += ages
            self._transport.write(ANSWER)


def receive(pipe: Connection, core: int) -> None:
    """The process of the receiver: the port first, then the figures so far for each question."""
    os.sched_setaffinity(0, {core})

    async def main() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(ReceiverProtocol, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])

        def answer() -> None:
            if pipe.recv() == "stop":
                loop.stop()
            pipe.send((ReceiverProtocol.count, ReceiverProtocol.requests, ReceiverProtocol.ages_ms))
            ReceiverProtocol.ages_ms = []

        loop.add_reader(pipe.fileno(), answer)
        await asyncio.Event().wait()

    with contextlib.suppress(RuntimeError):  # stopped
        asyncio.run(main())


def call(server: OwnServer, key: str, path: str, body: dict[str, Any] | None = None) -> Any:
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(server.url + path, data, headers)
    with urllib.request.urlopen(request, timeout=30) as reply:
        return json.load(reply)["data"]


def single(server: OwnServer, seconds: float, rate: int = 0) -> Any:
    command = [
        *NEXO,
        "bench",
        "single",
        "--url",
        server.url,
        "--server-pid",
        str(server.pid),
        "--json",
        "-",
        "--no-check",
    ]
    command += ["--seconds", str(seconds), *(["--rate", str(rate)] if rate else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return json.loads(done.stdout[done.stdout.index("{") :])


def add_key(server: OwnServer) -> str:
    command = [*NEXO, "key", "add", "bench", "--scope", "events", "--data", str(server.data)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


class Figures:
    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self.ages_ms: list[float] = []

    def __call__(self) -> tuple[int, int]:
        """Returns how many events and requests have arrived."""
        self._pipe.send("figures")
        count, requests, ages_ms = self._pipe.recv()
        self.ages_ms += ages_ms
        return count, requests

    def settle(self) -> int:
        """Wait until nothing has arrived for half a second. Returns the number of events so far."""
        count = -1
        while (now := self()[0]) != count:
            count = now
            time.sleep(0.5)
        return count


def measure(seconds: float, rounds: int) -> None:
    os.sched_setaffinity(0, {1})
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=receive, args=(theirs, 1), daemon=True)
    process.start()
    port = ours.recv()
    figures = Figures(ours)
    with own_server(settings=SETTINGS, cores={0}) as server:
        key = add_key(server)
        body = {"url": f"http://127.0.0.1:{port}/hook", "types": ["message.saved"], "name": "bench"}
        call(server, key, "/server/hooks", body)
        single(server, 1)
        figures.settle()
        rates = []
        for _ in range(rounds):
            call(server, key, "/server/hooks/bench/pause", {})
            time.sleep(1)
            before = figures()[0]
            single(server, seconds)
            call(server, key, "/server/hooks/bench/resume", {})
            while figures()[0] == before:
                time.sleep(0.01)
            began = time.perf_counter()
            first = figures()[0]
            last, last_at = first, began
            while True:
                time.sleep(0.05)
                count = figures()[0]
                if count != last:
                    last, last_at = count, time.perf_counter()
                elif time.perf_counter() - last_at > 1:
                    break
            rates.append((last - first) / (last_at - began))
        print(f"W1  entries/s to a local receiver: {statistics.median(rates):,.0f} (best {max(rates):,.0f})")
        requests = figures()[1]
        figures.ages_ms = []
        began = time.perf_counter()
        light = single(server, seconds, rate=1000)
        figures.settle()
        now_requests = figures()[1]
        ages = sorted(figures.ages_ms)
        taken_s = time.perf_counter() - began
        shown = [f"{ages[int(len(ages) * share)]:.0f} ms" for share in (0.5, 0.99)]
        print(
            f"W1  lag at 1,000 msg/s: p50 {shown[0]}, p99 {shown[1]} over {len(ages):,} entries, "
            f"{(now_requests - requests) / taken_s:.0f} requests/s, "
            f"{light['saved_per_s']:.0f} msg/s"
        )
        without, with_one = [], []
        for _ in range(rounds):
            call(server, key, "/server/hooks/bench/pause", {})
            time.sleep(1)
            without.append(single(server, seconds))
            call(server, key, "/server/hooks/bench/resume", {})
            figures.settle()
            before = figures()[0]
            with_one.append(single(server, seconds))
            during = figures()[0] - before
            lag_s = time.perf_counter()
            figures.settle()
            rest_s = time.perf_counter() - lag_s
            print(f"    with the webhook: {during:,} entries arrived during the run, the rest within {rest_s:.1f} s")
        for name in ("saved_per_s", "per_cpu_s"):
            a = statistics.median(one[name] for one in without)
            b = statistics.median(one[name] for one in with_one)
            print(f"J1  {name}: {a:,.0f} without, {b:,.0f} with one webhook: {b / a:.2f} ×")
    ours.send("stop")
    process.terminate()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    measure(given.seconds, given.rounds)
