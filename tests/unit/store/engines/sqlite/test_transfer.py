"""A connection for moving stores is closed after the statement whose caller was cancelled, not under it."""

from __future__ import annotations

import asyncio
import sqlite3
import threading

import pytest

from harness.waiting import nothing_for
from nexo.store.engines.sqlite.transfer import SqliteTransferConnection


async def test_closing_waits_for_a_statement_whose_caller_was_cancelled() -> None:
    began, goes_on = threading.Event(), threading.Event()
    done: list[str] = []

    def slow() -> int:
        began.set()
        goes_on.wait(10)
        done.append("statement")
        return 1

    database = sqlite3.connect(":memory:", check_same_thread=False)
    database.create_function("slow", 0, slow)
    connection = SqliteTransferConnection(database)
    reading = asyncio.create_task(connection.read("SELECT slow()"))
    assert await asyncio.to_thread(began.wait, 10)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    closing = asyncio.create_task(connection.close())
    closing.add_done_callback(lambda _: done.append("closed"))
    await nothing_for(0.05)
    assert not closing.done()
    goes_on.set()
    await asyncio.wait({closing})
    await nothing_for(0.01)
    assert done == ["statement", "closed"]
