"""Readers of the journal use messages that this instance keeps in memory, and see nothing else than the rows."""

from __future__ import annotations

import asyncio

import pytest

from harness.core import found_group, open_test_core, run, say
from harness.journal import read_all
from harness.statements import Recording, recorded
from nexo.assembly.core import Core
from nexo.core.journal import JournalEntry, Place
from nexo.core.model import Message
from nexo.core.moderation import VersionCause
from nexo.store import message_versions
from nexo.store.journal.sql_journal import SqlJournal

PEOPLE = ("alice", "bob", "carol")


async def known_chat(core: Core) -> Place:
    """Make a chat that readers know. Returns the place after it."""
    await read_all(core)  # from now on there is a reader
    await say(core, "alice", "bob")
    await read_all(core)
    return await core.store.journal.now()


async def from_rows(core: Core, place: Place) -> list[JournalEntry]:
    """Return the entries as another instance reads them."""
    page = await SqlJournal(core.store.database, core.store.committer._hot_sql).page(place, 1000)
    return page.entries


def message_reads(recording: Recording) -> int:
    """Return how many statements have read whole messages."""
    return sum("t.server_msg_id" in statement.sql for statement in recording.reads)


async def test_entries_from_memory_equal_those_of_the_rows(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        await known_chat(core)
        group_id, _ = await found_group(core, "alice", "bob", "carol")
        first = await say(core, "alice", group_id)
        await read_all(core)
        place = await core.store.journal.now()
        await asyncio.gather(
            say(core, "alice", "bob", content="你好", extra={"a": 1}),
            say(core, "bob", "alice", content={"any": "thing"}, msg_type=6),
            say(core, "bob", group_id, mentions=["alice"]),
            say(core, "alice", group_id, mentions=["@all"]),
            say(core, "carol", group_id, reply_to=str(first.server_msg_id)),
            say(core, "alice", "carol", content="a new chat"),
            say(core, "alice", "bob", content="x" * 4000),
        )
        with recorded(core) as recording:
            found = await read_all(core, place)
        assert found == await from_rows(core, place)
        assert len(found) == 7
        assert recording.count > 0


async def test_what_is_kept_is_not_read_back(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        place = await known_chat(core)
        sent = [await say(core, "alice", "bob", content=str(number)) for number in range(5)]
        with recorded(core) as recording:
            found = await read_all(core, place)
        assert [entry.data for entry in found] == sent
        assert message_reads(recording) == 0
        assert found == await from_rows(core, place)


@pytest.mark.parametrize("keep_days", [0, 7])
async def test_what_was_recalled_meanwhile_is_blank_and_the_others_stay_in_memory(
    core_url: str, keep_days: int
) -> None:
    async with open_test_core(core_url, PEOPLE, recall__keep_days=keep_days) as core:
        place = await known_chat(core)
        sent = [await say(core, "alice", "bob", content=text) for text in ("one", "a secret", "three")]
        await core.conversations.recall("alice", sent[1].server_msg_id)
        found = await read_all(core, place)
        assert found == await from_rows(core, place)
        contents = [entry.data.content for entry in found if isinstance(entry.data, Message)]
        assert contents == ['"one"', '""', '"three"']


async def test_what_was_changed_and_has_a_version_is_read_back(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        place = await known_chat(core)
        sent = await say(core, "alice", "bob", content="before")
        await core.store.database.write(lambda: message_versions.keep(sent, 1, "alice", VersionCause.EDIT))
        await run(core, "UPDATE messages SET content=? WHERE server_msg_id=?", '"after"', sent.server_msg_id)
        (found,) = await read_all(core, place)
        assert isinstance(found.data, Message)
        assert found.data.content == '"after"'


@pytest.mark.parametrize("max_bytes", [600, 4000, 1 << 20])
async def test_pages_from_memory_have_bounds_and_miss_nothing(core_url: str, max_bytes: int) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        place = await known_chat(core)
        await asyncio.gather(*(say(core, "alice", "bob", content="x" * 500) for _ in range(20)))
        expected = await from_rows(core, place)
        found: list[JournalEntry] = []
        while True:
            page = await core.store.journal.page(place, 6, max_bytes=max_bytes)
            assert len(page.entries) <= 6
            assert len(page.entries) <= max(1, 2 * max_bytes // 500)
            found += page.entries
            if page.place == place:
                break
            place = page.place
        assert found == expected
