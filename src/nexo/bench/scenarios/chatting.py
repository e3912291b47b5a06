"""Pairs and groups who chat, open or closed loop; some of them may flap, read slowly or not at all."""

from __future__ import annotations

import asyncio
import random
from time import perf_counter

from nexo.bench.crowd import Crowd
from nexo.bench.pacing import ClosedLoop, OpenLoop, senders_of
from nexo.bench.person import Person
from nexo.bench.plan import Scenario
from nexo.bench.scenarios.seeding import seed_messages
from nexo.bench.schedule import Schedule

HOUSEKEEPING_S = 0.1


class Chatting:
    """The scenarios single, group, slow-consumers and mixed."""

    has_histories = True

    def __init__(self, crowd: Crowd) -> None:
        self.crowd = crowd
        self.figures: dict[str, float] = {}
        self._stage = crowd.stage
        self._over = asyncio.Event()
        self._slow: list[Person] = []
        self._stalled: list[Person] = []
        self._flapping: list[Person] = []
        self._random = random.Random(self._stage.plan.seed)
        self._reading = False
        self._pages = self._stage.recorder.metric("history page")

    async def prepare(self) -> None:
        await self.crowd.sign_up()
        self._choose_odd_ones()
        await self.crowd.connect(self.crowd.people)
        preload = self._stage.plan.preload
        if preload:
            await seed_messages(self.crowd, -(-preload // len(senders_of(self.crowd.people))))
            await self.crowd.drain()

    def _choose_odd_ones(self) -> None:
        """Chosen evenly among the receivers; a sender is never slow, or the load would be less than planned."""
        plan = self._stage.plan
        receivers = [person for person in self.crowd.people if not person.targets]
        for i, person in enumerate(receivers):
            place = i * 0.6180339887 % 1  # evenly spread, whatever the share
            if place < plan.stalled_share:
                self._stalled.append(person)
            elif place < plan.stalled_share + plan.slow_share:
                self._slow.append(person)
            elif place < plan.stalled_share + plan.slow_share + plan.flap_share:
                self._flapping.append(person)
        for person in self._stalled + self._slow:
            person.slow = True
            person.latencies = self._stage.received_slowly
        for person in self._flapping:
            person.flapping = True
        if plan.flap_share:
            senders = [person for person in self.crowd.people if person.targets]
            for i, person in enumerate(senders):
                if i * 0.6180339887 % 1 < plan.flap_share:
                    person.flapping = True
                    self._flapping.append(person)

    async def perform(self, start: float) -> None:
        plan = self._stage.plan
        seconds = plan.warmup_s + plan.seconds
        senders = senders_of(self.crowd.people)
        loop: OpenLoop | ClosedLoop
        if plan.is_open_loop:
            schedule = Schedule(plan.rate, seconds, plan.ramp_s, plan.burst, plan.poisson, plan.seed)
            loop = OpenLoop(self._stage, senders, schedule)
        else:
            loop = ClosedLoop(self._stage, senders, plan.window, plan.ramp_s, seconds)
        keeping = asyncio.create_task(self._keep_house(start))
        await loop.run(start)
        await asyncio.sleep(max(0.0, start + seconds - perf_counter()))
        self._over.set()
        await keeping

    async def _keep_house(self, start: float) -> None:
        """Ten times a second: coalesced acknowledgements, slow readers, cuts."""
        plan = self._stage.plan
        await asyncio.sleep(max(0.0, start - perf_counter()))
        for person in self._stalled:
            if person.connection is not None:
                person.connection.transport.pause_reading()
        portion = int(plan.slow_bytes_per_s * HOUSEKEEPING_S)
        cuts = 0.0
        while not self._over.is_set():
            await asyncio.sleep(HOUSEKEEPING_S)
            self._stage.flush_acknowledgements()
            for person in self._slow:
                self._let_read(person, portion)
            if plan.scenario is Scenario.mixed and not self._reading:
                self._stage.spawn(self._read_page())
            cuts += len(self._flapping) * HOUSEKEEPING_S / plan.flap_every_s
            while cuts >= 1 and self._flapping:
                cuts -= 1
                self._cut_next()

    async def _read_page(self) -> None:
        """Reads pages of history over HTTP while other clients chat; one at a time."""
        person = self._random.choice(self.crowd.people)
        track = next(iter(person.tracks.values()))
        if track.contiguous <= track.base:
            return
        self._reading = True
        began = perf_counter()
        try:
            await self.crowd.caller.call(
                "GET", "/msg/history", person.token, conversation_id=track.conversation_id, limit=50
            )
            self._stage.recorder.record(self._pages, began, perf_counter())
        finally:
            self._reading = False

    def _let_read(self, person: Person, portion: int) -> None:
        """One portion per turn: reading is switched off as soon as more than its portion was read."""
        connection = person.connection
        if connection is None or not connection.open:
            return
        connection.allowed_bytes += portion
        if connection.read_bytes > connection.allowed_bytes:
            connection.transport.pause_reading()
        else:
            connection.allowed_bytes = connection.read_bytes
            connection.transport.resume_reading()

    def _cut_next(self) -> None:
        person = self._flapping.pop(0)
        self._flapping.append(person)
        if person.online and person.connection is not None:
            person.connection.cut()

    async def finish(self) -> None:
        for person in self._stalled + self._slow:
            if person.connection is not None and person.connection.open:
                person.connection.transport.resume_reading()
        began = perf_counter()
        await self.crowd.drain()
        if self._slow or self._stalled:
            self.figures["slow readers"] = len(self._slow)
            self.figures["stalled readers"] = len(self._stalled)
            self.figures["all caught up after s"] = perf_counter() - began
        if self._flapping:
            self.figures["flapping connections"] = len(self._flapping)
        self.crowd.count_up()
        await self.crowd.prove()
