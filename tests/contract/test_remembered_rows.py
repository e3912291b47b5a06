"""SQLite: rows of conversations and members are kept in memory between transactions, and never beyond the moment in
which they may differ from what is stored."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from harness.core import found_group, look, open_test_core, refused, run, say
from harness.statements import recorded
from nexo.assembly.core import Core
from nexo.store.engines.sqlite import statements
from nexo.store.engines.sqlite.statements import SqliteHot

PEOPLE = ("alice", "bob", "carol")
NAME = "si_alice:bob"
pytestmark = pytest.mark.parametrize("engine_name", ["sqlite"], indirect=True)


def as_another_process(url: str, statement: str) -> None:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"), timeout=5)) as connection, connection:
        connection.execute(statement)


async def seqs(core: Core) -> list[int]:
    found = await look(core, "SELECT seq FROM messages WHERE conv=(SELECT id FROM conversations WHERE "
                             "conversation_id=?) ORDER BY seq", NAME)  # fmt: skip
    return [row[0] for row in found]


async def test_a_second_send_does_not_ask_for_rows_that_are_known(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        await say(core, "alice", "bob")
        await say(core, "alice", "bob")
        with recorded(core) as recording:
            await say(core, "alice", "bob")
        assert not [statement for statement in recording.statements if statement.sql.startswith("SELECT")]


async def test_what_another_process_changes_counts_at_once(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        await say(core, "alice", "bob")
        await say(core, "bob", "alice")
        as_another_process(core_url, "UPDATE members SET blocked=1 WHERE user_id='bob'")
        with refused("blocked"):
            await say(core, "bob", "alice")
        as_another_process(core_url, "UPDATE members SET blocked=0")
        as_another_process(core_url, "UPDATE conversations SET head_seq=head_seq+5,countable=countable+5")
        assert (await say(core, "bob", "alice")).seq == 8


async def test_what_another_script_of_ours_changes_counts_at_once(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, _ = await found_group(core, "alice", "bob", "carol")
        await say(core, "bob", group_id)
        await core.groups.mute("alice", group_id, "bob", 60)
        with refused("speak_muted"):
            await say(core, "bob", group_id)
        await run(core, "UPDATE members SET muted_until=0")
        await say(core, "bob", group_id)


@contextmanager
def failing(statement: str, sql: str) -> Iterator[None]:
    kept = getattr(SqliteHot, statement)
    setattr(SqliteHot, statement, sql)
    try:
        yield
    finally:
        setattr(SqliteHot, statement, kept)


@pytest.mark.parametrize("statement", ["_insert", "_grow", "_step"])
async def test_a_transaction_that_fails_half_way_leaves_nothing_in_memory(core_url: str, statement: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        for _ in range(3):
            await say(core, "alice", "bob")
        with failing(statement, "UPDATE nothing SET a=?"), refused("internal_error"):
            await say(core, "alice", "bob")
        assert (await say(core, "alice", "bob")).seq == 4
        assert await seqs(core) == [1, 2, 3, 4]


async def test_a_commit_that_fails_leaves_nothing_in_memory(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE, send__deadline_ms=500) as core:
        await say(core, "alice", "bob")
        # a deferred constraint is judged by COMMIT, behind everything that the script did
        await run(core, "CREATE TABLE parent (id INTEGER PRIMARY KEY)")
        await run(core, "CREATE TABLE child (id INTEGER REFERENCES parent(id) DEFERRABLE INITIALLY DEFERRED)")
        await run(core, "CREATE TRIGGER orphan AFTER INSERT ON messages BEGIN INSERT INTO child VALUES (new.seq); END")
        await run(core, "INSERT INTO parent VALUES (4)")
        await _enforce(core, True)
        with refused("internal_error"):
            await say(core, "alice", "bob")
        await _enforce(core, False)
        assert (await say(core, "alice", "bob")).seq == 2
        assert await seqs(core) == [1, 2]


async def _enforce(core: Core, on: bool) -> None:
    """Of the writer's connection; it can be said outside a transaction only."""
    engine: Any = core.store.database.engine
    engine._writes.put(lambda connection: connection.execute(f"PRAGMA foreign_keys={int(on)}"))
    await look(core, "SELECT 1")


async def test_cursors_and_sends_see_each_other(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        for _ in range(3):
            await say(core, "alice", "bob")
        assert await core.store.conversations.mark_read("bob", NAME, 2) == (2, 1)
        await say(core, "alice", "bob")
        await say(core, "bob", "alice")
        assert await core.store.conversations.mark_read("bob", NAME, 4) == (5, 0)
        assert await core.store.conversations.mark_read("alice", NAME, 5) == (5, 0)
        ((own_above, read_seq),) = await look(core, "SELECT own_above,read_seq FROM members WHERE user_id='bob'")
        assert (own_above, read_seq) == (0, 5)


async def test_memory_is_bounded(core_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statements, "REMEMBERED_MAX", 3)
    async with open_test_core(core_url, PEOPLE) as core:
        for n in range(3):
            for sender, receiver in (("alice", "bob"), ("bob", "carol"), ("carol", "alice")):
                assert (await say(core, sender, receiver)).seq == n + 1
        hot: Any = core.store.committer._hot_sql
        assert len(hot._conversations) + len(hot._members) <= 3 + 2
