"""The group committer under everything that can happen to a batch, at random: what one sender submits to one
conversation is stored once and in that order, and every submit is answered once.

NEXO_TEST_SEED repeats the choices of a run; threads and database servers keep their own time.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from harness.commits import Submitter
from harness.core import add_users, draft_fields, found_group, look, open_test_core, say
from harness.locks import held_conversation
from harness.scripts import intercepted
from harness.waiting import time_passes
from nexo.assembly.core import Core
from nexo.config import parse_store_url
from nexo.core.commands import Send
from nexo.core.model import Draft, Sent
from nexo.errors import NexoError
from nexo.store import rows
from nexo.store.check import check
from nexo.store.engine import CommitUnknown, Script, Stmt, StoreError, Transient

LONG = bool(os.environ.get("NEXO_LONG_TESTS"))
SEED = int(os.environ.get("NEXO_TEST_SEED") or random.randrange(1 << 32))
ROUNDS = 20 if LONG else 1  # of each kind of weather
STEPS = 80
DEADLINE_MS = 400
TRIES = 3  # a client gives a message up that has failed so often


CLIENT_MSG_ID = rows.NEW_MESSAGE.index("client_msg_id")


class Weather(NamedTuple):
    """How likely what is."""

    create_fails: float = 0.0
    statement_fails: float = 0.0
    commit_unheard: float = 0.0
    defect: float = 0.0  # an exception that no database raises
    poison: float = 0.0  # a message that cannot be stored
    sent_again: float = 0.05
    id_reused: float = 0.0  # another message under a client_msg_id that its sender used before
    held: float = 0.0  # another transaction holds a conversation for a while


WEATHERS = {
    "chats that cannot be created": Weather(create_fails=0.6, statement_fails=0.05, commit_unheard=0.1),
    "messages that cannot be stored": Weather(create_fails=0.1, poison=0.04, id_reused=0.1, defect=0.02),
    "everything": Weather(0.3, 0.03, 0.05, 0.005, 0.03, 0.1, 0.1, 0.1),
}


class Message:
    def __init__(self, number: int, fields: dict[str, Any]) -> None:
        self.number = number  # in the order in which its client wrote them
        self.fields = fields
        self.failures = 0
        self.outcome: Sent | NexoError | None = None


class Client:
    """A connection of a sender, in one conversation. It sends ahead without waiting for answers; what is refused for
    now is sent again, in order, before anything new. That is all the contract asks of a client."""

    def __init__(self, storm: Storm, sender: str, target: str) -> None:
        self._storm = storm
        self.sender = sender
        self.target = target
        self.written: list[Message] = []
        self.repeated: list[tuple[Message, int]] = []  # needlessly, with the seq of the answer
        self._again: list[Message] = []
        self._in_flight = 0

    @property
    def is_done(self) -> bool:
        return not self._in_flight and not self._again

    def write(self) -> None:
        if self._again:
            return
        storm, number = self._storm, len(self.written)
        client_msg_id = f"{'poison' if storm.happens('poison') else ''}{self.target}-{number}"
        if storm.happens("id_reused"):
            client_msg_id = storm.used_id(self.sender) or client_msg_id
        message = Message(number, draft_fields(self.target, f"text {number}", {"client_msg_id": client_msg_id}))
        self.written.append(message)
        self._send(message)
        if storm.happens("sent_again"):
            self._send_needlessly(storm.chance.choice(self.written))

    def _send(self, message: Message) -> None:
        self._in_flight += 1

        def answer(outcome: Sent | NexoError) -> None:
            self._in_flight -= 1
            message.outcome = outcome
            if isinstance(outcome, NexoError) and outcome.row.retry:
                message.failures += outcome.name == "internal_error"
                if message.failures < TRIES or "poison" not in message.fields["client_msg_id"]:
                    self._again.append(message)
            if self._again and not self._in_flight:
                asyncio.get_running_loop().call_later(self._storm.chance.uniform(0, 0.01), self._send_again)

        self._storm.submit(self.sender, message.fields, answer)

    def _send_again(self) -> None:
        again = sorted(self._again, key=lambda message: message.number)
        self._again.clear()
        for message in again:
            self._send(message)

    def _send_needlessly(self, message: Message) -> None:
        """A retry: of something that is in flight, stored or refused."""
        if message in self._again or isinstance(message.outcome, NexoError):
            return

        def answer(outcome: Sent | NexoError) -> None:
            if isinstance(outcome, Sent):
                self.repeated.append((message, outcome.message.seq))

        self._storm.submit(self.sender, message.fields, answer)


class Storm:
    def __init__(self, core: Core, url: str, weather: Weather, chance: random.Random) -> None:
        self._core = core
        self._url = url
        self._weather = weather
        self.chance = chance
        self.answers: list[list[Sent | NexoError]] = []  # of each submit
        self._clients: list[Client] = []
        self._existing: list[str] = []
        self._is_over = False
        self._change = asyncio.Event()
        self._holding: set[asyncio.Task[None]] = set()

    def happens(self, what: str) -> bool:
        return not self._is_over and self.chance.random() < getattr(self._weather, what)

    def used_id(self, sender: str) -> str | None:
        used = [message for client in self._clients if client.sender == sender for message in client.written[-3:]]
        return str(self.chance.choice(used).fields["client_msg_id"]) if used else None

    def submit(self, sender: str, fields: dict[str, Any], answer: Callable[[Sent | NexoError], None]) -> None:
        draft: Draft = self._core.sending.draft(sender, Send(**fields))
        given: list[Sent | NexoError] = []
        self.answers.append(given)

        def note(outcome: Sent | NexoError) -> None:
            given.append(outcome)
            answer(outcome)
            asyncio.get_running_loop().call_soon(self._change.set)  # the committer has counted it by then

        self._core.store.messages.submit(draft, Submitter(note))

    # -- what goes wrong -------------------------------------------------------------------------------------

    def before(self, script: str, statement: Stmt) -> None:
        if script == "create_singles" and statement.sql.startswith("INSERT INTO conv") and self.happens("create_fails"):
            raise Transient("could not serialize")
        if script in ("create_singles", "write_batch"):
            if self.happens("statement_fails"):
                raise self.chance.choice((Transient, Transient, CommitUnknown, StoreError))("by chance")
            if self.happens("defect"):
                raise ValueError("a defect")

    def after(self, script: str) -> None:
        if script in ("create_singles", "write_batch") and self.happens("commit_unheard"):
            raise CommitUnknown("the connection was lost")

    def poison(self) -> None:
        sql: Any = self._core.store.committer._hot_sql

        def store(messages: list[tuple[Any, ...]], *rest: Any) -> Script[None]:
            if any(str(row[CLIENT_MSG_ID]).startswith("poison") for row in messages):
                raise StoreError("cannot be stored")
            yield from type(sql).store(sql, messages, *rest)

        sql.store = store

    async def _hold(self, conversation_id: str) -> None:
        async with held_conversation(self._url, conversation_id) as release:
            await time_passes(self.chance.uniform(0.01, 0.1))
            await release()

    # -- a run -----------------------------------------------------------------------------------------------

    async def rage(self, prefix: str) -> None:
        people = [f"{prefix}p{n}" for n in range(5)]
        group_id, group = await found_group(self._core, *people)
        await say(self._core, people[1], people[0], client_msg_id="first")
        self._existing = [group, f"si_{people[0]}:{people[1]}"]
        self._clients = [
            Client(self, sender, target) for sender in people[:3] for target in (group_id, *people) if target != sender
        ]
        self.poison()
        with intercepted(self._core, self.before, self.after):
            for _ in range(STEPS):
                for _ in range(self.chance.randrange(6)):
                    self.chance.choice(self._clients).write()
                if self.happens("held") and not self._holding:
                    task = asyncio.create_task(self._hold(self.chance.choice(self._existing)))
                    self._holding.add(task)
                    task.add_done_callback(self._holding.discard)
                await time_passes(self.chance.choice((0, 0, 0.001, 0.004)))
            self._is_over = True
            async with asyncio.timeout(30):
                await asyncio.gather(*self._holding)
                while not all(client.is_done for client in self._clients) or self._core.store.committer.under_way:
                    self._change.clear()
                    await self._change.wait()

    async def verify(self) -> None:
        assert [len(given) for given in self.answers] == [1] * len(self.answers), "each is answered once"
        found = await look(
            self._core,
            "SELECT m.sender_id,c.conversation_id,m.content,m.seq FROM messages m JOIN conversations c ON c.id=m.conv "
            "WHERE m.client_msg_id IS NOT NULL AND m.client_msg_id<>'first' ORDER BY m.conv,m.seq",
        )
        for client in self._clients:
            conversation_id = self._core.sending.draft(
                client.sender, Send(**draft_fields(client.target, "hi", {}))
            ).conversation_id
            place = (client.sender, conversation_id)
            stored = [(content, seq) for sender, name, content, seq in found if (sender, name) == place]
            saved = [
                (f'"text {message.number}"', message.outcome.message.seq)
                for message in client.written
                if isinstance(message.outcome, Sent)
            ]
            assert stored == saved, f"{client.sender} to {client.target}"
            for message, seq in client.repeated:
                assert isinstance(message.outcome, Sent)
                assert message.outcome.message.seq == seq


@pytest.mark.parametrize("weather", WEATHERS)
async def test_what_a_sender_submits_keeps_its_order_whatever_happens(core_url: str, weather: str) -> None:
    print(f"NEXO_TEST_SEED={SEED}")  # pytest shows it when the test fails
    async with open_test_core(core_url, send__deadline_ms=DEADLINE_MS, store__batch_max=32) as core:
        chance = random.Random(f"{SEED} {weather}")
        for number in range(ROUNDS):
            storm = Storm(core, core_url, WEATHERS[weather], chance)
            await add_users(core, [f"r{number}p{n}" for n in range(5)])
            await storm.rage(f"r{number}")
            await storm.verify()
        assert not core.store.committer._lines.lanes
        saved = sum(isinstance(given[0], Sent) for given in storm.answers)
        assert saved > STEPS // 2, "most of it gets through"
    report = await check(parse_store_url(core_url))
    assert not report.counts, report.findings
