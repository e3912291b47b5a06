"""`nexo journal` on every engine."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from typer.testing import CliRunner, Result

from harness.core import open_test_core, say
from nexo.cli import app
from nexo.core.journal import Place


def nexo(url: str, *arguments: str) -> Result:
    """In a thread of its own: a command has an event loop of its own."""
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(1) as pool:
        patch.setenv("NEXO_STORE__URL", url)
        patch.setenv("COLUMNS", "200")
        return pool.submit(CliRunner().invoke, app, ["journal", *arguments]).result()


async def test_the_command_shows_what_is_kept_and_how_far_each_consumer_is(core_url: str) -> None:
    empty = await asyncio.to_thread(nexo, core_url)
    assert empty.exit_code == 0, empty.output
    assert empty.output == "The journal is empty.\nThere are no consumers.\n"
    async with open_test_core(core_url, ("alice", "bob")) as core:
        journal = core.store.journal
        for _ in range(3):
            await say(core, "alice", "bob")
        slow = await journal.take("slow", "host:1", 60, from_now=False)
        assert slow is not None
        await journal.save(slow, Place(1, 0))
        quick = await journal.take("quick", "host:2", 60, from_now=True)
        assert quick is not None
        await journal.release(quick)
        await journal.take("nexo.housekeeping", "host:1", 60, from_now=True)
    shown = json.loads((await asyncio.to_thread(nexo, core_url, "--json")).output)
    assert (shown["newest"], shown["rows"], shown["trimmed_to"]) == (3, 3, 0)
    assert 0 < shown["oldest_at"] <= shown["newest_at"]
    found = {one["name"]: (one["position"], one["lag_rows"], one["instance"]) for one in shown["consumers"]}
    assert found == {"slow": (1, 2, "host:1"), "quick": (3, 0, None)}
    assert [one["lag_s"] > 0 for one in shown["consumers"]] == [False, True]
    text = (await asyncio.to_thread(nexo, core_url)).output
    assert text.startswith("Rows 1 to 3 are kept")
    assert "slow" in text
    assert "housekeeping" not in text
