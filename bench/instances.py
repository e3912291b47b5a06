"""What more instances cost and bring: throughput and processor time per message of 1, 2 and 3 instances.

    .venv/bin/python bench/instances.py
    .venv/bin/python bench/instances.py --engine mariadb --rounds 3 --only 1,3-far
    .venv/bin/python bench/instances.py --markdown docs/benchmarks.md        # four minutes

A full durable single chat per message (sent, committed, ACK saved, pushed, delivered ACK, cursor, receipt) on a
server database. "alone" is one instance without Redis. With several instances there is "near", where all users talk
to a user on the same instance and nothing crosses the bus, and "far", where every receiver is on another one than
the sender and each message crosses it twice, as a push and as a receipt. What "far" costs more than "near" is the
bus. "near" and one instance differ by what each instance commits at once ("batch"): the more of them share the same
load, the smaller the batches. "full" gives every instance the whole load, so that batches stay as large as with one.

All arrangements run at the same time and are put under load in turns, so that whatever else the machine does hits
them alike; figures are medians. The generator shares the machine with them, so on two cores throughput cannot grow
with the number of instances: what counts is the processor time per message. The event loops are sampled as by
`bench/stages.py`, which shows the share of the bus.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import contextlib
import json
import os
import random
import statistics
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

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
from nexo.cli import main as nexo
from page import replace_part
from stages import sample_into

BODY = "x" * 100
COUNTED = {
    "sends": "nexo_batch_size_sum",
    "batches": "nexo_batch_size_count",
    "calls": "nexo_redis_seconds_count",
    "frames": 'nexo_bus_frames_total{direction="out"}',
}
OPEN = {"limits__acks_per_s": 0, "limits__inflight_sends": 0, "limits__connections_per_user": 0}


class Arrangement(NamedTuple):
    instances: int  # 0 stands for one without Redis
    distance: int = 0  # how many instances further the receiver is
    share: bool = True  # of the load: otherwise each has all of it


ARRANGEMENTS = {
    "alone": Arrangement(0),
    "1": Arrangement(1),
    "2-near": Arrangement(2),
    "2-far": Arrangement(2, 1),
    "3-near": Arrangement(3),
    "3-far": Arrangement(3, 1),
    "3-full-near": Arrangement(3, 0, share=False),
    "3-full-far": Arrangement(3, 1, share=False),
}
# Of the samples of an event loop: beginnings of `module:function`, the first that fits.
BUS = "the bus: look up, publish, hear"
PARTS = {
    BUS: ("bus.", "cluster.publisher", "cluster.messages", "cluster.listener", "cluster.seq_reorder"),
    "commit: queue, batch, database client": ("store.",),
    "connections, protocol, pushes, receipts": ("gateway.", "wire.", "service.", "core.", "ids", "metrics."),
    "event loop and the rest": ("",),
}


class Site:
    """Instances that share a database and Redis, and what was measured of them."""

    def __init__(self, instances: list[ServerProcess], folders: dict[str, Path], samples: Path) -> None:
        self.instances = instances
        self._folders = folders
        self._samples = samples
        self.tokens: dict[str, str] = {}

    def sign_up(self, names: list[str]) -> None:
        new = [name for name in names if name not in self.tokens]
        self.tokens |= register(self.instances[0].port, new)

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

    def samples(self) -> dict[int, collections.Counter[str]]:
        """By second. The instances are stopped for it."""
        found: dict[int, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        for instance in self.instances:
            instance.stop()
        for path in self._samples.parent.glob(f"{self._samples.name}.*"):
            for second, counted in json.loads(path.read_text()).items():
                found[int(second)].update(counted)
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
    samples = folder / "samples"
    sampled = [sys.executable, __file__, "--serve", str(samples)]
    with migrated_database(engine, folder) as url, contextlib.ExitStack() as stack:
        folders = {"database": database.directory}
        redis_url = ""
        if count:
            redis = stack.enter_context(Redis("appendonly no"))
            folders["Redis"] = redis.directory
            redis_url = redis.url
        cluster = Cluster(url, redis_url, count or 1, store__pool_size=8, wrapper=sampled, **OPEN)
        yield Site(stack.enter_context(cluster).instances, folders, samples)


class Measured(NamedTuple):
    began: float
    ended: float
    messages: int
    figures: dict[str, float]


async def measure(here: Site, pairs: int, window: int, seconds: float, distance: int) -> Measured:
    ports = [instance.port for instance in here.instances]
    await asyncio.to_thread(here.sign_up, [f"{side}{i}" for i in range(pairs) for side in "sr"])
    source = random.Random()
    clients: list[Client] = []
    sent = saved = received = 0
    is_over = False

    def send(client: Client, to: str) -> None:
        nonlocal sent
        sent += 1
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
        clients.append(await connect(ports[(i + distance) % len(ports)], here.tokens[f"r{i}"], receiver))
        clients.append(await connect(ports[i % len(ports)], here.tokens[f"s{i}"], sender(f"r{i}")))
    for i in range(pairs):
        for _ in range(window):
            send(clients[2 * i + 1], f"r{i}")
    await asyncio.sleep(1)
    counts = await asyncio.to_thread(here.counts)
    before, cpu, began = saved, here.cpu_s(), time.time()
    await asyncio.sleep(seconds)
    count, ended, after = saved - before, time.time(), here.cpu_s()
    counted = {name: value - counts[name] for name, value in (await asyncio.to_thread(here.counts)).items()}
    is_over = True
    deadline = time.monotonic() + 20
    while received < sent and time.monotonic() < deadline:
        await asyncio.sleep(0.05)
    assert received == saved == sent, f"{sent} sent, {saved} saved, {received} received"
    await asyncio.sleep(0.2)  # the last acknowledgements and receipts
    for client in clients:
        client.cut()
    figures = {
        "messages/s": count / (ended - began),
        "batch": counted["sends"] / max(1, counted["batches"]),
        "messages/frame": 2 * counted["sends"] / counted["frames"] if counted["frames"] else 0,
        "round trips to Redis/batch": counted["calls"] / max(1, counted["batches"]),
        **{name: (after[name] - cpu[name]) / max(1, count) * 1e6 for name in after},
    }
    return Measured(began, ended, count, figures)


def run(names: list[str], options: argparse.Namespace) -> dict[str, dict[str, float]]:
    wanted = {name: ARRANGEMENTS[name] for name in names}
    found: dict[str, list[Measured]] = {name: [] for name in names}
    with contextlib.ExitStack() as stack:
        sites = {
            n: stack.enter_context(site(options.engine, n))
            for n in sorted({item.instances for item in wanted.values()})
        }
        for number in range(options.rounds):
            for name, (instances, distance, share) in wanted.items():
                load = options.pairs * (1 if share else instances)
                found[name].append(
                    uvloop.run(measure(sites[instances], load, options.window, options.seconds, distance))
                )
                figures = ", ".join(f"{key} {value:,.0f}" for key, value in found[name][-1].figures.items())
                sys.stderr.write(f"round {number + 1}, {name}: {figures}\n")
        samples = {n: one.samples() for n, one in sites.items()}
    return {name: _summary(name, found[name], samples[wanted[name].instances], options.functions) for name in names}


def _summary(
    title: str, rounds: list[Measured], samples: dict[int, collections.Counter[str]], functions: int
) -> dict[str, float]:
    figures = {key: statistics.median(one.figures[key] for one in rounds) for key in rounds[0].figures}
    cost = figures.pop("nexo")
    sampled: collections.Counter[str] = collections.Counter()
    for one in rounds:
        for second in range(int(one.began) + 1, int(one.ended)):
            sampled.update(samples.get(second, {}))
    shares = dict.fromkeys(PARTS, 0.0)
    for name, count in sampled.items():
        owner = name.split(" ")[1]
        shares[next(part for part, starts in PARTS.items() if owner.startswith(starts))] += count / sampled.total()
    for name, count in sampled.most_common(functions):
        sys.stderr.write(f"{title:12} {count / sampled.total() * cost:6.2f}  {name}\n")
    database, redis = figures.pop("database"), figures.pop("Redis", 0.0)
    return (
        figures
        | {part: cost * share for part, share in shares.items()}
        | {"**all instances**": cost, "database": database, "Redis": redis, "**all of it**": cost + database + redis}
    )


def table(engine: str, found: dict[str, dict[str, float]], load: str) -> str:
    names = list(found)
    lines = [
        f"{engine}, {load}. µs of processor time per message:",
        "",
        "| |" + "".join(f" {name.replace('-', ', ').replace('full', 'load × 3')} |" for name in names),
        "|---|" + "--:|" * len(names),
    ]
    for key in next(iter(found.values())):
        cells = (found[name][key] for name in names)
        whole = key in ("messages/s", "batch", "messages/frame")
        lines.append(f"| {key} |" + "".join(f" {cell:,.{0 if whole else 1}f} |" if cell else " – |" for cell in cells))
    return "\n".join(lines)


def main() -> None:
    if "--serve" in sys.argv:  # an instance that samples itself: … --serve FILE nexo serve …
        at = sys.argv.index("--serve")
        sample_into(f"{sys.argv[at + 1]}.{os.getpid()}")
        sys.argv = sys.argv[at + 2 :]
        nexo()
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=["mariadb", "postgresql"], default="postgresql")
    parser.add_argument("--only", default=",".join(ARRANGEMENTS), help=f"of {', '.join(ARRANGEMENTS)}")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement")
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--window", type=int, default=8)
    parser.add_argument("--functions", type=int, default=0, help="also the costliest functions of each, so many")
    parser.add_argument("--json", type=Path, help="write what was found to this file, too")
    parser.add_argument("--markdown", type=Path, help="the page whose generated part is to be replaced")
    options = parser.parse_args()
    names = options.only.split(",")
    found = run(names, options)
    load = f"{options.pairs} pairs, window {options.window}, medians of {options.rounds} rounds in turns"
    text = table(options.engine, found, load)
    sys.stdout.write(f"{text}\n")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))
    if options.markdown:
        replace_part(options.markdown, "instances.py", text)


if __name__ == "__main__":
    main()
