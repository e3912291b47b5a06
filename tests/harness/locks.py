"""Somebody else who holds a lock in the database: another process, a backup, an administrator."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing

from harness import sql

Release = Callable[[], Awaitable[None]]


@asynccontextmanager
async def held_conversation(url: str, conversation_id: str) -> AsyncIterator[Release]:
    """Hold a conversation's lock until `release` is called or the block ends; SQLite's lock is the whole file."""
    if url.startswith("sqlite:"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")

            async def unlock() -> None:
                connection.execute("ROLLBACK")

            yield unlock
        return
    async with sql.connected(url) as run:
        await run("BEGIN")
        assert await run(f"SELECT id FROM conversations WHERE conversation_id='{conversation_id}' FOR UPDATE")

        async def release() -> None:
            await run("ROLLBACK")

        yield release
