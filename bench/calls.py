"""Calls: the time from CALL_INVITE to the ring at the callee's device (L1), with one instance and with two.

    .venv/bin/python bench/calls.py
    .venv/bin/python bench/calls.py --only one --calls 500 --rate 20

Calls begin at a steady rate, each between two users who are in no other call, with an offer of the size that browsers
make; the time counts from the moment at which the call was due. A call is accepted, both sides send candidates, and the
caller hangs up, so that at any moment some calls ring, some are answered and some end. With two instances (a server
database, Redis) every caller is connected to the one and every callee to the other.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvloop

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from harness.cluster import cluster
from load import Client, connect, random_id, register
from nexo.bench.server import own_server
from page import replace_part

OFFER = "v=0\r\n" + "a=candidate:1 1 udp 2122260223 192.0.2.7 40000 typ host\r\n" * 90  # 5 kB
ANSWER = "v=0 answer\r\n" + "a=fmtp:111 minptime=10;useinbandfec=1\r\n" * 120
PAIRS = 60
CANDIDATES = 4
MUST_MS = {"one": 20, "two": 40}


class Pair:
    """A caller and a callee, each with one device; answers by itself."""

    def __init__(self, load: Load, caller: str, callee: str) -> None:
        self.load = load
        self.names = (caller, callee)
        self.caller: Client
        self.callee: Client
        self.due_at = 0.0
        self.sent_at = 0.0

    async def connect(self, ports: tuple[int, int], tokens: dict[str, str]) -> None:
        caller, callee = self.names
        self.caller = await connect(ports[0], tokens[caller], self._caller_heard)
        self.callee = await connect(ports[1], tokens[callee], self._callee_heard)

    def begin(self, due_at: float, number: int) -> None:
        self.due_at = due_at
        kind = "video" if number % 2 else "audio"
        frame = {"type": "CALL_INVITE", "to": self.names[1], "callKind": kind, "sdp": OFFER}
        self.sent_at = time.perf_counter()
        self.caller.send(json.dumps(frame | {"clientMsgId": random_id(self.load.random)}).encode())

    def _callee_heard(self, client: Client, payload: bytes) -> None:
        if payload.startswith(b'{"type":"CALL_INVITE"'):
            now = time.perf_counter()
            self.load.rang_ms.append((now - self.due_at) * 1000)
            self.load.sent_ms.append((now - self.sent_at) * 1000)
            call_id = json.loads(payload)["callId"]
            self._say(client, "CALL_ACCEPT", call_id, sdp=ANSWER)
            self._send_candidates(client, call_id)
        else:
            self._check(payload)

    def _caller_heard(self, client: Client, payload: bytes) -> None:
        if payload.startswith(b'{"type":"CALL_ACCEPT"'):
            call_id = json.loads(payload)["callId"]
            self._send_candidates(client, call_id)
            self._say(client, "CALL_END", call_id)
        elif payload.startswith(b'{"type":"SINGLE_CHAT"'):  # the record: the two are free again
            self.load.ended(self)
        else:
            self._check(payload)

    def _send_candidates(self, client: Client, call_id: str) -> None:
        for number in range(CANDIDATES):
            candidate = f"candidate:{number} 1 udp 2122260223 192.0.2.7 {40000 + number} typ host"
            self._say(client, "CALL_ICE", call_id, candidate=candidate, sdpMid="0", sdpMLineIndex=0)

    def _say(self, client: Client, kind: str, call_id: str, **fields: Any) -> None:
        client.send(json.dumps({"type": kind, "callId": call_id, **fields}).encode())

    def _check(self, payload: bytes) -> None:
        frame = json.loads(payload)
        # Candidates of the callee may cross the end of the call.
        if frame["type"] in ("CALL_ERROR", "ERROR") and frame["reason"] != "call_not_found":
            raise SystemExit(f"refused: {frame}")


class Load:
    def __init__(self, calls: int, rate: float, seed: int = 1) -> None:
        self.random = random.Random(seed)
        self._calls = calls
        self._rate = rate
        self._free: asyncio.Queue[Pair] = asyncio.Queue()
        self._left = calls
        self._done = asyncio.Event()
        self.rang_ms: list[float] = []
        self.sent_ms: list[float] = []

    def ended(self, pair: Pair) -> None:
        self._free.put_nowait(pair)
        self._left -= 1
        if not self._left:
            self._done.set()

    async def run(self, ports: tuple[int, int], tokens: dict[str, str], names: list[str]) -> None:
        pairs = [Pair(self, *both) for both in zip(names[::2], names[1::2], strict=True)]
        await asyncio.gather(*(pair.connect(ports, tokens) for pair in pairs))
        for pair in pairs:
            self._free.put_nowait(pair)
        began = time.perf_counter()
        for number in range(self._calls):
            due_at = began + number / self._rate
            await asyncio.sleep(max(0.0, due_at - time.perf_counter()))
            (await self._free.get()).begin(due_at, number)
        async with asyncio.timeout(60):
            await self._done.wait()
        for pair in pairs:
            pair.caller.cut()
            pair.callee.cut()


@contextlib.contextmanager
def one_instance() -> Iterator[tuple[int, int]]:
    with own_server(settings={"calls.invites_per_min": "0"}, cores={0}) as server:
        port = int(server.url.rpartition(":")[2])
        yield port, port


@contextlib.contextmanager
def two_instances(engine: str) -> Iterator[tuple[int, int]]:
    with cluster(engine, 2, calls__invites_per_min=0, limits__connections_per_user=0) as two:
        yield two[0].port, two[1].port


def measure(what: str, engine: str, calls: int, rate: float) -> str:
    names = [f"user{number}" for number in range(PAIRS * 2)]
    opened = one_instance() if what == "one" else two_instances(engine)
    with opened as ports:
        tokens = register(ports[0], names)
        uvloop.run(Load(PAIRS * 2, rate, seed=2).run(ports, tokens, names))  # chats are made, caches filled
        load = Load(calls, rate)
        uvloop.run(load.run(ports, tokens, names))
    found = sorted(load.rang_ms)
    assert len(found) == calls, f"{calls - len(found)} calls did not ring"
    p50, p95, p99 = (found[min(calls - 1, int(calls * share))] for share in (0.5, 0.95, 0.99))
    name = "one instance, embedded database" if what == "one" else f"two instances, {engine}, Redis"
    reached = "yes" if p99 <= MUST_MS[what] else "**no**"
    return (
        f"| L1 | CALL_INVITE to ring, {name}: {calls:,} calls at {rate:g}/s | p99 ≤ {MUST_MS[what]} ms | "
        f"p50 {p50:.1f}, p95 {p95:.1f}, p99 {p99:.1f}, longest {found[-1]:.1f} ms | {reached} |"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("one", "two"))
    parser.add_argument("--engine", choices=("mariadb", "postgresql"), default="postgresql")
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=20)
    parser.add_argument("--markdown", type=Path, help="also write the rows into this page")
    given = parser.parse_args()
    lines = []
    for arrangement in ("one", "two") if given.only is None else (given.only,):
        os.sched_setaffinity(0, {1} if arrangement == "one" else {0, 1})
        lines.append(measure(arrangement, given.engine, given.calls, given.rate))
        print(lines[-1], flush=True)
    if given.markdown:
        head = "| # | what | must | measured | reached |\n|---|---|---|---|---|"
        replace_part(given.markdown, "calls.py", "\n".join([head, *lines]))
