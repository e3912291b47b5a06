"""One generator process: reads its plan, gets ready, waits for the start signal, performs, and reports its result.

It talks to its coordinator in lines of JSON, by standard input and output.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import resource
import sys
import time
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import uvloop

from nexo.bench.api_requests import Refused
from nexo.bench.counts import Tick, WorkerReport, WorkerResult
from nexo.bench.crowd import Crowd
from nexo.bench.dialects import make_dialect
from nexo.bench.histogram import merged
from nexo.bench.http import ServerAddress
from nexo.bench.pacing import watch_lag
from nexo.bench.person import ConnectFailed, Stage
from nexo.bench.plan import Plan, Scenario
from nexo.bench.scenarios.act import Act
from nexo.bench.scenarios.asking import Connecting, Pinging, ReadingHistory
from nexo.bench.scenarios.chatting import Chatting
from nexo.bench.scenarios.coming_back import ComingBack

TICK_S = 0.25

ACTS: dict[Scenario, Callable[[Crowd], Act]] = {
    Scenario.single: Chatting,
    Scenario.group: Chatting,
    Scenario.http_send: Chatting,
    Scenario.slow_consumers: Chatting,
    Scenario.mixed: Chatting,
    Scenario.connect: Connecting,
    Scenario.ping: Pinging,
    Scenario.history: ReadingHistory,
    Scenario.reconnect_storm: ComingBack,
    Scenario.offline_catch_up: ComingBack,
}


def send_report(report: WorkerReport) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
    sys.stdout.buffer.flush()


class Worker:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._phase, self._share = "starting", 0.0
        self._over = asyncio.Event()
        self.stage = Stage(plan, make_dialect(plan.dialect), [ServerAddress(url) for url in plan.urls])
        self.crowd = Crowd(self.stage, self._report_progress)
        self.act = ACTS[plan.scenario](self.crowd)
        self.cpu_s = self.wall_s = 0.0
        self.failures: list[str] = []

    def _report_progress(self, phase: str, share: float) -> None:
        self._phase, self._share = phase, share

    def _note_failure(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Whatever fails in a callback: figures that were taken with it do not count."""
        error = context.get("exception")
        if len(self.failures) < 5:
            self.failures.append(f"the generator failed: {context['message']}: {error!r}")
            if error is not None:
                traceback.print_exception(error)

    async def run(self, wait_for_go: Callable[[], Awaitable[float]]) -> None:
        asyncio.get_running_loop().set_exception_handler(self._note_failure)
        ticking = asyncio.create_task(self._tick())
        try:
            await self.act.prepare()
            _calm_collector()
            self._report_progress("ready", 1.0)
            send_report(WorkerReport(ready=True))
            start = await wait_for_go()
            try:
                await self._perform(start)
                send_report(WorkerReport(measured=True))
                await self.act.finish()
            except* (ConnectFailed, Refused, OSError, EOFError, msgspec.DecodeError) as group:
                self.failures.append(f"the run could not be brought to its end: {_first(group)}")
            send_report(WorkerReport(result=self.result()))
        finally:
            self._over.set()
            ticking.cancel()
            await self.crowd.close()

    async def _perform(self, start: float) -> None:
        plan, recorder = self._plan, self.stage.recorder
        recorder.start = start
        over = asyncio.Event()
        watching = asyncio.create_task(watch_lag(recorder.lag, over)) if not plan.is_open_loop else None
        measuring = asyncio.create_task(self._measure_own_work(start + plan.warmup_s, over))
        self._report_progress("measuring", 0.0)
        try:
            await self.act.perform(start)
        finally:
            over.set()
            await measuring
            if watching is not None:
                await watching

    async def _measure_own_work(self, begin: float, over: asyncio.Event) -> None:
        await asyncio.sleep(max(0.0, begin - time.perf_counter()))
        cpu_s, began = time.process_time(), time.perf_counter()
        await over.wait()
        self.cpu_s, self.wall_s = time.process_time() - cpu_s, time.perf_counter() - began

    async def _tick(self) -> None:
        recorder, counts = self.stage.recorder, self.stage.counts
        while True:
            now = time.perf_counter()
            if self._phase == "measuring" and now > recorder.start:
                whole_s = self._plan.warmup_s + self._plan.seconds
                self._share = min(1.0, (now - recorder.start) / whole_s)
            place = recorder.step_of(now)
            recent = merged(
                steps[max(0, place - 2) : place + 1][i]
                for name, steps in recorder.latencies.items()
                if name in ("saved", "answered")
                for i in range(len(steps[max(0, place - 2) : place + 1]))
            )
            send_report(
                WorkerReport(
                    tick=Tick(
                        self._phase,
                        self._share,
                        sum(person.is_connected for person in self.crowd.people),
                        counts.sent,
                        counts.saved,
                        counts.received,
                        sum(counts.errors.values()) + sum(counts.lost.values()),
                        recent.percentile_us(50) / 1000,
                        recent.percentile_us(99) / 1000,
                    )
                )
            )
            await asyncio.sleep(TICK_S)

    def result(self) -> WorkerResult:
        return WorkerResult(
            self.stage.counts,
            self.crowd.proof,
            self.stage.recorder.intervals(),
            self.stage.recorder.lag.packed(),
            self.cpu_s,
            self.wall_s,
            len(self.crowd.people),
            self.act.figures,
            self.failures,
        )


def _calm_collector() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 1_000, 50)  # short pauses: they would count as the server's


def _allow_many_connections() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _run() -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 26)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(0, "rb", 0))
    plan = msgspec.json.decode(await reader.readline(), type=Plan)

    async def wait_for_go() -> float:
        line = await reader.readline()
        if not line:
            raise ConnectFailed("the coordinator is gone")
        return float(line)

    try:
        await Worker(plan).run(wait_for_go)
    except* (ConnectFailed, Refused, OSError, msgspec.DecodeError) as group:
        send_report(WorkerReport(failure=str(_first(group))))


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def main() -> None:
    _allow_many_connections()
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        uvloop.run(_run())


if __name__ == "__main__":
    main()
