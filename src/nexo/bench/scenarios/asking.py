"""Connections that ask and are answered: connect, ping and history."""

from __future__ import annotations

import asyncio
import random
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from time import perf_counter

from nexo.bench.alarm import Alarm
from nexo.bench.api_requests import few_at_a_time
from nexo.bench.crowd import Crowd
from nexo.bench.frame import Frame
from nexo.bench.person import ConnectFailed, Person
from nexo.bench.scenarios.seeding import seed_messages
from nexo.bench.schedule import Schedule

PAGE = 50
PING = b'{"type":"PING","extra":"' + b"x" * 160 + b'"}'
ANSWER_TIMEOUT_S = 10.0
CONNECTING_AT_ONCE = 64


class Asking(ABC):
    """Questions on many connections, answered in order on each: closed loop by window, open loop by rate."""

    has_histories = False

    def __init__(self, crowd: Crowd) -> None:
        self.crowd = crowd
        self.figures: dict[str, float] = {}
        self.stage = crowd.stage
        self.answered = self.stage.recorder.metric("answered")
        self._waiting: dict[Person, deque[tuple[float, int]]] = {}  # when they were due, and what was asked

    async def prepare(self) -> None:
        await self.crowd.sign_up()
        await self.crowd.connect(self.crowd.people)

    @abstractmethod
    def ask(self, person: Person) -> int:
        """Put one question on the wire; returns what its answer is known by."""

    async def perform(self, start: float) -> None:
        plan = self.stage.plan
        seconds = plan.warmup_s + plan.seconds
        self._waiting = {person: deque() for person in self.crowd.people}
        self.stage.running = True
        await asyncio.sleep(max(0.0, start - perf_counter()))
        if plan.is_open_loop:
            await self._on_schedule(Schedule(plan.rate, seconds, plan.ramp_s, plan.burst, plan.poisson), start)
        else:
            for person in self.crowd.people:
                for _ in range(plan.window):
                    self._next(person, perf_counter())
            await asyncio.sleep(max(0.0, start + seconds - perf_counter()))
        self.stage.running = False

    async def _on_schedule(self, schedule: Schedule, start: float) -> None:
        offsets = schedule.offsets()
        due = start + next(offsets, float("inf"))
        woken = asyncio.Event()
        alarm = Alarm(self.stage.loop, woken.set)
        place = 0
        try:
            while due != float("inf"):
                alarm.set(due)
                await woken.wait()
                woken.clear()
                while due <= (now := perf_counter()):
                    self.stage.recorder.lag.record(int((now - due) * 1e6))
                    self._next(self.crowd.people[place % len(self.crowd.people)], due)
                    place += 1
                    due = start + next(offsets, float("inf"))
        finally:
            alarm.close()

    def _next(self, person: Person, due: float) -> None:
        recorder = self.stage.recorder
        recorder.sent[recorder.step_of(due)] += 1
        self.stage.counts.asked += 1
        self._waiting[person].append((due, self.ask(person)))

    def take_answer(self, person: Person, known_by: int = 0) -> None:
        """Questions of one connection are worked on at the same time: answers may come in another order."""
        waiting = self._waiting.get(person, deque())
        found = next((one for one in waiting if one[1] == known_by), None)
        if found is None:
            self.stage.counts.foreign += 1
            return
        waiting.remove(found)
        now = perf_counter()
        recorder = self.stage.recorder
        recorder.record(self.answered, found[0], now)
        recorder.answered[recorder.step_of(now)] += 1
        self.stage.counts.answered += 1
        if self.stage.running and not self.stage.plan.is_open_loop:
            self._next(person, now)

    async def finish(self) -> None:
        deadline = perf_counter() + ANSWER_TIMEOUT_S
        while any(self._waiting.values()) and perf_counter() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


class Pinging(Asking):
    async def prepare(self) -> None:
        await super().prepare()
        for person in self.crowd.people:
            person.on_pong = self.take_answer

    def ask(self, person: Person) -> int:
        if person.connection is not None:
            person.connection.send(PING)
        return 0


class ReadingHistory(Asking):
    """Pages of fifty messages from random places of conversations with `missed` messages."""

    has_histories = True

    def __init__(self, crowd: Crowd) -> None:
        super().__init__(crowd)
        self._random = random.Random(self.stage.plan.seed)

    async def prepare(self) -> None:
        await super().prepare()
        await seed_messages(self.crowd, self.stage.plan.missed)
        await self.crowd.drain()
        for person in self.crowd.people:
            person.on_page = self._page

    def ask(self, person: Person) -> int:
        track = next(iter(person.tracks.values()))
        begin = self._random.randint(1, max(1, track.contiguous - PAGE + 1))
        if person.connection is not None:
            person.connection.send(self.stage.dialect.pull(track.conversation_id, begin, PAGE))
        return begin

    def _page(self, person: Person, frame: Frame) -> None:
        head = next(iter(person.tracks.values())).contiguous
        seqs = [message.msg_seq for message in frame.messages]
        begin = seqs[0] if seqs else 0
        if seqs != list(range(begin, begin + len(seqs))) or (not frame.has_more and seqs[-1:] != [head]):
            self.stage.counts.missing += 1
        self.take_answer(person, begin)

    async def finish(self) -> None:
        await super().finish()
        self.crowd.count_up()
        await self.crowd.prove()


class Connecting:
    """Opens the wanted number of connections, at a rate or as fast as the server accepts them, and keeps them open."""

    has_histories = False

    def __init__(self, crowd: Crowd) -> None:
        self.crowd = crowd
        self.figures: dict[str, float] = {}
        self._stage = crowd.stage
        self._signed_in = self._stage.recorder.metric("signed in")

    async def prepare(self) -> None:
        await self.crowd.sign_up()
        # what the first connections cost once is not what each one costs
        self._first = self.crowd.people[: max(1, len(self.crowd.people) // 20)]
        await self.crowd.connect(self._first)

    async def perform(self, start: float) -> None:
        plan = self._stage.plan
        rest = self.crowd.people[len(self._first) :]
        self._stage.recorder.start = start
        await asyncio.sleep(max(0.0, start - perf_counter()))
        if plan.is_open_loop:
            offsets = Schedule(plan.rate, len(rest) / plan.rate * 2 + plan.ramp_s, plan.ramp_s, plan.burst).offsets()
            for person, offset in zip(rest, offsets, strict=False):
                await asyncio.sleep(max(0.0, start + offset - perf_counter()))
                self._stage.spawn(self._connect(person, start + offset))
            await asyncio.gather(*self._stage.tasks)
        else:
            # the event loop may ring a moment early, and what was due before the start is not recorded
            await few_at_a_time(
                lambda person: self._connect(person, max(start, perf_counter())), rest, CONNECTING_AT_ONCE
            )
        self.figures["connections made"] = len(rest)
        self.figures["connecting took s"] = perf_counter() - start

    async def _connect(self, person: Person, due: float) -> None:
        try:
            await person.connect()
        except ConnectFailed as error:
            lost = self._stage.counts.lost
            reason = str(error).partition(" ")[2]
            lost[reason] = lost.get(reason, 0) + 1
            return
        self._stage.recorder.record(self._signed_in, due, perf_counter())

    async def finish(self) -> None:
        """Checks that every connection is still open and answers."""
        if self._stage.plan.dialect == "envelope":
            await ping_everybody(self.crowd.people, self._stage.counts.lost)


async def ping_everybody(people: Sequence[Person], lost: dict[str, int]) -> None:
    silent = set(people)
    heard: Callable[[Person], None] = silent.discard
    for person in people:
        person.on_pong = heard
        if person.connection is not None and person.connection.open:
            person.connection.send(PING)
    deadline = perf_counter() + ANSWER_TIMEOUT_S
    while silent and perf_counter() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    if silent:
        lost["no answer at the end"] = len(silent)
