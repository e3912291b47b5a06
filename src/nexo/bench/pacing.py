"""How sends leave: on a schedule that does not wait for answers (open loop), or one for each answer (closed loop)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from time import perf_counter

from nexo.bench.alarm import Alarm
from nexo.bench.histogram import Histogram
from nexo.bench.person import Person, SendTarget, Stage
from nexo.bench.schedule import Schedule

BATCH = 128  # sends before the event loop gets its turn, when the schedule is behind

Sender = tuple[Person, SendTarget]


def senders_of(people: Sequence[Person]) -> list[Sender]:
    return [(person, target) for person in people for target in person.targets]


class OpenLoop:
    """Sends by the schedule, each sender in turn. `lag` is how much later than due the sends really left: that is
    the generator's own fault, and is part of every latency."""

    def __init__(self, stage: Stage, senders: Sequence[Sender], schedule: Schedule) -> None:
        self._stage = stage
        self._senders = senders
        self._offsets = schedule.offsets()
        self._sent = 0
        self.lag: Histogram = stage.recorder.lag
        self._done: asyncio.Future[None] = stage.loop.create_future()
        self._alarm = Alarm(stage.loop, self._ring)

    async def run(self, start: float) -> None:
        self._start = start
        self._due = self._next(self._offsets)
        self._alarm.set(self._due)
        try:
            await self._done
        finally:
            self._alarm.close()

    def _next(self, offsets: Iterator[float]) -> float:
        return self._start + next(offsets, float("inf"))

    def _ring(self) -> None:
        recorder = self._stage.recorder
        for _ in range(BATCH):
            now = perf_counter()
            due = self._due
            if due > now:
                break
            person, target = self._senders[self._sent % len(self._senders)]
            person.send(target, due)
            recorder.sent[recorder.step_of(due)] += 1
            self.lag.record(int((now - due) * 1e6))
            self._sent += 1
            self._due = self._next(self._offsets)
        if self._due == float("inf"):
            if not self._done.done():
                self._done.set_result(None)
            return
        self._alarm.set(self._due)


class ClosedLoop:
    """Every sender keeps `window` sends under way. With a ramp the senders begin one after the other."""

    def __init__(self, stage: Stage, senders: Sequence[Sender], window: int, ramp_s: float, seconds: float) -> None:
        self._stage = stage
        self._senders = senders
        self._window = window
        self._ramp_s = ramp_s
        self._seconds = seconds

    async def run(self, start: float) -> None:
        stage = self._stage
        stage.running = True
        for person in {person for person, _ in self._senders}:
            person.on_saved = self._send_next
        await asyncio.sleep(max(0.0, start - perf_counter()))
        for i, (person, target) in enumerate(self._senders):
            if self._ramp_s:
                begin = start + self._ramp_s * i / len(self._senders)
                await asyncio.sleep(max(0.0, begin - perf_counter()))
            for _ in range(self._window):
                self._send_next(person, target)
        await asyncio.sleep(max(0.0, start + self._seconds - perf_counter()))
        stage.running = False

    def _send_next(self, person: Person, target: SendTarget) -> None:
        if not self._stage.running:
            return
        now = perf_counter()
        recorder = self._stage.recorder
        recorder.sent[recorder.step_of(now)] += 1
        person.send(target, now)


async def watch_lag(lag: Histogram, until: asyncio.Event, period_s: float = 0.01) -> None:
    """How late this process wakes up: a closed loop has no schedule that would show it."""
    while not until.is_set():
        due = perf_counter() + period_s
        await asyncio.sleep(period_s)
        lag.record(int((perf_counter() - due) * 1e6))
