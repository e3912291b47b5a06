"""Processes that write are killed at random while a consumer of the journal, killed at random too, reads: every message
that was committed reaches it, in the order of seq, and nothing else."""

from __future__ import annotations

import os
import random
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import Connection, text

from harness.acks import acks_in, check_acks
from harness.core import found_group, open_test_core
from harness.programs import Program, start
from harness.waiting import time_passes, until
from nexo.config import parse_store_url
from nexo.store import migrate

WRITER = Path(__file__).with_name("writer.py")
READER = Path(__file__).with_name("journal_reader.py")
SEED = int(os.environ.get("NEXO_TEST_SEED") or random.randrange(1 << 32))
KILLS = 6
PAIRS = [(f"a{n}", f"b{n}") for n in range(4)]
PEOPLE = [user for pair in PAIRS for user in pair]

Row = tuple[str, int, int]  # conversation, seq, server_msg_id


def stored(connection: Connection) -> list[Row]:
    """Every message; of events only those that have an entry of their own, and here there are none."""
    found = connection.execute(
        text(
            "SELECT c.conversation_id,m.seq,m.server_msg_id FROM messages m JOIN conversations c ON c.id=m.conv "
            "WHERE m.msg_type<100"
        )
    )
    return [(row[0], row[1], row[2]) for row in found]


def seen_in(lines: list[str]) -> list[Row]:
    found = []
    for line in lines:
        if line.startswith("SAW "):
            _, name, seq, server_msg_id = line.split()
            found.append((name, int(seq), int(server_msg_id)))
    return found


class Actors:
    """The processes of one test, and all that ended ones have said."""

    def __init__(self, url: str, group_id: str, stack: AsyncExitStack) -> None:
        self._url = url
        self._group_id = group_id
        self._stack = stack
        self._number = 0
        self.past: list[str] = []  # of writers
        self.seen: list[str] = []  # by readers that have ended
        self.reader: Program

    async def _started(self, script: Path) -> Program:
        program = await start(script, self._url)
        self._stack.push_async_callback(program.kill)
        return program

    async def start_reader(self) -> None:
        self.reader = await self._started(READER)

    async def kill_reader(self) -> None:
        await self.reader.kill()
        self.seen += self.reader.lines

    async def start_writer(self) -> Program:
        self._number += 1
        program = await self._started(WRITER)
        streams: list[dict[str, Any]] = [
            {
                "sender": sender,
                "prefix": f"w{self._number}{sender}-",
                "targets": [{"recv_id": peer}, {"group_id": self._group_id}],
                "inflight": 5,
            }
            for sender, peer in PAIRS
        ]
        await program.say(msgspec.json.encode({"streams": streams}).decode())
        await program.wait_for("READY")
        await program.say("GO")
        return program

    async def kill_writer(self, program: Program) -> None:
        await program.kill()
        self.past += program.lines

    def all_seen(self) -> list[Row]:
        return seen_in(self.seen + self.reader.lines)


@pytest.mark.slow
async def test_a_consumer_sees_all_that_is_committed_whatever_is_killed(core_url: str, engine_name: str) -> None:
    print(f"NEXO_TEST_SEED={SEED}")
    chance = random.Random(SEED)
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, _ = await found_group(core, *PEOPLE)
    async with AsyncExitStack() as stack:
        actors = Actors(core_url, group_id, stack)
        await actors.start_reader()
        writers = [await actors.start_writer() for _ in range(1 if engine_name == "sqlite" else 3)]
        for _ in range(KILLS):
            victim = chance.randrange(len(writers))
            acked = len(acks_in(writers[victim].lines))
            await writers[victim].wait_for("ACK", count=acked + chance.randint(20, 120), timeout_s=120)
            await time_passes(chance.random() * 0.05)
            await actors.kill_writer(writers[victim])
            if chance.random() < 0.5:
                await actors.kill_reader()
                await actors.start_reader()
            writers[victim] = await actors.start_writer()
        for writer in writers:
            await actors.kill_writer(writer)
        await check_acks(core_url, acks_in(actors.past))
        expected = set(await migrate.with_connection(parse_store_url(core_url), stored))
        await until(lambda: expected <= set(actors.all_seen()), patience_s=120)
        seen = actors.all_seen()
    assert len(expected) > 100
    assert set(seen) == expected
    last: dict[str, int] = {}
    known: set[Row] = set()
    for row in seen:
        if row not in known:
            known.add(row)
            name, seq, _ = row
            assert seq > last.get(name, 0), f"{name} {seq} is seen for the first time after {last[name]}"
            last[name] = seq
