"""Joining, leaving, removing and acknowledging while others send, through two stores at once.

What is true is taken from the log itself: the events in it say who was a member between which seqs.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from itertools import pairwise

import msgspec

from harness.core import found_group, look, open_test_core, say
from harness.waiting import loop_turns
from nexo.assembly.core import Core
from nexo.core.model import Message
from nexo.errors import NexoError

SPEAKERS = [f"s{n}" for n in range(4)]
MOVERS = [f"m{n}" for n in range(4)]
PATIENT = {"send__deadline_ms": 60_000}  # a busy machine is no refusal
Span = tuple[int, int]


async def whole_log(core: Core, user: str, name: str) -> list[Message]:
    found: list[Message] = []
    begin, has_more = 1, True
    while has_more:
        page = await core.conversations.pull(user, name, begin)
        found += page.messages
        begin, has_more = page.next_seq or 0, page.has_more
    return found


def spans_by_log(log: list[Message], founders: list[str]) -> dict[str, list[Span]]:
    """Everybody's spans as the events tell them; an open one ends at the head."""
    begun = {user: 1 for user in founders}
    spans: dict[str, list[Span]] = {user: [] for user in [*SPEAKERS, *MOVERS]}
    for message in log:
        content = msgspec.json.decode(message.content)
        if message.msg_type == 102:
            for user in content["user_ids"]:
                assert user not in begun, f"{user} joined twice"
                begun[user] = message.seq
        elif message.msg_type in (103, 104):
            for user in content.get("user_ids") or [content["user_id"]]:
                spans[user].append((begun.pop(user), message.seq))
    for user, seq in begun.items():
        spans[user].append((seq, log[-1].seq))
    return spans


def inside(spans: list[Span], seq: int) -> bool:
    return any(low <= seq <= high for low, high in spans)


def count(log: list[Message], user: str, spans: list[Span], above: int) -> tuple[int, int]:
    """unread and unread mentions, the slow way."""
    others = [
        message
        for message in log
        if not message.is_event and message.sender_id != user and message.seq > above and inside(spans, message.seq)
    ]
    named = [message for message in others if user in message.mentions or "@all" in message.mentions]
    return len(others), len(named)


class Race:
    def __init__(self, cores: list[Core], group_id: str, name: str, seed: int) -> None:
        self.cores = cores
        self.group_id = group_id
        self.name = name
        self.random = random.Random(seed)
        self.seen: list[tuple[str, list[int]]] = []

    def core(self) -> Core:
        return self.random.choice(self.cores)

    async def allowed_to_fail(self, work: Awaitable[object], *reasons: str) -> None:
        """Who loses a race is told why, and only for these reasons."""
        reason = None
        try:
            await work
        except NexoError as error:
            reason = error.name
        assert reason in (None, *reasons)

    async def speak(self, user: str) -> None:
        """Always a member: every send must be stored."""
        for n in range(40):
            mentions = [self.random.choice(MOVERS)] if n % 3 == 0 else ["@all"] if user == "s0" and n % 5 == 0 else []
            await say(self.core(), user, self.group_id, mentions=mentions)

    async def move(self, user: str) -> None:
        """In and out, speaking and acknowledging as long as it lasts."""
        for _ in range(8):
            await self.core().groups.join(user, self.group_id)
            for _ in range(self.random.randrange(3)):
                await self.allowed_to_fail(say(self.core(), user, self.group_id), "member_not_active")
            await self.read(user)
            await self.allowed_to_fail(self.core().groups.leave(user, self.group_id), "not_group_member")
            await self.allowed_to_fail(say(self.core(), user, self.group_id), "member_not_active")
            await self.read(user)

    async def read(self, user: str) -> None:
        core = self.core()
        page = await core.conversations.pull(user, self.name)
        self.seen.append((user, [message.seq for message in page.messages]))
        if page.messages:
            seq = self.random.choice(page.messages).seq
            await core.acknowledging.ack_seq(user, self.random.choice(["delivered", "read"]), self.name, seq)
            await core.acknowledging.mark_read(user, self.name, seq=seq - 1)

    async def remove(self) -> None:
        for _ in range(25):
            user = self.random.choice(MOVERS)
            await self.allowed_to_fail(self.core().groups.remove("s0", self.group_id, user), "not_group_member")

    async def acknowledge(self, user: str) -> None:
        for _ in range(15):
            await self.read(user)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.remove())
            for user in SPEAKERS:
                group.create_task(self.speak(user))
                group.create_task(self.acknowledge(user))
            for user in MOVERS:
                group.create_task(self.move(user))
        for core in self.cores:
            await core.store.cursors.flush()


async def test_nobody_ever_sees_a_message_outside_their_spans(core_url: str) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    async with AsyncExitStack() as stack:
        cores = [await stack.enter_async_context(open_test_core(core_url, SPEAKERS + MOVERS, **PATIENT))]
        cores.append(await stack.enter_async_context(open_test_core(core_url, **PATIENT)))
        group_id, name = await found_group(cores[0], *SPEAKERS)
        race = Race(cores, group_id, name, seed)
        async with asyncio.timeout(200):
            await race.run()

        log = await whole_log(cores[0], "s0", name)
        assert [message.seq for message in log] == list(range(1, len(log) + 1))
        assert all(a.send_at < b.send_at for a, b in pairwise(log))
        spans = spans_by_log(log, SPEAKERS)
        for message in log:
            if not message.is_event:
                assert inside(spans[message.sender_id], message.seq), f"{message.sender_id} spoke at {message.seq}"
        for user, seqs in race.seen:
            assert all(inside(spans[user], seq) for seq in seqs), f"{user} saw {seqs}, has {spans[user]}"
        for user in [*SPEAKERS, *MOVERS]:
            visible = [message.seq for message in await whole_log(cores[1], user, name)]
            assert visible == [message.seq for message in log if inside(spans[user], message.seq)]
            (entries, _, _) = await cores[1].conversations.entries(user)
            (entry,) = entries
            assert spans[user][-1][0] - 1 <= entry.read_seq <= entry.delivered_seq <= spans[user][-1][1]
            assert (entry.unread, entry.unread_mentions) == count(log, user, spans[user], entry.read_seq), user
        active = [user for user in spans if spans[user] and spans[user][-1][1] == len(log)]
        members = await look(cores[0], "SELECT user_id FROM members WHERE status=0 ORDER BY user_id")
        group = await cores[0].groups.info(group_id)
        assert group.member_count == len(members)
        assert {row[0] for row in members} <= set(active)


async def test_pipelined_sends_through_two_stores_leave_no_holes(core_url: str) -> None:
    """Many senders, each with many sends in flight, into chats that are being created: nothing is lost."""
    users = [f"u{n}" for n in range(6)]
    async with open_test_core(core_url, users, **PATIENT) as first, open_test_core(core_url, **PATIENT) as second:
        group_id, _ = await found_group(first, *users)

        async def pour(user: str, core: Core) -> None:
            targets = [group_id, *(other for other in users if other != user)]
            sends = []
            for n in range(150):
                sends.append(asyncio.create_task(say(core, user, targets[n % len(targets)], f"{n:04}")))
                if n % 10 == 9:
                    await loop_turns()
            await asyncio.gather(*sends)

        async with asyncio.timeout(200):
            await asyncio.gather(*(pour(user, (first, second)[n % 2]) for n, user in enumerate(users)))
        rows = await look(first, "SELECT conv,seq,sender_id,content,msg_type FROM messages ORDER BY conv,seq")
        assert len(rows) == 6 * 150 + 1
        by_conv: dict[int, list[int]] = {}
        by_sender: dict[tuple[int, str], list[str]] = {}
        for conv, seq, sender, content, msg_type in rows:
            by_conv.setdefault(conv, []).append(seq)
            if msg_type < 100:
                by_sender.setdefault((conv, sender), []).append(content)
        assert len(by_conv) == 1 + 15
        for seqs in by_conv.values():
            assert seqs == list(range(1, len(seqs) + 1))
        for texts in by_sender.values():
            assert texts == sorted(texts), "a sender's messages changed places"
