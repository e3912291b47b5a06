"""Everything around a webhook is killed at random while messages are written: each that was committed reaches the
receiver, in the order of seq in each conversation, and nothing else does."""

from __future__ import annotations

import os
import random
import time
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import Connection, text

from harness.acks import acks_in
from harness.core import open_test_core
from harness.programs import Program, start
from harness.waiting import time_passes, until
from nexo.config import parse_store_url
from nexo.core.hooks import Hook, HookSecret
from nexo.core.webhook_signature import new_secret
from nexo.store import migrate
from nexo.store.hooks import SqlHooks

HERE = Path(__file__).parent
SEED = int(os.environ.get("NEXO_TEST_SEED") or random.randrange(1 << 32))
IS_LONG = bool(os.environ.get("NEXO_LONG_TESTS"))
SECONDS = int(os.environ.get("NEXO_HOOK_LOAD_S") or (1800 if IS_LONG else 6))
# At full speed for a short time, at some 100 messages a second for a long one.
PAUSE_S = 0.0 if SECONDS < 60 else 0.12
PAIRS = [(f"a{n}", f"b{n}") for n in range(4)]
PEOPLE = [user for pair in PAIRS for user in pair]

Row = tuple[str, int, int]  # conversation, seq, server_msg_id


def stored(connection: Connection) -> list[Row]:
    found = connection.execute(
        text(
            "SELECT c.conversation_id,m.seq,m.server_msg_id FROM messages m JOIN conversations c ON c.id=m.conv "
            "WHERE m.msg_type<100"
        )
    )
    return [(row[0], row[1], row[2]) for row in found]


class Actors:
    """The processes of one test, and what receivers that have ended were given."""

    def __init__(self, url: str, stack: AsyncExitStack) -> None:
        self._url = url
        self._stack = stack
        self._past: list[str] = []
        self._number = 0
        self.port = "0"
        self.receiver: Program
        self.deliverers: list[Program] = []

    async def _started(self, script: str, *arguments: str) -> Program:
        program = await start(HERE / script, *arguments)
        self._stack.push_async_callback(program.kill)
        return program

    async def start_receiver(self) -> None:
        self.receiver = await self._started("hook_receiver.py", self.port)
        self.port = (await self.receiver.wait_for("PORT")).split()[1]

    async def kill_receiver(self) -> None:
        await self.receiver.kill()
        self._past += self.receiver.lines

    async def start_deliverer(self, *words: str) -> None:
        self.deliverers.append(await self._started("hook_deliverer.py", self._url, *words))
        await self.deliverers[-1].wait_for("READY")

    async def kill_deliverer(self, number: int) -> None:
        await self.deliverers.pop(number).kill()

    async def start_writer(self) -> Program:
        self._number += 1
        program = await self._started("writer.py", self._url)
        streams = [
            {
                "sender": a,
                "prefix": f"w{self._number}{a}-",
                "targets": [{"recv_id": b}],
                "inflight": 3,
                "pause_s": PAUSE_S,
            }
            for a, b in PAIRS
        ]
        await program.say(msgspec.json.encode({"streams": streams}).decode())
        await program.wait_for("READY")
        await program.say("GO")
        return program

    def got(self) -> list[Row]:
        lines = [line.split() for line in self._past + self.receiver.lines if line.startswith("GOT ")]
        return [(name, int(seq), int(server_msg_id)) for _, name, seq, server_msg_id in lines]

    async def until_all(self, expected: set[Row]) -> None:
        """Wait as long as more arrives: under load much is left when the writers end."""
        while missing := expected - set(self.got()):
            lines = len(self.receiver.lines)
            await until(lambda: len(self.receiver.lines) > lines, lambda: f"{len(missing)} missing", patience_s=60)  # noqa: B023


async def one_fault(actors: Actors, chance: random.Random) -> None:
    match chance.randrange(5):
        case 0:
            await actors.receiver.say("ANSWER 503")
            await time_passes(chance.random())
            await actors.receiver.say("ANSWER 200")
        case 1:
            await actors.receiver.say("STALL")
            await time_passes(chance.random() * 1.5)
            await actors.receiver.say("TAKE")
        case 2:
            await actors.kill_receiver()
            await actors.start_receiver()
        case _:
            await actors.kill_deliverer(chance.randrange(len(actors.deliverers)))
            await actors.start_deliverer()


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 400)
async def test_a_receiver_gets_all_that_is_committed_whatever_is_killed(core_url: str, engine_name: str) -> None:
    print(f"NEXO_TEST_SEED={SEED}")
    chance = random.Random(SEED)
    async with AsyncExitStack() as stack:
        actors = Actors(core_url, stack)
        await actors.start_receiver()
        async with open_test_core(core_url, PEOPLE) as core:
            hook = Hook(
                "h_1", "shop", f"http://127.0.0.1:{actors.port}/", ("message.saved",), (), (HookSecret(new_secret()),)
            )
            await SqlHooks(core.store.database, core.store.journal).add(hook, 10, "test")
        for _ in range(1 if engine_name == "sqlite" else 2):
            await actors.start_deliverer()
        writer = await actors.start_writer()
        await until(lambda: bool(actors.got()))
        ends_at = time.monotonic() + SECONDS
        while time.monotonic() < ends_at:
            await one_fault(actors, chance)
            await time_passes(chance.random() * 0.3)
        await writer.kill()
        while actors.deliverers:  # they write too
            await actors.kill_deliverer(0)
        assert len(acks_in(writer.lines)) > 100
        expected = set(await migrate.with_connection(parse_store_url(core_url), stored))
        await actors.start_deliverer("quiet")
        left_from = len(expected - set(actors.got()))
        print(f"{engine_name}: {len(expected)} messages, {left_from} of them left after {SECONDS} s")
        await actors.until_all(expected)
        got = actors.got()
    assert set(got) == expected
    last: dict[str, int] = {}
    known: set[Row] = set()
    for row in got:
        if row not in known:
            known.add(row)
            name, seq, _ = row
            assert seq == last.get(name, 0) + 1, f"{name} {seq} arrives for the first time after {last.get(name, 0)}"
            last[name] = seq
