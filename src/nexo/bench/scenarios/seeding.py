"""Messages that are there before anything is measured."""

from __future__ import annotations

import asyncio
from time import perf_counter

from nexo.bench.crowd import Crowd
from nexo.bench.pacing import Sender, senders_of
from nexo.bench.person import ConnectFailed, Person, SendTarget

WINDOW = 8  # of each target
AT_ONCE = 256  # targets: what is under way has to fit into the server's queue
STUCK_S = 30.0


async def seed_messages(crowd: Crowd, count: int) -> None:
    """Every sender sends `count` messages to each of its targets, and waits until all of them are saved."""
    counts = crowd.stage.counts
    seeding = _Seeding(senders_of(crowd.people), count)
    seeding.begin()
    progressed, saved = perf_counter(), counts.saved
    while not seeding.is_done:
        await asyncio.sleep(0.02)
        crowd.report("preparing", counts.saved / seeding.total)
        if counts.refused:
            raise ConnectFailed(f"messages were refused while preparing: {counts.errors}")
        if counts.saved != saved:
            progressed, saved = perf_counter(), counts.saved
        elif perf_counter() - progressed > STUCK_S:
            raise ConnectFailed(f"only {counts.saved} of {seeding.total} messages could be stored before the run")
    for person in crowd.people:
        person.on_saved = None


class _Seeding:
    def __init__(self, senders: list[Sender], count: int) -> None:
        self.total = max(1, count * len(senders))
        self._waiting = iter(senders)
        self._to_send = {id(target): count for _, target in senders}
        self._to_save = dict(self._to_send)
        self._left = len(senders) if count else 0
        for person, _ in senders:
            person.on_saved = self._saved

    @property
    def is_done(self) -> bool:
        return self._left == 0

    def begin(self) -> None:
        for _ in range(AT_ONCE):
            self._begin_next()

    def _begin_next(self) -> None:
        person, target = next(self._waiting, (None, None))
        if person is not None and target is not None:
            for _ in range(WINDOW):
                self._send(person, target)

    def _send(self, person: Person, target: SendTarget) -> None:
        if self._to_send[id(target)] > 0:
            self._to_send[id(target)] -= 1
            person.send(target, perf_counter())

    def _saved(self, person: Person, target: SendTarget) -> None:
        self._to_save[id(target)] -= 1
        if self._to_save[id(target)] == 0:
            self._left -= 1
            self._begin_next()
        else:
            self._send(person, target)
