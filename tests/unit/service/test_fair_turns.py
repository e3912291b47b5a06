"""Turns: one after the other by key, bounded, and given back whatever happens to the caller."""

from __future__ import annotations

import asyncio

import pytest

from harness.waiting import loop_turns
from nexo.errors import NexoError
from nexo.service.fair_turns import FairTurns


class Doors:
    """Callers that hold a turn until they are let go."""

    def __init__(self, turns: FairTurns) -> None:
        self.turns = turns
        self.inside: list[str] = []
        self.order: list[str] = []
        self.exits: list[asyncio.Event] = []

    async def enter(self, key: str) -> None:
        async with self.turns.turn(key):
            leave = asyncio.Event()
            self.order.append(key)
            self.exits.append(leave)
            await leave.wait()

    def start(self, key: str) -> asyncio.Task[None]:
        return asyncio.ensure_future(self.enter(key))

    async def let_all_go(self) -> None:
        await loop_turns(5)
        while self.exits:
            self.exits.pop(0).set()
            await loop_turns(5)


def busy(task: asyncio.Task[None]) -> bool:
    error = task.exception() if task.done() else None
    return isinstance(error, NexoError) and error.name == "server_busy"


async def test_keys_take_turns_and_callers_of_a_key_keep_their_order() -> None:
    doors = Doors(FairTurns(1, 100, "full"))
    tasks = [doors.start(key) for key in ["a"] * 4 + ["b"] * 2 + ["c"]]
    await doors.let_all_go()
    await asyncio.gather(*tasks)
    assert doors.order == ["a", "a", "b", "c", "a", "b", "a"]
    assert (doors.turns.running, doors.turns.waiting) == (0, 0)


async def test_a_full_queue_takes_the_place_from_the_key_that_has_most() -> None:
    doors = Doors(FairTurns(1, 4, "full"))
    greedy = [doors.start("greedy") for _ in range(5)]
    await loop_turns(5)
    assert doors.turns.waiting == 4
    assert busy(await refused(doors, "greedy"))
    others = [doors.start(key) for key in ("b", "c")]
    await loop_turns(5)
    assert [busy(task) for task in greedy] == [False, False, False, True, True]
    assert busy(await refused(doors, "greedy"))
    assert doors.turns.refused == 4
    await doors.let_all_go()
    await asyncio.gather(*greedy[:3], *others)
    assert doors.order == ["greedy", "greedy", "b", "c", "greedy"]


async def refused(doors: Doors, key: str) -> asyncio.Task[None]:
    task = doors.start(key)
    await loop_turns(5)
    return task


@pytest.mark.parametrize("after_turns", [0, 1, 2])
async def test_a_cancelled_caller_leaves_its_turn_to_the_next(after_turns: int) -> None:
    doors = Doors(FairTurns(1, 100, "full"))
    first, second, third = (doors.start(key) for key in ("a", "b", "c"))
    await loop_turns(5)
    doors.exits.pop().set()
    await loop_turns(after_turns)
    second.cancel()
    await doors.let_all_go()
    await asyncio.gather(first, second, third, return_exceptions=True)
    assert doors.order[-1] == "c"
    assert (doors.turns.running, doors.turns.waiting) == (0, 0)
    again = doors.start("d")
    await doors.let_all_go()
    await again
