"""Consumers of the journal: each gets everything in order, goes on where it was, and runs in one place at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from harness.core import look, open_test_core, run, say
from harness.journal import seqs_of
from harness.store import make_config
from harness.waiting import until
from nexo.assembly.core import Core
from nexo.assembly.messaging import make_messaging
from nexo.background import Background
from nexo.bus.local import LocalBus
from nexo.core.journal import JournalEntry, Place
from nexo.errors import NexoError
from nexo.journal import consumer as consumer_module
from nexo.journal import housekeeping
from nexo.journal.consumer import Consumer
from nexo.journal.journal import Journal
from nexo.metrics.families import Sample

PEOPLE = ("alice", "bob", "carol")
CHAT = "si_alice:bob"


class Reader:
    """A consumer's function that notes what it gets, and fails or blocks when it is wanted to."""

    def __init__(self) -> None:
        self.entries: list[JournalEntry] = []
        self.pages: list[int] = []
        self.failures_left = 0
        self.open = asyncio.Event()
        self.open.set()
        self._news = asyncio.Condition()

    async def __call__(self, entries: Sequence[JournalEntry]) -> None:
        await self._note(entries)
        await self.open.wait()
        if self.failures_left:
            self.failures_left -= 1
            raise RuntimeError("it fails")

    async def _note(self, entries: Sequence[JournalEntry]) -> None:
        async with self._news:
            self.entries += entries
            self.pages.append(len(entries))
            self._news.notify_all()

    async def until(self, count: int, timeout_s: float = 30) -> None:
        async with asyncio.timeout(timeout_s), self._news:
            await self._news.wait_for(lambda: len(self.entries) >= count)

    @property
    def seqs(self) -> list[int]:
        return [seq for _, seq in seqs_of(self.entries)]


@asynccontextmanager
async def instance(core: Core, owner: str, **settings: Any) -> AsyncIterator[Journal]:
    """An instance's journal on the store of a core."""
    background = Background()
    chosen = {"journal__poll_ms": 20, **settings}
    journal = Journal(core.store.journal, make_config(**chosen), background, owner)
    try:
        yield journal
    finally:
        await journal.stop()
        await background.stop()


async def stored_place(core: Core, name: str) -> Place | None:
    found = await look(core, "SELECT position,part FROM journal_consumers WHERE name=?", name)
    return Place(*found[0]) if found else None


async def until_stored(core: Core, name: str, place: Place) -> None:
    async def is_stored() -> bool:
        return await stored_place(core, name) == place

    await until(is_stored)


async def until_taken(core: Core, name: str, owner: str) -> None:
    async def is_taken() -> bool:
        return await look(core, "SELECT owner FROM journal_consumers WHERE name=?", name) == [(owner,)]

    await until(is_taken)


UNKNOWN = Sample("", (), -1)


def measured(journal: Journal) -> dict[str, Sample]:
    return {sample.name: sample for sample in journal.samples()}


async def expire(core: Core, name: str) -> None:
    """Time passes without a renewal."""
    await run(core, "UPDATE journal_consumers SET expires_at=1 WHERE name=?", name)


# -- what a consumer gets ------------------------------------------------------------------------------


async def test_a_consumer_gets_everything_in_order_and_goes_on_where_it_was(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        reader = Reader()
        for n in range(3):
            await say(core, "alice", "bob")
            async with instance(core, f"i{n}") as journal:
                journal.add(Consumer("c", reader, from_now=False))
                await say(core, "alice", "bob")
                await until_stored(core, "c", Place(2 * n + 2, 0))
        assert reader.seqs == [1, 2, 3, 4, 5, 6]


async def test_a_new_consumer_begins_with_what_is_committed_from_now_on(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        await say(core, "alice", "bob")
        reader = Reader()
        async with instance(core, "i") as journal:
            journal.add(Consumer("c", reader, types={"message.saved"}))
            await until_taken(core, "c", "i")
            await say(core, "alice", "bob")
            await reader.until(1)
        assert reader.seqs == [2]


async def test_a_consumer_that_fails_gets_the_same_again(core_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_module, "PAUSES_S", (0.01,))
    async with open_test_core(core_url, PEOPLE) as core:
        for _ in range(3):
            await say(core, "alice", "bob")
        reader = Reader()
        reader.failures_left = 2
        async with instance(core, "i") as journal:
            journal.add(Consumer("c", reader, from_now=False))
            await reader.until(9)
            await until_stored(core, "c", Place(3, 0))
            counted = measured(journal)
        assert reader.seqs == [1, 2, 3] * 3
        assert counted["nexo_journal_failures_total"].value == 2
        assert counted["nexo_journal_entries_total"].value == 3


async def test_one_consumer_that_stands_still_delays_neither_another_nor_a_send(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        slow, quick = Reader(), Reader()
        slow.open.clear()
        async with instance(core, "i") as journal:
            journal.add(Consumer("slow", slow, from_now=False))
            journal.add(Consumer("quick", quick, from_now=False))
            await say(core, "alice", "bob")
            await slow.until(1)
            for _ in range(20):
                await say(core, "alice", "bob")
            await quick.until(21)
            assert slow.seqs == [1], "it holds one page"
            slow.open.set()
            await slow.until(21)
        assert slow.seqs == quick.seqs == list(range(1, 22))


async def test_pages_are_bounded(core_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_module, "PAGE_ENTRIES", 10)
    async with open_test_core(core_url, PEOPLE) as core:
        await say(core, "alice", "bob")
        await asyncio.gather(*(say(core, "alice", "bob") for _ in range(49)))
        reader = Reader()
        async with instance(core, "i") as journal:
            journal.add(Consumer("c", reader, from_now=False))
            await reader.until(50)
        assert reader.pages == [10] * 5
        assert reader.seqs == list(range(1, 51))


async def test_a_consumer_is_woken_by_a_commit_here(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        reader = Reader()
        async with instance(core, "i", journal__poll_ms=10_000) as journal:
            journal.add(Consumer("c", reader, from_now=False))
            await until_taken(core, "c", "i")
            began = time.monotonic()
            for n in range(1, 6):
                await say(core, "alice", "bob")
                journal.wake()
                await reader.until(n)
            assert time.monotonic() - began < 5


async def test_a_consumer_that_lagged_behind_what_is_kept_goes_on_and_counts_what_it_lost(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        reader = Reader()
        async with instance(core, "i") as journal:
            journal.add(Consumer("c", reader, from_now=False))
            await say(core, "alice", "bob")
            await reader.until(1)
            await until_stored(core, "c", Place(1, 0))
        for _ in range(5):
            await say(core, "alice", "bob")
        await run(core, "UPDATE journal SET at=1 WHERE id<=?", 4)
        assert await core.store.journal.trim(1000) == 4
        async with instance(core, "i") as journal:
            journal.add(Consumer("c", reader, from_now=False))
            await reader.until(3)
            counted = measured(journal)
        assert reader.seqs == [1, 5, 6]
        assert counted["nexo_journal_lost_rows_total"].value == 3


# -- one instance at a time ----------------------------------------------------------------------------


async def test_a_consumer_runs_on_one_instance_and_another_takes_over_when_that_stops(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        first, second = Reader(), Reader()
        async with instance(core, "one") as one:
            one.add(Consumer("c", first, from_now=False))
            await until_taken(core, "c", "one")
            async with instance(core, "two") as two:
                two.add(Consumer("c", second, from_now=False))
                await say(core, "alice", "bob")
                await until_stored(core, "c", Place(1, 0))
                await one.stop()
                await say(core, "alice", "bob")
                await second.until(1)
        assert (first.seqs, second.seqs) == ([1], [2])


async def test_another_instance_takes_over_in_time_when_one_vanishes(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        await say(core, "alice", "bob")
        lease = await core.store.journal.take("c", "vanished", 1 * 0.6, from_now=False)
        assert lease is not None
        began = time.monotonic()
        reader = Reader()
        async with instance(core, "two", journal__takeover_s=1) as two:
            two.add(Consumer("c", reader, from_now=False))
            await reader.until(1)
            assert 0.5 < time.monotonic() - began < 20, "1 s on a machine that has time"


async def test_an_owner_that_was_paused_cannot_move_the_place(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        journal = core.store.journal
        for _ in range(3):
            await say(core, "alice", "bob")
        old = await journal.take("c", "old", 60, from_now=False)
        assert old is not None
        assert (old.epoch, old.place) == (1, Place(0, 0))
        assert await journal.save(old, Place(1, 0))
        assert await journal.take("c", "early", 60, from_now=False) is None
        await expire(core, "c")
        assert await journal.renew(old, 60), "it is late, and no other owner has taken it"
        await expire(core, "c")
        new = await journal.take("c", "new", 60, from_now=False)
        assert new is not None
        assert (new.epoch, new.place) == (2, Place(1, 0))
        assert not await journal.save(old, Place(3, 0))
        assert not await journal.renew(old, 60)
        await journal.release(old)
        assert await stored_place(core, "c") == Place(1, 0)
        assert await journal.save(new, Place(2, 0))
        assert await journal.take("c", "other", 60, from_now=False) is None
        await journal.release(new)
        last = await journal.take("c", "other", 60, from_now=False)
        assert last is not None
        assert (last.epoch, last.place) == (3, Place(2, 0))


async def test_the_work_of_an_instance_that_lost_its_lease_is_cancelled_and_repeated_by_the_next(
    core_url: str,
) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        await say(core, "alice", "bob")
        first, second = Reader(), Reader()
        first.open.clear()
        async with instance(core, "one", journal__takeover_s=2) as one:
            one.add(Consumer("c", first, from_now=False))
            await first.until(1)
            await expire(core, "c")
            taken = await core.store.journal.take("c", "two", 60, from_now=False)
            assert taken is not None
            await until(lambda: one._loops["c"]._holding.lease is None)
            assert await stored_place(core, "c") == Place(0, 0)
            await one.remove("c")
            await core.store.journal.release(taken)
            async with instance(core, "three") as three:
                three.add(Consumer("c", second, from_now=False))
                await second.until(1)
        assert first.seqs == second.seqs == [1]


async def test_many_that_take_a_new_consumer_at_once_make_one(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        await say(core, "alice", "bob")
        taken = await asyncio.gather(*(core.store.journal.take("c", f"o{n}", 60, from_now=True) for n in range(5)))
        assert len([lease for lease in taken if lease is not None]) == 1
        assert await stored_place(core, "c") == Place(1, 0)


# -- housekeeping --------------------------------------------------------------------------------------


async def test_housekeeping_trims_what_is_old_and_tells_how_far_consumers_are(
    core_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "EVERY_S", 0.05)
    async with open_test_core(core_url, PEOPLE) as core:
        reader = Reader()
        async with instance(core, "i", journal__retention_h=1) as journal:
            journal.add(Consumer("c", reader, from_now=False))
            await say(core, "alice", "bob")
            await until_stored(core, "c", Place(1, 0))
            await journal.remove("c")
            for _ in range(5):
                await say(core, "alice", "bob")
            await run(core, "UPDATE journal SET at=at-3700000 WHERE id<=?", 3)
            journal.start()
            await until(lambda: measured(journal).get("nexo_journal_rows", UNKNOWN).value == 3)
            samples = measured(journal)
        assert samples["nexo_journal_newest"].value == 6
        assert samples["nexo_journal_consumer_lag_rows"][1:] == (("c",), 5)
        lag_s = samples["nexo_journal_consumer_lag_seconds"].value
        assert isinstance(lag_s, float)
        assert 0 <= lag_s < 60


async def test_chores_are_done_step_by_step_and_again_after_a_failure(
    core_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "EVERY_S", 0.02)
    monkeypatch.setattr(housekeeping, "STEP_PAUSE_S", 0.0)
    left: list[int | None] = [2, 1, 0, None, 1, 0]
    async with open_test_core(core_url) as core, instance(core, "i") as journal:

        async def step() -> int:
            done = left.pop(0) if left else 0
            if done is None:
                raise NexoError("server_busy")
            return done

        journal.add_chore(housekeeping.Chore("x", step, every_s=0.0))
        journal.start()
        await until(lambda: not left)


async def test_a_server_deletes_originals_of_messages_when_their_time_is_over(
    core_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "EVERY_S", 0.02)
    async with open_test_core(core_url, PEOPLE) as core:
        old, new = [await say(core, "alice", "bob", text) for text in ("old", "new")]
        for sent in (old, new):
            await core.conversations.recall("alice", sent.server_msg_id)
        month_ms = 30 * 86_400_000
        await run(
            core,
            "UPDATE message_versions SET replaced_at=replaced_at-? WHERE server_msg_id=?",
            month_ms,
            old.server_msg_id,
        )
        background = Background()
        journal = make_messaging(core, LocalBus(), background, "i").journal
        journal.start()

        async def only_the_new_one() -> bool:
            kept = await look(core, "SELECT server_msg_id FROM message_versions")
            return [row[0] for row in kept] == [new.server_msg_id]

        try:
            await until(only_the_new_one)
        finally:
            await journal.stop()
            await background.stop()
