"""Single statements on a database server, for set-up and inspection; not a path that Nexo itself uses."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import asyncmy
import asyncpg

Rows = list[tuple[Any, ...]]


def execute(url: str, statement: str) -> Rows:
    """Runs in a thread of its own, because the caller may be inside an event loop already."""
    run = _on_postgres if url.startswith("postgresql:") else _on_mariadb
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(run(url, statement))).result()


async def _on_postgres(url: str, statement: str) -> Rows:
    connection = await asyncpg.connect(url, timeout=10, command_timeout=60)
    try:
        return [tuple(row) for row in await connection.fetch(statement)]
    finally:
        await connection.close()


async def _on_mariadb(url: str, statement: str) -> Rows:
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
    try:
        async with connection.cursor() as cursor:
            await cursor.execute(statement)
            return [tuple(row) for row in await cursor.fetchall()]
    finally:
        await connection.ensure_closed()
