"""kill -9 at any moment loses nothing that was acknowledged, and doubles nothing.

A writer dies LIVES times on one database. Each life sends again what the one before had no answer for. The
seed of the moments is printed when a test fails; NEXO_TEST_SEED repeats it.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import msgspec

from harness import programs
from harness.acks import Ack, acks_in, check_acks, errors_in
from harness.core import found_group, open_test_core
from harness.programs import Program
from harness.waiting import time_passes
from nexo.config import parse_store_url
from nexo.store.check import check

WRITER = Path(__file__).with_name("writer.py")
LIVES = 100 if os.environ.get("NEXO_LONG_TESTS") else 25
SEED = int(os.environ.get("NEXO_TEST_SEED") or random.randrange(1 << 32))
PEOPLE = [f"p{n}" for n in range(6)]


def next_numbers(acks: list[Ack]) -> list[int]:
    """For each sender the first message that was never acknowledged; some after it may have been."""
    known: dict[int, set[int]] = {n: set() for n in range(len(PEOPLE))}
    for ack in acks:
        sender, _, number = ack.client_msg_id.partition("-")
        known[int(sender)].add(int(number))
    return [next(n for n in range(len(numbers) + 1) if n not in numbers) for numbers in known.values()]


def plan(groups: list[str], acks: list[Ack]) -> str:
    streams = []
    for n, first in enumerate(next_numbers(acks)):
        peers = [{"recv_id": peer} for peer in (PEOPLE[n - 1], PEOPLE[n - 2])]
        targets = [*peers, *({"group_id": group_id} for group_id in groups)]
        streams.append({"sender": PEOPLE[n], "prefix": f"{n}-", "targets": targets, "first": first, "inflight": 8})
    return msgspec.json.encode({"streams": streams}).decode()


async def live(program: Program, plan: str, moments: random.Random) -> None:
    """One life, ended while it opens its store, when it has just begun to send, or in the middle of it."""
    await program.say(plan)
    await program.say("GO")
    if moments.random() < 0.1:
        await time_passes(moments.uniform(0, 0.1))
    else:
        await program.wait_for("ACK", count=moments.choice([1, 1, 10, 100]))
        await time_passes(moments.uniform(0, 0.3))
    await program.kill()


async def test_nothing_acknowledged_is_lost_or_doubled_by_kill_9(core_url: str) -> None:
    print(f"NEXO_TEST_SEED={SEED}")  # pytest shows it when the test fails
    moments = random.Random(SEED)
    async with open_test_core(core_url, PEOPLE) as core:
        groups = [(await found_group(core, *PEOPLE))[0] for _ in range(3)]
    acks: list[Ack] = []
    lines: list[str] = []
    following = await programs.start(WRITER, core_url)
    try:
        for life in range(LIVES):
            # the next process is starting up while this one lives
            program, following = following, await programs.start(WRITER, core_url)
            await live(program, plan(groups, acks), moments)
            lines += program.lines
            acks += acks_in(program.lines)
            if life % 10 == 0:
                report = await check(parse_store_url(core_url))
                assert not report.counts, report.findings[:20]
    finally:
        await following.kill()
    stored = await check_acks(core_url, acks)
    told: dict[str, tuple[object, ...]] = {}
    for ack in acks:
        assert told.setdefault(ack.client_msg_id, ack[:5]) == ack[:5], "two answers for one message"
    assert len(stored) >= len(told) > LIVES * 10
    assert errors_in(lines).keys() <= {"server_busy"}
