"""Clients that were offline and reconnect: all at once (reconnect-storm), or one after the other (offline-catch-up)."""

from __future__ import annotations

import asyncio
from time import perf_counter

from nexo.bench.crowd import Crowd
from nexo.bench.person import ConnectFailed, Person
from nexo.bench.plan import Scenario
from nexo.bench.scenarios.seeding import seed_messages

GIVE_UP_S = 120.0


class ComingBack:
    """Each of them missed messages. Measured is the time until a client holds every one of them."""

    has_histories = True

    def __init__(self, crowd: Crowd) -> None:
        self.crowd = crowd
        self.figures: dict[str, float] = {}
        self._stage = crowd.stage
        self._caught_up = self._stage.recorder.metric("caught up")
        self._signed_in = self._stage.recorder.metric("signed in")
        self._begun: dict[Person, float] = {}
        self._waiting: set[Person] = set()
        self._changed = asyncio.Event()

    async def prepare(self) -> None:
        await self.crowd.sign_up()
        senders = [person for person in self.crowd.people if person.targets]
        self._clients = [person for person in self.crowd.people if not person.targets]
        await self.crowd.connect(senders)
        await seed_messages(self.crowd, self._stage.plan.missed)
        self._stage.settled = False
        for sender in senders:
            sender.leave()
        self._stage.settled = True
        await asyncio.sleep(0.3)  # the server settles, too

    async def perform(self, start: float) -> None:
        self._waiting = set(self._clients)
        for person in self._clients:
            person.on_caught_up = self._note
        await asyncio.sleep(max(0.0, start - perf_counter()))
        began = max(start, perf_counter())
        if self._stage.plan.scenario is Scenario.reconnect_storm:
            for person in self._clients:
                self._stage.spawn(self._come_back(person, began))
            await self._everybody(set(self._clients), began + GIVE_UP_S)
        else:
            for person in self._clients:
                await self._come_back(person, perf_counter())
                await self._everybody({person}, perf_counter() + GIVE_UP_S)
        self.figures["clients"] = len(self._clients)
        self.figures["all caught up after s"] = perf_counter() - began

    async def _come_back(self, person: Person, due: float) -> None:
        self._begun[person] = due
        try:
            await person.connect()
        except ConnectFailed as error:
            lost = self._stage.counts.lost
            reason = str(error).partition(" ")[2]
            lost[reason] = lost.get(reason, 0) + 1
            self._waiting.discard(person)
            self._changed.set()
        else:
            self._stage.recorder.record(self._signed_in, due, perf_counter())
            self._note(person)

    def _note(self, person: Person) -> None:
        missed = self._stage.plan.missed
        if person not in self._waiting or not all(t.contiguous - t.base >= missed for t in person.tracks.values()):
            return
        self._waiting.discard(person)
        self._stage.recorder.record(self._caught_up, self._begun[person], perf_counter())
        self._changed.set()

    async def _everybody(self, wanted: set[Person], deadline: float) -> None:
        while self._waiting & wanted and perf_counter() < deadline:
            self._changed.clear()
            try:
                async with asyncio.timeout(max(0.01, min(1.0, deadline - perf_counter()))):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def finish(self) -> None:
        await self.crowd.drain()
        self.crowd.count_up()
        await self.crowd.prove()
