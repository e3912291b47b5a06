"""What more instances cost and bring: throughput and processor time per message of 1, 2 and 3 instances.

    .venv/bin/python bench/instances.py
    .venv/bin/python bench/instances.py --engine mariadb --seconds 10 --counts 1 3

A full durable single chat per message (sent, committed, ACK saved, pushed, delivered ACK, cursor, receipt) on a
server database. "alone" is one instance without Redis. With several instances there are two runs: "near", where
everybody talks to somebody on the same instance and nothing crosses the bus, and "far", where every receiver is on
another one than the sender and each message crosses it twice, as a push and as a receipt. What "far" costs more
than "near" is the bus. "near" and "1 instance" differ by what each instance commits at once ("batch"): the more of
them share the same load, the smaller the batches. `--each` gives every instance the whole load instead, so that
batches stay as large as with one.

All processes share the machine with the generator, so on two cores throughput cannot grow with their number: what
counts is the processor time per message.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import uvloop

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from harness import processes
from harness.cluster import Cluster
from harness.keeper import processes_in
from harness.migrated import migrated_database
from harness.server_process import ServerProcess
from harness.servers import Redis, mariadb, postgres
from load import Client, connect, random_id, register

BODY = "x" * 100
COUNTED = {
    "sends": "nexo_batch_size_sum",
    "batches": "nexo_batch_size_count",
    "frames": 'nexo_bus_frames_total{direction="out"}',
}
OPEN = {"limits__acks_per_s": 0, "limits__inflight_sends": 0, "limits__connections_per_user": 0}


class Site:
    """The instances of one run, and what else works for them."""

    def __init__(self, instances: list[ServerProcess], folders: dict[str, Path]) -> None:
        self.instances = instances
        self._folders = folders

    def cpu_s(self) -> dict[str, float]:
        """Processor time so far: of the instances, the database and Redis."""
        pids = {"nexo": [instance.pid for instance in self.instances]}
        pids |= {name: processes_in(folder) for name, folder in self._folders.items()}
        return {name: sum(map(_cpu_s, found)) for name, found in pids.items()}

    def counts(self) -> dict[str, float]:
        """What the instances have counted so far, together."""
        found = dict.fromkeys(COUNTED, 0.0)
        for instance in self.instances:
            with urllib.request.urlopen(f"{instance.address}/metrics", timeout=30) as answer:
                for line in answer.read().decode().splitlines():
                    for name, start in COUNTED.items():
                        if line.startswith(start):
                            found[name] += float(line.rpartition(" ")[2])
        return found


def _cpu_s(pid: int) -> float:
    with contextlib.suppress(psutil.NoSuchProcess):
        times = psutil.Process(pid).cpu_times()
        return times.user + times.system
    return 0.0


@contextlib.contextmanager
def site(engine: str, count: int) -> Iterator[Site]:
    """`count` 0 stands for one instance without Redis."""
    database = mariadb() if engine == "mariadb" else postgres()
    folder = processes.new_dir("bench")
    with migrated_database(engine, folder) as url, contextlib.ExitStack() as stack:
        folders = {"database": database.directory}
        if count:
            redis = stack.enter_context(Redis("appendonly no"))
            folders["redis"] = redis.directory
            running = stack.enter_context(Cluster(url, redis.url, count, store__pool_size=8, **OPEN))
        else:
            running = stack.enter_context(Cluster(url, "", 1, store__pool_size=8, **OPEN))
        yield Site(running.instances, folders)


async def measure(here: Site, pairs: int, window: int, seconds: float, distance: int) -> dict[str, float]:
    """`distance` is how many instances further the receiver is."""
    ports = [instance.port for instance in here.instances]
    tokens = await asyncio.to_thread(register, ports[0], [f"{side}{i}" for i in range(pairs) for side in "sr"])
    source = random.Random(1)
    saved = received = 0
    is_over = False

    def send(client: Client, to: str) -> None:
        client.send(
            b'{"type":"SINGLE_CHAT","clientMsgId":"%b","to":"%b","body":"%b"}'
            % (random_id(source).encode(), to.encode(), BODY.encode())
        )

    def sender(to: str):  # type: ignore[no-untyped-def]
        def on_text(client: Client, payload: bytes) -> None:
            nonlocal saved
            if payload.startswith(b'{"type":"ACK","ackType":"saved"'):
                saved += 1
                if not is_over:
                    send(client, to)

        return on_text

    def receiver(client: Client, payload: bytes) -> None:
        nonlocal received
        if payload.startswith(b'{"type":"SINGLE_CHAT"'):
            received += 1
            at = payload.index(b'"serverMsgId":"') + 15
            end = payload.index(b'"', at)
            client.send(b'{"type":"ACK","ackType":"delivered","serverMsgId":"%b"}' % payload[at:end])

    for i in range(pairs):
        await connect(ports[(i + distance) % len(ports)], tokens[f"r{i}"], receiver)
        client = await connect(ports[i % len(ports)], tokens[f"s{i}"], sender(f"r{i}"))
        for _ in range(window):
            send(client, f"r{i}")
    await asyncio.sleep(1)
    counts = await asyncio.to_thread(here.counts)
    before, cpu, started = saved, here.cpu_s(), time.perf_counter()
    await asyncio.sleep(seconds)
    count, wall, after = saved - before, time.perf_counter() - started, here.cpu_s()
    counted = {name: value - counts[name] for name, value in (await asyncio.to_thread(here.counts)).items()}
    is_over = True
    deadline = time.perf_counter() + 20
    while received < saved and time.perf_counter() < deadline:
        await asyncio.sleep(0.05)
    assert received == saved, f"{saved} saved, {received} received"
    return {
        "msg/s": count / wall,
        **{f"{name} µs": (after[name] - cpu[name]) / max(1, count) * 1e6 for name in after},
        "batch": counted["sends"] / max(1, counted["batches"]),
        "messages/frame": 2 * counted["sends"] / counted["frames"] if counted["frames"] else 0,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=["mariadb", "postgresql"], default="postgresql")
    parser.add_argument("--counts", type=int, nargs="*", default=[0, 1, 2, 3])
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--window", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--each", action="store_true", help="the whole load for each instance")
    options = parser.parse_args()
    for count in options.counts:
        pairs = options.pairs * (max(1, count) if options.each else 1)
        for distance in (0, 1) if count > 1 else (0,):
            with site(options.engine, count) as here:
                found = uvloop.run(measure(here, pairs, options.window, options.seconds, distance))
            near = ", far" if distance else ", near" if count > 1 else ""
            name = f"{count} instance{'s' * (count > 1)}{near}" if count else "alone"
            figures = ", ".join(f"{key} {value:,.0f}" for key, value in found.items())
            sys.stdout.write(f"{options.engine:11} {name:18} {figures}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
