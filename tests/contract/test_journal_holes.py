"""Numbers of journal rows are given out before the commit: rows that come late are waited for, never passed."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from harness import sql
from harness.core import look, open_test_core, run, say
from harness.engines import SERVER_ENGINES
from harness.journal import BEGINNING, read_all, rows_of, seqs_of
from harness.proxy import Moment, proxy_to
from harness.servers import Postgres
from harness.sql import Run
from harness.waiting import time_passes, until
from nexo.assembly.core import Core
from nexo.config import parse_store_url
from nexo.core.journal import Place
from nexo.store import migrate
from nexo.store.journal import reading

pytestmark = pytest.mark.parametrize(
    "engine_name", [pytest.param(engine, marks=pytest.mark.servers) for engine in SERVER_ENGINES]
)
PEOPLE = ("alice", "bob", "carol")
CHAT = "si_alice:bob"
PATIENT = {"store__lock_timeout_ms": 20_000}
LATE = 'INSERT INTO journal (at,entries) VALUES (1,\'[[2,"carol","updated"]]\')'


@asynccontextmanager
async def in_flight(core: Core, url: str) -> AsyncIterator[Run]:
    """A transaction that has written its row of the journal and is not committed; a later one is."""
    async with sql.connected(url) as other:
        await other("BEGIN")
        await other(LATE)
        await say(core, "alice", "bob")
        yield other


async def age(core: Core) -> None:
    """What is visible was written long ago."""
    await run(core, "UPDATE journal SET at=1")


async def test_a_row_that_becomes_visible_late_is_waited_for(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core, in_flight(core, core_url) as other:
        page = await core.store.journal.page(BEGINNING, 10)
        assert (page.entries, page.place, page.is_waiting) == ([], BEGINNING, True)
        await other("COMMIT")
        assert [entry.user_id for entry in await read_all(core)] == ["carol", "alice"]
        assert len(await rows_of(core)) == 2


async def test_an_old_hole_is_not_closed_while_its_transaction_is_under_way(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE, **PATIENT) as core, in_flight(core, core_url) as other:
        await age(core)
        closing = asyncio.create_task(core.store.journal.page(BEGINNING, 10))
        await _wait_until_waiting(core)
        assert not closing.done()
        await other("COMMIT")
        page = await closing
        assert [entry.user_id for entry in page.entries] == ["carol", "alice"]


async def test_a_hole_whose_transaction_is_rolled_back_is_closed_by_the_one_who_waits(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE, **PATIENT) as core, in_flight(core, core_url) as other:
        await age(core)
        closing = asyncio.create_task(core.store.journal.page(BEGINNING, 10))
        await _wait_until_waiting(core)
        await other("ROLLBACK")
        page = await closing
        assert seqs_of(page.entries) == [(CHAT, 1)]
        assert (await rows_of(core))[0][1] == "[]"
        assert "nexo_journal_holes_closed_total" in {sample.name for sample in core.store.samples() if sample.value}


async def test_a_transaction_that_stays_open_for_seconds_stops_the_reader_and_nothing_is_lost(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE, store__lock_timeout_ms=1000) as core:
        async with in_flight(core, core_url) as other:
            await age(core)
            began = time.monotonic()
            page = await core.store.journal.page(BEGINNING, 10)
            assert (page.entries, page.is_waiting) == ([], True)
            assert time.monotonic() - began >= 0.9, "the reader waited for the transaction as long as it may"
            assert (await say(core, "alice", "bob")).seq == 2, "sends do not wait"
            await other("COMMIT")
        assert [entry.user_id for entry in await read_all(core)] == ["carol", "alice", "alice"]


async def test_from_now_on_begins_before_what_is_not_committed(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE, **PATIENT) as core, in_flight(core, core_url) as other:
        beginning = asyncio.create_task(core.store.journal.now())
        await _wait_until_waiting(core)
        assert not beginning.done()
        await other("COMMIT")
        place = await beginning
        assert place == Place(2, 0)
        await say(core, "alice", "bob")
        assert seqs_of(await read_all(core, place)) == [(CHAT, 2)]


async def test_a_number_that_a_reader_has_closed_is_refused_and_the_send_gets_another(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        await say(core, "alice", "bob")
        postgres = core.store.database.engine.name == "postgresql"
        if postgres:
            async with sql.connected(core_url) as other:
                await other("SELECT setval('journal_id_seq',1,false)")  # the next number is 1, which is taken
        else:
            async with sql.connected(core_url) as other:
                await other(
                    "CREATE TRIGGER taken BEFORE INSERT ON journal FOR EACH ROW BEGIN "
                    "IF @taken IS NULL THEN SET @taken=1; SET NEW.id=1; END IF; END"
                )
        try:
            assert (await say(core, "alice", "bob")).seq == 2
            assert core.store.committer.meter.troubles["again"] >= 1
            assert core.store.committer.meter.troubles.get("conflict", 0) == 0
            await core.store.conversations.mark_read("bob", CHAT, 2)
        finally:
            if not postgres:
                async with sql.connected(core_url) as other:
                    await other("DROP TRIGGER taken")
        entries = await read_all(core)
        assert [entry.type for entry in entries] == ["message.saved"] * 2 + ["conversation.read"]


async def test_many_holes_are_closed_at_once(core_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "CLOSED_AT_ONCE", 20)
    async with open_test_core(core_url, PEOPLE) as core:
        async with sql.connected(core_url) as other:
            await other("BEGIN")
            for _ in range(33):
                await other(LATE)
            await other("ROLLBACK")
        await say(core, "alice", "bob")
        await age(core)
        assert seqs_of(await read_all(core)) == [(CHAT, 1)]
        assert len(await rows_of(core)) == 34


async def test_two_readers_close_the_same_holes(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        async with sql.connected(core_url) as other:
            for _ in range(5):
                await other("BEGIN")
                await other(LATE)
                await other("ROLLBACK")
                await say(core, "alice", "bob")
        await age(core)
        first, second = await asyncio.gather(read_all(core), read_all(core))
        assert first == second
        assert seqs_of(first) == [(CHAT, n) for n in range(1, 6)]


@pytest.mark.parametrize("moment", [Moment.BEFORE, Moment.AFTER])
async def test_a_commit_of_unknown_end_leaves_one_reference_to_each_message(core_url: str, moment: Moment) -> None:
    async with proxy_to(core_url) as proxy, open_test_core(proxy.url, PEOPLE) as core:
        await say(core, "alice", "bob")
        sprung = proxy.cut_at("COMMIT", moment, times=3)
        await asyncio.gather(*(say(core, "alice", "bob") for _ in range(30)))
        assert sprung.is_set()
        assert seqs_of(await read_all(core)) == [(CHAT, n) for n in range(1, 32)]


async def test_trimming_does_not_pass_a_hole_that_a_transaction_may_still_fill(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE, **PATIENT) as core, in_flight(core, core_url) as other:
        await say(core, "alice", "bob")
        await say(core, "alice", "bob")
        await age(core)
        trimming = asyncio.create_task(core.store.journal.trim(1000))
        await _wait_until_waiting(core)
        await other("COMMIT")
        assert await trimming == 3
        assert await core.store.journal.oldest() == Place(3, 0)


async def test_a_database_that_crashes_leaves_holes_and_no_entry_is_lost(engine_name: str) -> None:
    with SERVER_ENGINES[engine_name]() as server:
        url = server.create_database()
        await migrate.upgrade(parse_store_url(url))
        async with open_test_core(url, PEOPLE) as core:
            for _ in range(5):
                await say(core, "alice", "bob")
            before = await read_all(core)
            place = await core.store.journal.now()
            server.kill()
            server.start()
            for _ in range(5):
                await _say_again(core)
            numbers = [row[0] for row in await rows_of(core)]
            assert (numbers[-1] > 10) is (isinstance(server, Postgres)), "the sequence goes on behind a gap"
            await age(core)
            after = await read_all(core, place)
            assert seqs_of(before + after) == [(CHAT, n) for n in range(1, 11)]


async def _say_again(core: Core) -> None:
    """A send to a server that is just starting may be refused."""
    client_msg_id = f"again{time.monotonic_ns()}"

    async def is_said() -> bool:
        with contextlib.suppress(Exception):
            await say(core, "alice", "bob", client_msg_id=client_msg_id)
            return True
        return False

    await until(is_said, patience_s=60)


async def _wait_until_waiting(core: Core) -> None:
    """Until a transaction waits for a lock of another one."""
    question = (
        "SELECT COUNT(*) FROM pg_locks WHERE NOT granted"
        if core.store.database.engine.name == "postgresql"
        else "SELECT COUNT(*) FROM information_schema.innodb_lock_waits"
    )

    async def one_waits() -> bool:
        await time_passes(0.15)  # MariaDB looks again only if it was not asked for a tenth of a second
        return bool((await look(core, question))[0][0])

    await until(one_waits)
