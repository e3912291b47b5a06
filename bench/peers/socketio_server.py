"""A chat server of a hundred lines on python-socketio: a message is stored, then acknowledged and emitted.

No sequence, idempotency, cursors, receipts or permissions: what a tutorial would call a durable chat.
Usage: socketio_server.py PORT sqlite:PATH | postgresql://…
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from typing import Any

import asyncpg
import socketio
import uvloop
from aiohttp import web

TABLE = "CREATE TABLE IF NOT EXISTS messages (id {id}, sender TEXT, target TEXT, body TEXT)"
INDEX = "CREATE INDEX IF NOT EXISTS by_target ON messages (target, id)"


class SqliteStore:
    """One commit, and with it one fsync, per message."""

    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.execute(TABLE.format(id="INTEGER PRIMARY KEY"))
        self._connection.execute(INDEX)

    async def open(self) -> None:
        pass

    async def add(self, sender: str, target: str, body: str) -> int:
        values = (sender, target, body)
        row = self._connection.execute("INSERT INTO messages (sender, target, body) VALUES (?, ?, ?)", values)
        return int(row.lastrowid or 0)

    async def since(self, target: str, after: int) -> list[Any]:
        query = "SELECT id, sender, body FROM messages WHERE target = ? AND id > ? ORDER BY id LIMIT 200"
        return self._connection.execute(query, (target, after)).fetchall()


class PostgresStore:
    def __init__(self, url: str) -> None:
        self._url = url

    async def open(self) -> None:
        self._pool = await asyncpg.create_pool(self._url, min_size=8, max_size=8)
        await self._pool.execute(TABLE.format(id="BIGSERIAL PRIMARY KEY"))
        await self._pool.execute(INDEX)

    async def add(self, sender: str, target: str, body: str) -> int:
        query = "INSERT INTO messages (sender, target, body) VALUES ($1, $2, $3) RETURNING id"
        return int(await self._pool.fetchval(query, sender, target, body))

    async def since(self, target: str, after: int) -> list[Any]:
        query = "SELECT id, sender, body FROM messages WHERE target = $1 AND id > $2 ORDER BY id LIMIT 200"
        return [tuple(row) for row in await self._pool.fetch(query, target, after)]


async def serve(port: int, url: str) -> None:
    store: SqliteStore | PostgresStore = SqliteStore(url[7:]) if url.startswith("sqlite:") else PostgresStore(url)
    await store.open()
    server = socketio.AsyncServer(async_mode="aiohttp", transports=["websocket"])
    application = web.Application()
    server.attach(application)
    names: dict[str, str] = {}

    @server.event  # type: ignore[untyped-decorator]
    async def connect(sid: str, environ: Any, auth: dict[str, str]) -> None:
        names[sid] = auth["user"]
        await server.enter_room(sid, auth["user"])

    @server.event  # type: ignore[untyped-decorator]
    async def disconnect(sid: str, reason: str) -> None:
        names.pop(sid, None)

    @server.event  # type: ignore[untyped-decorator]
    async def enter(sid: str, room: str) -> bool:
        await server.enter_room(sid, room)
        return True

    @server.event  # type: ignore[untyped-decorator]
    async def say(sid: str, target: str, body: str) -> int:
        number = await store.add(names[sid], target, body)
        await server.emit("message", (number, names[sid], body), room=target)
        return number

    @server.event  # type: ignore[untyped-decorator]
    async def since(sid: str, after: int) -> list[Any]:
        return await store.since(names[sid], after)

    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, backlog=4096).start()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), sys.argv[2]))
