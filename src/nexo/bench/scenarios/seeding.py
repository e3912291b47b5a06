"""Messages that are there before anything is measured."""

from __future__ import annotations

import asyncio
from time import perf_counter

from nexo.bench.crowd import Crowd
from nexo.bench.pacing import senders_of
from nexo.bench.person import Failed, Person, Target

WINDOW = 16
STUCK_S = 30.0


async def seed_messages(crowd: Crowd, count: int) -> None:
    """Every sender sends `count` messages to each of its targets, and waits until all of them are saved."""
    left = {id(target): count for _, target in senders_of(crowd.people)}
    total = count * len(left)

    def go_on(person: Person, target: Target) -> None:
        if left[id(target)] > 0:
            left[id(target)] -= 1
            person.send(target, perf_counter())

    for person, target in senders_of(crowd.people):
        person.on_saved = go_on
        for _ in range(WINDOW):
            go_on(person, target)
    counts = crowd.stage.counts
    progressed, saved = perf_counter(), counts.saved
    while any(person.pending for person in crowd.people) or any(left.values()):
        await asyncio.sleep(0.02)
        crowd.tell("preparing", counts.saved / total if total else 1.0)
        if counts.saved != saved:
            progressed, saved = perf_counter(), counts.saved
        elif perf_counter() - progressed > STUCK_S:
            raise Failed(f"only {counts.saved} of {total} messages could be stored before the run")
    for person in crowd.people:
        person.on_saved = None
