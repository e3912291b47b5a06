"""The way to the database breaks, at the worst moments, and the database itself dies and hangs."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from harness.acks import Ack, check_acks
from harness.commits import CommitLog
from harness.core import draft_fields, found_group, fresh_id, look, open_test_core, refused, say
from harness.engines import SERVER_ENGINES
from harness.proxy import Moment, Proxy, proxy_to
from harness.waiting import PATIENCE_S, loop_time, nothing_for, time_passes, until
from nexo.assembly.core import Core
from nexo.config import parse_store_url
from nexo.core.model import Sent
from nexo.errors import NexoError
from nexo.store import engine, migrate, pending
from nexo.store.check import check

pytestmark = pytest.mark.parametrize(
    "engine_name", [pytest.param(engine, marks=pytest.mark.servers) for engine in SERVER_ENGINES]
)
PEOPLE = [f"p{n}" for n in range(6)]
DEADLINE_MS = 1500  # what a send takes at most; on a busy machine too
MOMENTS = (Moment.BEFORE, Moment.AFTER)
SEED = int(os.environ.get("NEXO_TEST_SEED") or random.randrange(1 << 32))


@asynccontextmanager
async def core_behind_proxy(url: str, **flags: Any) -> AsyncIterator[tuple[Core, Proxy]]:
    async with proxy_to(url) as proxy, open_test_core(proxy.url, PEOPLE, **flags) as core:
        yield core, proxy


def ack_of(sent: Sent) -> Ack:
    message = sent.message
    assert message.client_msg_id is not None
    return Ack(
        message.client_msg_id,
        message.server_msg_id,
        message.conversation_id,
        message.seq,
        message.send_at,
        sent.fresh,
    )


async def send(core: Core, sender: str, target: str, content: str = "hello", **fields: Any) -> Sent:
    return await core.sending.send(sender, **draft_fields(target, content, fields))


# By what is in them: the text of a prepared statement is not sent again.
@pytest.mark.parametrize("statement", ["BEGIN", "si_p0:p1", "what is inserted"])
@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_connection_lost_before_commit_is_not_noticed(core_url: str, statement: str, moment: Moment) -> None:
    async with core_behind_proxy(core_url) as (core, proxy):
        await say(core, "p0", "p1")
        sprung = proxy.cut_at(statement, moment)
        sent = await send(core, "p0", "p1", content="what is inserted")
        assert (sprung.is_set(), sent.fresh, sent.message.seq) == (True, True, 2)
    assert len(await check_acks(core_url, [ack_of(sent)])) == 2


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_connection_lost_while_committing_is_resolved_by_looking(core_url: str, moment: Moment) -> None:
    async with core_behind_proxy(core_url) as (core, proxy):
        await say(core, "p0", "p1")
        sprung = proxy.cut_at("COMMIT", moment)
        sent = await send(core, "p0", "p1")
        assert (sprung.is_set(), sent.fresh, sent.message.seq) == (True, True, 2)
        again = await send(core, "p0", "p1", client_msg_id=sent.message.client_msg_id)
        assert (again.fresh, again.message) == (False, sent.message)
    assert len(await check_acks(core_url, [ack_of(sent)])) == 2


@pytest.mark.parametrize("moment", MOMENTS)
async def test_commits_that_are_lost_again_and_again_are_resolved_too(core_url: str, moment: Moment) -> None:
    async with core_behind_proxy(core_url) as (core, proxy):
        group_id, _ = await found_group(core, *PEOPLE)
        sprung = proxy.cut_at("COMMIT", moment, times=4)
        # a chat that has to be created first, one that exists, and enough for several batches
        targets = ["p1", group_id, "p2", group_id]
        sents = await asyncio.gather(*(send(core, "p0", targets[n % 4]) for n in range(40)))
        assert sprung.is_set()
        assert all(sent.fresh for sent in sents)
        for target in set(targets):
            seqs = [sent.message.seq for n, sent in enumerate(sents) if targets[n % 4] == target]
            assert seqs == sorted(seqs), "what one sender sends keeps its order"
    assert len(await check_acks(core_url, map(ack_of, sents))) == 40


@pytest.mark.parametrize("arrives", [True, False])
async def test_a_commit_that_hangs_in_the_network_delays_one_chat_and_is_never_denied(
    core_url: str, arrives: bool
) -> None:
    """The server holds the locks of a transaction whose end it has not heard yet, until it loses patience. A
    refusal would say that the message is not saved, and the late commit would make it a lie."""
    patience = {"send__deadline_ms": DEADLINE_MS, "store__lock_timeout_ms": 3 * DEADLINE_MS}  # ours, the database's
    async with core_behind_proxy(core_url, **patience) as (core, proxy):
        await say(core, "p0", "p1")
        await say(core, "p2", "p3")
        sprung = proxy.cut_at("COMMIT", Moment.LATE)
        sending = asyncio.create_task(send(core, "p0", "p1"))
        await sprung.wait()
        other = await send(core, "p2", "p3")
        await nothing_for(DEADLINE_MS / 1000 + 0.5)
        assert not sending.done()
        if arrives:
            proxy.deliver()
        sent = await sending
        assert (sent.fresh, sent.message.seq) == (True, 2)
    assert len(await check_acks(core_url, [ack_of(sent), ack_of(other)])) == 4


async def test_a_commit_whose_end_cannot_be_found_out_is_not_called_unsaved(
    core_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "UNKNOWN_GIVE_UP_S", 0.5)
    monkeypatch.setattr(pending, "UNKNOWN_GIVE_UP_S", 0.5)
    async with core_behind_proxy(core_url, send__deadline_ms=DEADLINE_MS, store__pool_size=1) as (core, proxy):
        group_id, _ = await found_group(core, *PEOPLE)
        await say(core, "p0", "p1")

        async def lose(work: Awaitable[object]) -> None:
            """The commit gets through, its answer does not, and there is no other connection for a while."""
            proxy.cut_at("COMMIT", Moment.AFTER)
            proxy.refuse()
            with refused("internal_error"):
                await work
            proxy.flow()

        await lose(send(core, "p0", "p1", client_msg_id="unheard"))
        again = await send(core, "p0", "p1", client_msg_id="unheard")
        assert (again.fresh, again.message.seq) == (False, 2)
        await lose(core.groups.leave("p1", group_id))
        with refused("not_group_member"):
            await core.groups.leave("p1", group_id)
        proxy.refuse()
        proxy.cut()
        with refused("server_busy"):
            await send(core, "p0", "p1", client_msg_id="refused")
        with refused("server_busy"):
            await core.groups.leave("p2", group_id)
        proxy.flow()
        await core.groups.leave("p2", group_id)
    assert "refused" not in await check_acks(core_url, [ack_of(again)])


async def test_connections_cut_while_nothing_happens_are_replaced(core_url: str) -> None:
    async with core_behind_proxy(core_url) as (core, proxy):
        first = await send(core, "p0", "p1")
        page = await core.conversations.pull("p1", first.message.conversation_id)
        proxy.cut()
        second = await send(core, "p0", "p1")
        page = await core.conversations.pull("p1", first.message.conversation_id)
        assert [message.seq for message in page.messages] == [1, 2]
    assert len(await check_acks(core_url, [ack_of(first), ack_of(second)])) == 2


# -- everything else that writes -------------------------------------------------------------------------


async def events_of(core: Core, conversation_id: str) -> list[int]:
    found = await look(
        core,
        "SELECT m.msg_type FROM messages m JOIN conversations c ON c.id=m.conv "
        "WHERE c.conversation_id=? AND m.msg_type>=100 ORDER BY m.seq",
        conversation_id,
    )
    return [msg_type for (msg_type,) in found]


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_group_changes_once_however_often_the_commit_is_lost(core_url: str, moment: Moment) -> None:
    async with core_behind_proxy(core_url) as (core, proxy):
        sprung = proxy.cut_at("COMMIT", moment)
        commits = CommitLog()
        core.store.seam.attach(commits)
        group = await core.groups.create("p0", name="team", member_ids=["p1", "p2"])
        [(_, created)] = commits.take()
        event = created.event
        assert (sprung.is_set(), event.seq, event.msg_type) == (True, 1, 101)
        assert msgspec.json.decode(event.content) == {"group_id": group.group_id, "name": "team", "by": "p0"}
        expected = [101]

        proxy.cut_at("COMMIT", moment, times=2)
        status, joined = await core.groups.join("p3", group.group_id)
        assert (status, joined.added, joined.member_epoch) == ("joined", ["p3"], 2)
        expected.append(102)

        proxy.cut_at("COMMIT", moment)
        invited = await core.groups.invite("p0", group.group_id, ["p4", "p3", "nobody"])
        assert invited.added == ["p4"]
        assert sorted(invited.skipped) == [("nobody", "user_not_found"), ("p3", "already_member")]
        expected.append(102)

        proxy.cut_at("COMMIT", moment)
        removed = await core.groups.remove("p0", group.group_id, "p3")
        assert (removed.event is not None, removed.member_epoch) == (True, 4)
        expected.append(104)

        proxy.cut_at("COMMIT", moment)
        left = await core.groups.leave("p4", group.group_id)
        assert left.event is not None
        expected.append(103)

        message = await say(core, "p1", group.group_id)
        proxy.cut_at("COMMIT", moment)
        recalled = await core.conversations.recall("p1", message.server_msg_id)
        assert recalled.event is not None, "it was recalled just now, and everybody has to hear of it"
        assert recalled.event.seq == recalled.seq
        again = await core.conversations.recall("p1", message.server_msg_id)
        assert (again.seq, again.event) == (recalled.seq, None)
        expected.append(100)

        await core.groups.update("p0", group.group_id, join_policy="approval")
        await core.groups.join("p5", group.group_id)
        proxy.cut_at("COMMIT", moment)
        await core.groups.decide_join("p0", group.group_id, "p5", accept=False)
        assert await core.groups.join_requests("p0", group.group_id) == []
        expected.append(107)

        sprung = proxy.cut_at("COMMIT", moment)
        dismissed = await core.groups.dismiss("p0", group.group_id)
        assert (sprung.is_set(), dismissed.event is not None) == (True, True)
        expected.append(108)

        sprung = proxy.cut_at("COMMIT", moment)
        await core.groups.dismiss("p0", group.group_id, delete=True)
        assert sprung.is_set()
        assert await events_of(core, group.conversation_id) == expected
    report = await check(parse_store_url(core_url))
    assert not report.counts, report.findings


@pytest.mark.parametrize("moment", MOMENTS)
async def test_cursors_move_once_and_are_told_once_when_the_commit_is_lost(core_url: str, moment: Moment) -> None:
    async with core_behind_proxy(core_url, receipts__flush_ms=10_000) as (core, proxy):
        told: list[tuple[str, int, int]] = []
        core.store.seam.attach(
            CommitLog(lambda moved: told.extend((one.user_id, one.delivered_to, one.read_to) for one in moved))
        )
        for _ in range(3):
            message = await say(core, "p0", "p1")
        proxy.cut_at("COMMIT", moment)
        assert await core.acknowledging.mark_read("p1", message.conversation_id, seq=2) == (2, 1)
        await core.acknowledging.ack_message("p1", "read", message.server_msg_id)
        sprung = proxy.cut_at("COMMIT", moment)
        await core.store.cursors.flush()
        assert sprung.is_set()
        assert (await core.conversations.heads("p1"))[0].unread == 0
        assert told == [("p1", 2, 2), ("p1", 3, 3)]
    report = await check(parse_store_url(core_url))
    assert not report.counts, report.findings


# -- the database itself ---------------------------------------------------------------------------------


class Acks:
    """What was acknowledged so far."""

    def __init__(self) -> None:
        self.all: list[Ack] = []
        self.refusals: set[str] = set()
        self._news = asyncio.Condition()

    async def add(self, ack: Ack) -> None:
        async with self._news:
            self.all.append(ack)
            self._news.notify_all()

    async def wait_for(self, more: int) -> None:
        wanted = len(self.all) + more
        async with asyncio.timeout(2 * PATIENCE_S), self._news:
            await self._news.wait_for(lambda: len(self.all) >= wanted)


async def keep_sending(core: Core, sender: str, target: str, acks: Acks) -> None:
    """As a client does: the same message again until it is acknowledged, then the next."""
    while True:
        client_msg_id = fresh_id()
        while True:
            try:
                sent = await send(core, sender, target, client_msg_id=client_msg_id)
            except NexoError as error:
                acks.refusals.add(error.name)
                await time_passes(0.05)
            else:
                await acks.add(ack_of(sent))
                break


async def test_a_database_that_crashes_under_load_loses_nothing_and_is_used_again(engine_name: str) -> None:
    with SERVER_ENGINES[engine_name]() as server:
        url = server.create_database()
        await migrate.upgrade(parse_store_url(url))
        acks = Acks()
        async with open_test_core(url, PEOPLE) as core:
            group_id, _ = await found_group(core, *PEOPLE)
            senders = [
                asyncio.create_task(keep_sending(core, user, target, acks))
                for n, user in enumerate(PEOPLE)
                for target in (group_id, PEOPLE[n - 1])
            ]
            for _ in range(3):
                await acks.wait_for(100)
                await asyncio.to_thread(server.kill)
                await asyncio.to_thread(server.start)
            # every sender goes on, not just one of them
            await acks.wait_for(500)
            for sender in senders:
                sender.cancel()
            await asyncio.gather(*senders, return_exceptions=True)
            page = await core.conversations.pull("p0", f"sg_{group_id}")
            assert page.messages
        assert acks.refusals <= {"server_busy"}
        await check_acks(url, acks.all)


async def come_and_go(core: Core, user: str, group_id: str, done: list[tuple[int, str]]) -> None:
    """Join and leave for ever, each until it is acknowledged; `done` gets the events that were promised."""
    while True:
        for change in (lambda: core.groups.join(user, group_id), lambda: core.groups.leave(user, group_id)):
            while True:
                try:
                    answer = await change()
                except NexoError as error:
                    if error.name != "server_busy":
                        raise
                    await time_passes(0.05)
                else:
                    event = (answer[1] if isinstance(answer[0], str) else answer).event
                    assert event is not None
                    done.append((event.msg_type, user))
                    break


async def test_connections_that_are_cut_all_the_time_lose_and_double_nothing(core_url: str) -> None:
    print(f"NEXO_TEST_SEED={SEED}")  # pytest shows it when the test fails
    moments = random.Random(SEED)
    acks = Acks()
    changes: list[tuple[int, str]] = []
    async with core_behind_proxy(core_url) as (core, proxy):
        group_id, conversation_id = await found_group(core, *PEOPLE[:4])
        working = [
            asyncio.create_task(keep_sending(core, user, target, acks))
            for n, user in enumerate(PEOPLE[:4])
            for target in (group_id, PEOPLE[n - 1])
        ]
        working += [asyncio.create_task(come_and_go(core, user, group_id, changes)) for user in PEOPLE[4:]]
        for _ in range(60):
            await time_passes(moments.uniform(0.01, 0.1))
            match moments.randrange(3):
                case 0:
                    proxy.cut()
                case 1:
                    proxy.cut_at("COMMIT", moments.choice(MOMENTS))
                case 2:
                    proxy.cut_at(moments.choice(["BEGIN", "hello", conversation_id]), moments.choice(MOMENTS))
            for task in working:
                if task.done():
                    task.result()
        await acks.wait_for(100)
        for task in working:
            task.cancel()
        await asyncio.gather(*working, return_exceptions=True)
    assert acks.refusals <= {"server_busy"}
    async with open_test_core(core_url) as core:
        found = await look(
            core,
            "SELECT m.msg_type,m.sender_id FROM messages m JOIN conversations c ON c.id=m.conv "
            "WHERE c.conversation_id=? AND m.msg_type IN (102,103) ORDER BY m.seq",
            conversation_id,
        )
    for user in PEOPLE[4:]:
        promised = [change for change in changes if change[1] == user]
        stored = [change for change in found if change[1] == user]
        # the last one may have been cancelled before its answer
        assert promised in (stored, stored[:-1])
    await check_acks(core_url, acks.all)


async def test_a_database_that_hangs_refuses_in_time_and_then_goes_on(core_url: str) -> None:
    async with core_behind_proxy(core_url) as (core, proxy):
        group_id, conversation_id = await found_group(core, *PEOPLE)
        await say(core, "p0", "p1")
        proxy.stall()

        async def refused_after(sender: str, target: str, name: str) -> float:
            async with loop_time() as taken:
                with refused("server_busy"):  # never acknowledged by a database that hangs
                    await send(core, sender, target, client_msg_id=name)
            return taken.seconds

        began = time.monotonic()
        first = asyncio.create_task(refused_after("p0", "p1", "first"))
        await until(lambda: proxy.held)  # it has entered a transaction: its outcome is awaited; the others only wait
        others = [asyncio.create_task(refused_after("p2", group_id, f"other{n}")) for n in range(50)]
        assert max(await asyncio.gather(*others)) < 4
        assert await first < 6
        await time_passes(max(0, 10 - (time.monotonic() - began)))
        proxy.flow()
        async with loop_time() as taken:
            again = [await send(core, "p2", group_id, client_msg_id=f"other{n}") for n in range(50)]
        assert taken.seconds < 20
        assert [sent.message.seq for sent in again] == list(range(2, 52))
        assert all(sent.fresh for sent in again)
        page = await core.conversations.pull("p0", conversation_id)
        assert page.head_seq == 51
    stored = await check_acks(core_url, map(ack_of, again))
    assert "first" not in stored, "a refusal says that it was surely not saved"


async def test_callers_that_give_up_leave_no_connection_and_no_lock_behind(core_url: str) -> None:
    async with core_behind_proxy(core_url, store__pool_size=3) as (core, proxy):
        group_id, conversation_id = await found_group(core, *PEOPLE)
        for round_ in range(3):
            proxy.stall()
            patient = [asyncio.create_task(core.conversations.pull("p0", conversation_id)) for _ in range(10)]
            giving_up = [asyncio.create_task(core.conversations.pull("p1", conversation_id)) for _ in range(10)]
            giving_up += [
                asyncio.create_task(core.groups.update("p0", group_id, name=f"name {round_} {n}")) for n in range(10)
            ]
            await until(lambda: proxy.held >= 3)
            for task in giving_up:
                task.cancel()
            await asyncio.gather(*giving_up, return_exceptions=True)
            proxy.flow()
            async with asyncio.timeout(PATIENCE_S):
                assert all(page.messages for page in await asyncio.gather(*patient))
                await core.groups.update("p0", group_id, name=f"round {round_}")
                await say(core, "p1", group_id)
        # a change goes on when its caller gives up, and may get the lock after a later one; then nothing is under way
        await until(lambda: not core.store.database._changes)
        await core.groups.update("p0", group_id, name="after all rounds")
        assert (await core.groups.info(group_id)).name == "after all rounds"
    report = await check(parse_store_url(core_url))
    assert not report.counts, report.findings
