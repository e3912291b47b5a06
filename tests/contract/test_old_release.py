"""A database of release 0.1, filled, is brought to the newest schema on every engine: no row is lost or changed."""

from __future__ import annotations

import asyncio

import pytest

from harness.core import open_test_core, say
from harness.history import PEOPLE, History
from harness.old_schema import RELEASE_0_1, Rows, fill_previous, read_rows
from nexo.config import parse_store_url
from nexo.store import migrate
from nexo.store.check import check
from nexo.store.schema_version import newest


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """Returns the rows of chats and groups with recalls, mentions, blocks, joins and leaves."""
    url = f"sqlite:///{tmp_path_factory.mktemp('lived')}/nexo.db"

    async def live() -> Rows:
        await migrate.upgrade(parse_store_url(url))
        async with open_test_core(url, PEOPLE) as core:
            await History(core, 11).live(250, changes=False)
        return await read_rows(parse_store_url(url))

    return asyncio.run(live())


async def test_every_row_of_release_0_1_is_there_after_the_upgrade(lived: Rows, store_url: str) -> None:
    url = parse_store_url(store_url)
    await fill_previous(url, lived, RELEASE_0_1)
    assert await migrate.current(url) == RELEASE_0_1
    before = await read_rows(url)
    assert all(before[table] for table in ("users", "conversations", "members", "messages", "mentions", "blocks"))
    await migrate.upgrade(url)
    assert await migrate.current(url) == newest()
    after = await read_rows(url)
    for table, rows in before.items():
        kept = [{name: row[name] for name in rows[0]} for row in after[table]] if rows else []
        assert kept == rows, table
    assert (await check(url)).counts == {}
    async with open_test_core(store_url) as core:
        sent = await say(core, PEOPLE[0], PEOPLE[1], "after the upgrade")
        assert (await core.conversations.pull(PEOPLE[1], sent.conversation_id)).messages[-1].seq == sent.seq
    assert (await check(url)).counts == {}
