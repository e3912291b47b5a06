"""One run: generator processes are started, begin at the same moment, are watched, and their results are put
together."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from time import perf_counter

import msgspec

from nexo.bench.counts import Tick, WorkerReport, WorkerResult
from nexo.bench.plan import UNTIMED, Plan, Scenario, divided
from nexo.bench.processes import Usage, usage_of
from nexo.bench.result import Result, ServerFacts, assemble
from nexo.bench.watching import LONG_S, Watch

START_DELAY_S = 0.3
HISTORYLESS = (Scenario.connect, Scenario.ping)
_decode = msgspec.json.Decoder(WorkerReport).decode

Watcher = Callable[[Sequence[Tick]], None]


class GeneratorFailed(Exception):
    """A generator process failed; the text states why."""


class Generator:
    """One generator process, seen from outside."""

    def __init__(self, plan: Plan, cores: set[int] | None) -> None:
        self._plan = plan
        self._cores = cores
        self.tick = Tick("starting")
        self.ready = asyncio.Event()
        self.measured = asyncio.Event()
        self.result: WorkerResult | None = None
        self.failure = ""

    async def run(self) -> None:
        cores = self._cores
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "nexo.bench.worker",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=1 << 28,
            preexec_fn=None if cores is None else lambda: os.sched_setaffinity(0, cores),
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(msgspec.json.encode(self._plan) + b"\n")
            async for line in self._process.stdout:
                self._take_report(_decode(line))
            code = await self._process.wait()
            if self.result is None and not self.failure:
                self.failure = f"a generator process ended with exit code {code}"
        finally:
            self.ready.set()
            self.measured.set()
            if self._process.returncode is None:
                self._process.kill()
                await self._process.wait()

    def _take_report(self, report: WorkerReport) -> None:
        if report.tick is not None:
            self.tick = report.tick
        if report.ready:
            self.ready.set()
        if report.measured:
            self.measured.set()
        if report.result is not None:
            self.result = report.result
        self.failure = self.failure or report.failure

    def go(self, start: float) -> None:
        if self._process.stdin is not None:
            self._process.stdin.write(b"%r\n" % start)


class TargetServer(msgspec.Struct):
    """The server under test, as far as this process can look into it."""

    server: ServerFacts
    pids: list[int] = []
    data: str = ""  # the folder where it keeps its files, when that is here


async def measure(
    plan: Plan, target: TargetServer, processes: int, watch: Watcher, cores: set[int] | None = None
) -> Result:
    """Runs the plan; raises GeneratorFailed when it could not be carried out at all."""
    generators = [Generator(part, cores) for part in divided(plan, processes)]
    watching = asyncio.create_task(_watch(generators, watch))
    server = Watch(target.pids, target.data, plan.urls, plan.step_s, plan.seconds >= LONG_S)
    try:
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(generator.run()) for generator in generators]
            usage, seconds = await _conduct(plan, target, generators, server)
            for task in running:
                await task
    finally:
        watching.cancel()
    _check_failures(generators)
    failures = [generator.failure for generator in generators if generator.failure]
    return assemble(
        plan,
        [generator.result for generator in generators if generator.result is not None],
        msgspec.structs.replace(target.server),
        seconds=seconds,
        usage=usage,
        has_histories=plan.scenario not in HISTORYLESS,
        failures=failures,
        server_series=server.points,
    )


def _check_failures(generators: Sequence[Generator]) -> None:
    if all(generator.result is None for generator in generators):
        raise GeneratorFailed(next(generator.failure for generator in generators))


async def _conduct(
    plan: Plan, target: TargetServer, generators: Sequence[Generator], server: Watch
) -> tuple[tuple[Usage, Usage] | None, float]:
    """Say when to go, and look at the server at the beginning and the end of the measured time."""
    for generator in generators:
        await generator.ready.wait()
    if any(generator.failure for generator in generators):
        for generator in generators:  # all other generators are not started, and end
            if generator.result is None and generator._process.stdin is not None:
                generator._process.stdin.close()
        return None, 0.0
    start = perf_counter() + START_DELAY_S
    at_rest = usage_of(target.pids)
    for generator in generators:
        generator.go(start)
    watching = asyncio.create_task(server.run(start))
    began = start if plan.scenario in UNTIMED else start + plan.warmup_s
    await asyncio.sleep(max(0.0, began - perf_counter()))
    before, before_at = usage_of(target.pids), perf_counter()
    if plan.scenario in UNTIMED:
        for generator in generators:
            await generator.measured.wait()
    else:
        await asyncio.sleep(max(0.0, began + plan.seconds - perf_counter()))
    after, ended = usage_of(target.pids), perf_counter()
    watching.cancel()
    seconds = ended - before_at if plan.scenario in UNTIMED else plan.seconds
    scale = seconds / (ended - before_at)
    spent = (after.cpu_s - before.cpu_s) * scale
    rest = Usage(0.0, at_rest.rss_bytes)
    return (rest, Usage(spent, after.rss_bytes)) if target.pids else None, seconds


async def _watch(generators: Sequence[Generator], watch: Watcher) -> None:
    while True:
        watch([generator.tick for generator in generators])
        await asyncio.sleep(0.1)
