"""The gateway's figures: rows G1 to G7 of the targets, server on one core, generator on the other.

    .venv/bin/python bench/gateway.py                    all rows
    .venv/bin/python bench/gateway.py full --seconds 10  one of: ping full full1 fanout idle latency

"Full" is a durable single chat: sent, committed, ACK saved, pushed, delivered ACK, cursor, receipt.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
import uvloop

from load import Client, call, connect, random_id, register

ROOT = Path(__file__).parent.parent
BODY = "x" * 100
SETTINGS = {
    "NEXO_LIMITS__SENDS_PER_S": "0",
    "NEXO_LIMITS__FRAMES_PER_S": "0",
    "NEXO_LIMITS__ACKS_PER_S": "0",
    "NEXO_LIMITS__INFLIGHT_SENDS": "0",
    "NEXO_LIMITS__LOGINS_PER_MIN": "0",
    "NEXO_LIMITS__CONNECTIONS_PER_USER": "0",
    "NEXO_LIMITS__REGISTERS_PER_MIN": "0",
    "NEXO_LIMITS__GROUP_CREATES_PER_MIN": "0",
    "NEXO_AUTH__ARGON2_MEMORY_KIB": "8",
    "NEXO_AUTH__ARGON2_TIME_COST": "1",
}


class ServerUnderTest:
    """`nexo serve` pinned to core 0 on a data folder of its own."""

    def __init__(self, **settings: str) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._settings = settings

    def __enter__(self) -> ServerUnderTest:
        command = [str(ROOT / ".venv/bin/nexo"), "serve", "--port", "0", "--data", self._folder.name]
        self.process = subprocess.Popen(
            [*command, "--log-level", "warning"],
            env=os.environ | SETTINGS | self._settings,
            stdout=subprocess.PIPE,
            text=True,
        )
        os.sched_setaffinity(self.process.pid, {0})
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.port = int(line.split("127.0.0.1:")[1].split()[0])
        self.stats = psutil.Process(self.process.pid)
        for thread in self.stats.threads():
            os.sched_setaffinity(thread.id, {0})
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(20)
        self._folder.cleanup()

    def cpu_s(self) -> float:
        times = self.stats.cpu_times()
        return times.user + times.system


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


async def full(server: ServerUnderTest, window: int, seconds: float, pairs: int = 100) -> dict[str, float]:
    names = [f"{side}{i}" for i in range(pairs) for side in "sr"]
    tokens = await asyncio.to_thread(register, server.port, names)
    source = random.Random(1)
    saved = received = receipts = 0
    stopping = False
    latencies: list[float] = []
    sent_at: dict[str, float] = {}

    def next_send(client: Client, to: str) -> None:
        client_msg_id = random_id(source)
        sent_at[client_msg_id] = time.perf_counter()
        client.send(
            b'{"type":"SINGLE_CHAT","clientMsgId":"%b","to":"%b","body":"%b"}'
            % (client_msg_id.encode(), to.encode(), BODY.encode())
        )

    def sender(to: str) -> Any:
        def on_text(client: Client, payload: bytes) -> None:
            nonlocal saved, receipts
            if payload.startswith(b'{"type":"ACK","ackType":"saved"'):
                saved += 1
                at = payload.index(b'"clientMsgId":"') + 15
                latencies.append(time.perf_counter() - sent_at.pop(payload[at : at + 24].decode()))
                if not stopping:
                    next_send(client, to)
            elif payload.startswith(b'{"type":"ACK"'):
                receipts += 1
            elif not stopping:
                raise AssertionError(payload)

        return on_text

    def receiver(client: Client, payload: bytes) -> None:
        nonlocal received
        if not payload.startswith(b'{"type":"SINGLE_CHAT"'):
            return
        received += 1
        at = payload.index(b'"serverMsgId":"') + 15
        end = payload.index(b'"', at)
        client.send(b'{"type":"ACK","ackType":"delivered","serverMsgId":"%b"}' % payload[at:end])

    senders = []
    for i in range(pairs):
        await connect(server.port, tokens[f"r{i}"], receiver)
        senders.append(await connect(server.port, tokens[f"s{i}"], sender(f"r{i}")))
    for i, client in enumerate(senders):
        for _ in range(window):
            next_send(client, f"r{i}")
    await asyncio.sleep(1)
    saved_before, cpu, own, started = saved, server.cpu_s(), time.process_time(), time.perf_counter()
    latencies.clear()
    await asyncio.sleep(seconds)
    count, wall, used = saved - saved_before, time.perf_counter() - started, server.cpu_s() - cpu
    own = time.process_time() - own
    stopping = True
    await asyncio.sleep(1.5)
    assert received == saved, (received, saved)
    assert receipts > 0
    return {
        "msg/s": count / wall,
        "per CPU-s": count / used,
        "p50 ms": percentile(latencies, 0.5) * 1000,
        "p99 ms": percentile(latencies, 0.99) * 1000,
        "generator busy": own / wall,
    }


async def ping(server: ServerUnderTest, seconds: float, connections: int = 100, window: int = 8) -> dict[str, float]:
    tokens = await asyncio.to_thread(register, server.port, [f"p{i}" for i in range(connections)])
    answers = 0
    frame = json.dumps({"type": "PING", "extra": "x" * 160}).encode()

    def on_text(client: Client, payload: bytes) -> None:
        nonlocal answers
        answers += 1
        client.send(frame)

    clients = [await connect(server.port, token, on_text) for token in tokens.values()]
    for client in clients:
        for _ in range(window):
            client.send(frame)
    await asyncio.sleep(0.5)
    before, cpu, started = answers, server.cpu_s(), time.perf_counter()
    await asyncio.sleep(seconds)
    count, wall, used = answers - before, time.perf_counter() - started, server.cpu_s() - cpu
    return {"answers/s": count / wall, "µs/answer": used / count * 1e6}


async def fanout(server: ServerUnderTest, seconds: float, members: int = 1000) -> dict[str, float]:
    names = [f"m{i}" for i in range(members)]
    tokens = await asyncio.to_thread(register, server.port, names)
    group = await asyncio.to_thread(
        call, server.port, "/group/create", {"name": "all", "member_ids": names[1:]}, tokens["m0"]
    )
    received = 0

    def on_text(client: Client, payload: bytes) -> None:
        nonlocal received
        received += 1

    clients = [await connect(server.port, tokens[name], on_text) for name in names]
    source = random.Random(1)
    frame = b'{"type":"GROUP_CHAT","clientMsgId":"%b","groupId":"%b","body":"%b"}'
    sent = 0
    cpu, started = server.cpu_s(), time.perf_counter()
    while time.perf_counter() - started < seconds:
        clients[sent % 20].send(frame % (random_id(source).encode(), group["group_id"].encode(), BODY.encode()))
        sent += 1
        while received < sent * members - 3 * members:
            await asyncio.sleep(0.001)
    while received < sent * members:
        await asyncio.sleep(0.001)
    wall, used = time.perf_counter() - started, server.cpu_s() - cpu
    return {"deliveries/s": received / wall, "per CPU-s": received / used}


async def idle(server: ServerUnderTest, connections: int = 10_000) -> dict[str, float]:
    tokens = list((await asyncio.to_thread(register, server.port, [f"i{i}" for i in range(100)])).values())

    def on_text(client: Client, payload: bytes) -> None:
        return

    for i in range(100):
        await connect(server.port, tokens[i], on_text)
    before = server.stats.memory_info().rss
    for start in range(0, connections, 100):
        await asyncio.gather(*(connect(server.port, tokens[i % 100], on_text) for i in range(start, start + 100)))
    grown = server.stats.memory_info().rss - before
    return {"KiB/connection": grown / connections / 1024}


async def latency(server: ServerUnderTest, seconds: float, rate: int = 500) -> dict[str, float]:
    """Open loop: messages leave on schedule, time counts from when they should have left."""
    pairs = 50
    tokens = await asyncio.to_thread(register, server.port, [f"{side}{i}" for i in range(pairs) for side in ("a", "b")])
    due: dict[bytes, float] = {}
    times: list[float] = []

    def on_saved(client: Client, payload: bytes) -> None:
        if payload.startswith(b'{"type":"ACK","ackType":"saved"'):
            at = payload.index(b'"clientMsgId":"') + 15
            times.append(time.perf_counter() - due.pop(payload[at : at + 24]))

    def on_message(client: Client, payload: bytes) -> None:
        at = payload.index(b'"serverMsgId":"') + 15
        client.send(b'{"type":"ACK","ackType":"delivered","serverMsgId":"%b"}' % payload[at : payload.index(b'"', at)])

    senders = []
    for i in range(pairs):
        await connect(server.port, tokens[f"b{i}"], on_message)
        senders.append(await connect(server.port, tokens[f"a{i}"], on_saved))
    source = random.Random(2)
    cpu, started = server.cpu_s(), time.perf_counter()
    for n in range(int(rate * seconds)):
        moment = started + n / rate
        pause = moment - time.perf_counter()
        if pause > 0:
            await asyncio.sleep(pause)
        client_msg_id = random_id(source).encode()
        due[client_msg_id] = moment
        senders[n % pairs].send(
            b'{"type":"SINGLE_CHAT","clientMsgId":"%b","to":"b%d","body":"%b"}'
            % (client_msg_id, n % pairs, BODY.encode())
        )
    await asyncio.sleep(1)
    assert not due
    return {
        "p50 ms": percentile(times, 0.5) * 1000,
        "p99 ms": percentile(times, 0.99) * 1000,
        "CPU of a core": (server.cpu_s() - cpu) / seconds,
    }


async def run(row: str, seconds: float) -> dict[str, float]:
    # a thousand members online would get notices by the default strategy
    with ServerUnderTest(**({"NEXO_GROUP__STRATEGY__MODE": "push"} if row == "fanout" else {})) as server:
        if row == "ping":
            return await ping(server, seconds)
        if row == "full":
            return await full(server, 8, seconds)
        if row == "full1":
            return await full(server, 1, seconds)
        if row == "fanout":
            return await fanout(server, seconds)
        if row == "idle":
            return await idle(server)
        return await latency(server, seconds)


ROWS = {"ping": "G1", "fanout": "G2", "idle": "G3", "full": "G4", "full1": "G4b", "latency": "G7"}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", default=list(ROWS), metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    os.sched_setaffinity(0, {1 % (os.cpu_count() or 1)})
    for name in arguments.rows:
        found = [uvloop.run(run(name, arguments.seconds)) for _ in range(arguments.rounds)]
        figures = {key: statistics.median(item[key] for item in found) for key in found[0]}
        text = ", ".join(
            f"{key} {value:,.2f}" if value < 100 else f"{key} {value:,.0f}" for key, value in figures.items()
        )
        sys.stdout.write(f"{ROWS[name]:4} {name:8} {text}\n")
        sys.stdout.flush()
