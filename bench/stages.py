"""Where the processor time of a message goes: microseconds per stage, from receiving it to its receipt.

    .venv/bin/python bench/stages.py
    .venv/bin/python bench/stages.py --window 1 --functions 30
    .venv/bin/python bench/stages.py --markdown docs/benchmarks.md

The server runs under the load of row G4 and is interrupted after every millisecond of CPU time of its event loop; the
innermost function of Nexo at that moment names the stage. What C code does (parser, sockets, JSON) belongs to the
function that called it. The kernel distinguishes threads. Sampling adds one or two per cent.
"""

from __future__ import annotations

import argparse
import asyncio
import atexit
import collections
import ctypes
import json
import os
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from nexo.bench.counts import Tick
from nexo.bench.plan import Plan, Scenario, completed
from nexo.bench.result import ServerFacts
from nexo.bench.run import TargetServer, measure
from nexo.bench.server import own_server
from nexo.bench.view import describe
from nexo.cli import main as nexo
from page import replace_part

EVERY_NS = 1_000_000

# Work for others: it belongs to its caller.
SHARED = ("core.", "ids", "metrics.", "errors")
# Only the client library of Redis uses these.
STREAMS = ("asyncio.streams", "redis.")
# The first that fits names the stage: beginnings of `module:function`, below nexo.
CONNECTION = "gateway.connection:"
STAGES: list[tuple[str, tuple[str, ...]]] = [
    (
        "receive: socket, WebSocket, dispatch",
        ("transport.picows_endpoint", "transport.implementations",
         "transport.endpoint:message", "transport.endpoint:_tell",
         *(CONNECTION + name for name in ("text", "read_done", "seen", "_take", "_handle"))),
    ),
    ("HTTP: route, check, answer", ("api.", "transport.http_connection")),
    (
        "encode ACK, push and receipt",
        ("wire.envelope.answers", "wire.envelope.codec:encode",
         "wire.framing"),
    ),
    ("decode a frame", ("wire.",)),
    (
        "check the send, make its draft",
        ("service.", "gateway.gateway:draft", "gateway.gateway:charge_send", "gateway.limits",
         *(CONNECTION + name for name in ("_send", "_refusal"))),
    ),
    (
        "queue it, hand batches to the writer and back",
        ("store.committer", "store.engines.sqlite", "store.engine", "store.stores:submit"),
    ),
    (
        "acknowledge",
        ("gateway.answer_order", "gateway.gateway:message_saved",
         *(CONNECTION + name for name in ("_answer", "answered", "_saved", "_settle"))),
    ),
    (
        "push: who is there",
        ("delivery.fanout", "delivery.audiences", "delivery.hub", "cluster.publisher", "bus.", CONNECTION + "push"),
    ),
    (
        "delivered ACK, cursor, receipt",
        ("delivery.receipts", "store.cursors", "store.stores:advance", "delivery.presence", CONNECTION + "_ack"),
    ),
    ("write to the sockets", ("transport.endpoint", *(CONNECTION + name for name in ("flush", "_write", "_flush")))),
    ("everything else", ("",)),
]  # fmt: skip


# -- inside the server --------------------------------------------------------------------------------------------


class _Event(ctypes.Structure):
    """A `sigevent` that sends its signal to one thread."""

    _fields_ = (("value", ctypes.c_void_p), ("signal", ctypes.c_int), ("notify", ctypes.c_int),
                ("thread", ctypes.c_int), ("rest", ctypes.c_char * 44))  # fmt: skip


def sample_into(path: str) -> None:
    """Count, second by second, where the main thread is after each millisecond of its CPU time."""
    seconds: dict[int, collections.Counter[str]] = {}

    def note(signum: int, frame: FrameType | None) -> None:
        inner = ""
        while frame is not None:
            module = frame.f_globals.get("__name__", "")
            if module.startswith(STREAMS):
                module = f"nexo.bus.{module}"
            if module.startswith("nexo."):
                name = f"{module[5:]}:{frame.f_code.co_name}"
                inner = inner or name
                if not name.startswith(SHARED):
                    break
            frame = frame.f_back
        found = f"{inner} {name if frame is not None else ''}"
        seconds.setdefault(int(time.time()), collections.Counter())[found] += 1

    signal.signal(signal.SIGPROF, note)
    libc = ctypes.CDLL(None, use_errno=True)
    timer = ctypes.c_void_p()
    event = _Event(None, signal.SIGPROF, 4, os.getpid(), b"")  # SIGEV_THREAD_ID
    every = (ctypes.c_long * 4)(0, EVERY_NS, 0, EVERY_NS)
    if libc.timer_create(3, ctypes.byref(event), ctypes.byref(timer)) or libc.timer_settime(timer, 0, every, None):
        raise OSError(ctypes.get_errno(), "no timer on the CPU time of a thread")
    atexit.register(lambda: Path(path).write_text(json.dumps(seconds)))


# -- outside ------------------------------------------------------------------------------------------------------


class Threads:
    """CPU time of the server's threads at the beginning and the end of the measured time."""

    def __init__(self, pid: int, plan: Plan) -> None:
        self._pid = pid
        self._plan = plan
        self.began = self.ended = 0.0
        self._before: dict[int, float] = {}
        self._after: dict[int, float] = {}

    def watch(self, ticks: Sequence[Tick]) -> None:
        now = time.time()
        if not self.began and all(tick.phase == "measuring" and tick.saved for tick in ticks):
            self.began, self._before = now, self._read()
        elif self.began and now < self.began + self._plan.seconds:
            self.ended, self._after = now, self._read()

    def _read(self) -> dict[int, float]:
        tasks = Path(f"/proc/{self._pid}/task").iterdir()
        return {int(task.name): int((task / "schedstat").read_text().split()[0]) / 1000 for task in tasks}

    @property
    def used_us(self) -> tuple[float, float]:
        """Of the event loop, and of all other threads."""
        used = {thread: after - self._before.get(thread, 0.0) for thread, after in self._after.items()}
        main = used.pop(self._pid)
        return main, sum(used.values())


def stage_of(found: str) -> str:
    """Of a sample: the innermost function, and the innermost that is not shared."""
    owner = found.split(" ")[1]
    return next(stage for stage, beginnings in STAGES if owner.startswith(beginnings))


def run(scenario: Scenario, pairs: int, window: int, seconds: float) -> dict[str, Any]:
    cores = sorted(os.sched_getaffinity(0))
    plan = completed(
        Plan(scenario=scenario, pairs=pairs, window=window, seconds=seconds, warmup_s=1.0,
             seed=secrets.randbits(40), run_id=secrets.token_hex(3))
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/samples.json"
        command = (sys.executable, __file__, "--serve", out, "--")
        with own_server(cores=set(cores[:1]), program=command) as server:
            plan.urls = [server.url]
            threads = Threads(server.pid, plan)
            target = TargetServer(ServerFacts(True, "sqlite", {}), [server.pid])
            result = asyncio.run(measure(plan, target, 1, threads.watch, set(cores[1:]) or None))
        if not result.verdict.ok:
            raise SystemExit(f"not accounted for: {result.verdict.reasons}")
        seconds_of = json.loads(Path(out).read_text())
    samples: collections.Counter[str] = collections.Counter()
    for second, counted in seconds_of.items():
        if threads.began < int(second) < threads.ended - 1:
            samples.update(counted)
    loop_us, others_us = threads.used_us
    messages = result.saved_per_s * (threads.ended - threads.began)
    total = sum(samples.values())
    functions = {name: count / total * loop_us / messages for name, count in samples.most_common()}
    stages = dict.fromkeys((stage for stage, _ in STAGES), 0.0)
    for name, cost in functions.items():
        stages[stage_of(name)] += cost
    return {
        "load": describe(plan),
        "saved_per_s": result.saved_per_s,
        "per_cpu_s": result.per_cpu_s,
        "writer_us": others_us / messages,
        "loop_us": loop_us / messages,
        "stages_us": stages,
        "functions_us": functions,
    }


def markdown(found: dict[str, Any]) -> str:
    rows = [("write: one transaction per batch, in the writer thread", found["writer_us"]), *found["stages_us"].items()]
    whole = found["writer_us"] + found["loop_us"]
    rows = [(name, cost) for name, cost in rows if cost >= 0.05]
    lines = [
        f"{found['load']}: {found['saved_per_s']:,.0f} messages/s while it was sampled, one core.",
        "",
        "| stage | µs per message | share |",
        "|---|--:|--:|",
        *(f"| {name} | {cost:.1f} | {cost / whole:.0%} |" for name, cost in rows),
        f"| **all of it** | **{whole:.1f}** | |",
    ]
    return "\n".join(lines)


def main() -> None:
    if "--serve" in sys.argv:
        at = sys.argv.index("--serve")
        sample_into(sys.argv[at + 1])
        sys.argv = ["nexo", *sys.argv[at + 3 :]]
        nexo()
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenario", type=Scenario, choices=(Scenario.single, Scenario.http_send), default="single")
    parser.add_argument("--pairs", type=int, default=0, help="the scenario's")
    parser.add_argument("--window", type=int, default=0, help="the scenario's")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--functions", type=int, default=0, help="also the costliest functions, so many")
    parser.add_argument("--markdown", type=Path, help="the page whose generated part is to be replaced")
    options = parser.parse_args()
    found = run(options.scenario, options.pairs, options.window, options.seconds)
    table = markdown(found)
    sys.stdout.write(f"{table}\n")
    for name, cost in list(found["functions_us"].items())[: options.functions]:
        sys.stdout.write(f"{cost:7.2f}  {name.split(' ')[0]:50}  {stage_of(name)}\n")
    if options.markdown:
        replace_part(options.markdown, "stages.py", table)


if __name__ == "__main__":
    main()
