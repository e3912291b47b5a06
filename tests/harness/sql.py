"""Statements on a database server, for set-up and inspection; not a path that Nexo itself uses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import asyncmy
import asyncpg

Rows = list[tuple[Any, ...]]
Run = Callable[[str], Awaitable[Rows]]


def execute(url: str, statement: str) -> Rows:
    """One statement, in a thread of its own, because the caller may be inside an event loop already."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(_execute(url, statement))).result()


def connected(url: str) -> AbstractAsyncContextManager[Run]:
    """A connection that commits each statement, unless BEGIN is one."""
    return _to_postgres(url) if url.startswith("postgresql:") else _to_mariadb(url)


async def _execute(url: str, statement: str) -> Rows:
    async with connected(url) as run:
        return await run(statement)


@asynccontextmanager
async def _to_postgres(url: str) -> AsyncIterator[Run]:
    connection = await asyncpg.connect(url, timeout=10, command_timeout=60)

    async def run(statement: str) -> Rows:
        return [tuple(row) for row in await connection.fetch(statement)]

    try:
        yield run
    finally:
        await connection.close()


@asynccontextmanager
async def _to_mariadb(url: str) -> AsyncIterator[Run]:
    parts = urlsplit(url)
    connection = await asyncmy.connect(
        host=parts.hostname,
        port=parts.port,
        user=parts.username,
        password=parts.password,
        db=parts.path.lstrip("/"),
        connect_timeout=10,
        autocommit=True,
    )

    async def run(statement: str) -> Rows:
        async with connection.cursor() as cursor:
            await cursor.execute(statement)
            return [tuple(row) for row in await cursor.fetchall()]

    try:
        yield run
    finally:
        connection.close()
