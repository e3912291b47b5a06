"""Many tasks in several processes write to the same conversations, the same messages at the same time."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec

from harness.acks import acks_in, check_acks, errors_in
from harness.core import found_group, open_test_core
from harness.programs import Program, running
from harness.store import make_config
from nexo.background import Background
from nexo.config import resolve_store_url
from nexo.store.database import Database

WRITER = Path(__file__).with_name("writer.py")
PROCESSES = 3
TASKS = 50  # in each process
MESSAGES = 100  # of each task
PAIRS = [(f"a{n}", f"b{n}") for n in range(10)]
PEOPLE = [user for pair in PAIRS for user in pair]


async def started(stack: AsyncExitStack, url: str, plans: list[list[dict[str, Any]]]) -> list[Program]:
    """A process for each plan; all of them have their stores open and wait for GO."""
    programs = [await stack.enter_async_context(running(WRITER, url)) for _ in plans]
    for program, streams in zip(programs, plans, strict=True):
        await program.say(msgspec.json.encode({"streams": streams}).decode())
    for program in programs:
        await program.wait_for("READY")
    return programs


async def run_together(programs: list[Program]) -> list[str]:
    for program in programs:
        await program.say("GO")
    for program in programs:
        await program.wait_for("DONE", timeout_s=120)
        await program.finish()
    return [line for program in programs for line in program.lines]


async def test_every_message_from_two_processes_at_once_is_stored_once(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        groups = [(await found_group(core, *PEOPLE))[0] for _ in range(10)]

    def stream(shared: int, task: int) -> dict[str, Any]:
        """Task `task` of the set `shared`, which two processes have in common."""
        sender, peer = PAIRS[task % 10] if task % 2 else PAIRS[task % 10][::-1]
        targets = [{"recv_id": peer}, *({"group_id": group_id} for group_id in groups)]
        turn = (task + shared) % len(targets)
        return {
            "sender": sender,
            "prefix": f"s{shared}t{task}n",
            "targets": targets[turn:] + targets[:turn],
            "end": MESSAGES,
        }

    plans = [
        [stream(shared, task) for shared in (process, (process + 1) % PROCESSES) for task in range(TASKS // 2)]
        for process in range(PROCESSES)
    ]
    async with AsyncExitStack() as stack:
        programs = await started(stack, core_url, plans)
        began = time.monotonic()
        lines = await run_together(programs)
        took_s = time.monotonic() - began
    acks = acks_in(lines)
    wanted = {f"s{s}t{t}n{n}" for s in range(PROCESSES) for t in range(TASKS // 2) for n in range(MESSAGES)}
    assert await check_acks(core_url, acks) == wanted
    assert Counter(ack.client_msg_id for ack in acks) == dict.fromkeys(wanted, 2)
    assert sum(ack.fresh for ack in acks) == len(wanted), "one of the two wrote it, the other found it"
    assert len({ack.conversation_id for ack in acks}) == 20
    assert errors_in(lines).keys() <= {"server_busy"}
    assert took_s < 60


async def test_the_first_message_of_a_chat_from_two_processes_at_once_makes_one_chat(core_url: str) -> None:
    strangers = [(f"x{n}", f"y{n}") for n in range(40)]
    async with open_test_core(core_url, [user for pair in strangers for user in pair]):
        pass

    def first(sender: str, peer: str, prefix: str) -> dict[str, Any]:
        return {"sender": sender, "prefix": prefix, "targets": [{"recv_id": peer}], "end": 1}

    same = [first(x, y, f"same{x}-") for x, y in strangers[:20]]
    one_side = [first(x, y, f"{x}-") for x, y in strangers[20:]]
    other_side = [first(y, x, f"{y}-") for x, y in strangers[20:]]
    async with AsyncExitStack() as stack:
        programs = await started(stack, core_url, [same + one_side, same + other_side])
        lines = await run_together(programs)
    acks = acks_in(lines)
    stored = await check_acks(core_url, acks)
    assert len(stored) == 60
    assert Counter(ack.conversation_id for ack in acks) == {f"si_{x}:{y}": 2 for x, y in strangers}
    assert errors_in(lines) == {}


async def test_a_quiet_process_is_not_starved_by_busy_ones(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE):
        pass
    *busy_pairs, (quiet, peer) = PAIRS
    plans = [
        [
            {"sender": a, "prefix": f"busy{process}{a}-", "targets": [{"recv_id": b}], "inflight": 50}
            for a, b in busy_pairs
        ]
        for process in range(2)
    ]
    plans.append([{"sender": quiet, "prefix": "quiet", "targets": [{"recv_id": peer}], "end": 50}])
    async with AsyncExitStack() as stack:
        *busy, last = await started(stack, core_url, plans)
        for program in busy:
            await program.say("GO")
            await program.wait_for("ACK", count=100)
        await last.say("GO")
        await last.wait_for("DONE", timeout_s=30)
        for program in busy:
            await program.kill()
    assert errors_in(last.lines) == {}
    await check_acks(core_url, acks_in(line for program in (*busy, last) for line in program.lines))


async def test_instances_that_start_at_the_same_moment_number_their_messages_apart(core_url: str) -> None:
    config = make_config(core_url)
    databases = [Database(resolve_store_url(config), config, Background()) for _ in range(8)]
    failures = [
        failure
        for failure in await asyncio.gather(*(database.open() for database in databases), return_exceptions=True)
        if failure is not None
    ]
    nodes = [database.ids.node for database in databases if hasattr(database, "ids")]
    await asyncio.gather(*(database.close() for database in databases))
    assert (failures, sorted(nodes)) == ([], list(range(8)))
