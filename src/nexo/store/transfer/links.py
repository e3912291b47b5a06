"""One plain connection per database for commands that move everything: no pools, no short timeouts.

A source is read-only and in one snapshot from its first statement to its last. Rows are tuples on every
engine; statements use `?`.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

import asyncmy
import asyncpg

from nexo.config import StoreUrl
from nexo.errors import StartupError
from nexo.store.failures import telling_failures
from nexo.store.mysql import CLOCK_MS as MYSQL_CLOCK_MS
from nexo.store.postgres import CLOCK_MS as POSTGRES_CLOCK_MS
from nexo.store.sql import numbered, percent
from nexo.store.sqlite import connect, make_database_file

T = TypeVar("T")
_SNAPSHOT = {
    "sqlite": "BEGIN",
    "mysql": "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
    "postgresql": "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
}
Row = tuple[Any, ...]


class Link(Protocol):
    """A connection to one database. Not for two tasks at the same time."""

    engine: str
    clock_ms: str  # an expression for the time of the database's own clock

    async def read(self, sql: str, *params: Any) -> list[Row]: ...

    async def do(self, sql: str, *params: Any) -> None: ...

    async def insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """All of these, in as few statements as the engine likes."""

    async def columns(self, table: str) -> list[str]:
        """The names of a table's columns; none when there is no such table."""

    async def close(self) -> None: ...


@asynccontextmanager
async def source_link(url: StoreUrl) -> AsyncIterator[Link]:
    """A database to read from, as it is at this moment."""
    link: Link
    with telling_failures(url):
        if url.engine == "sqlite":
            link = SqliteLink(await asyncio.to_thread(_open_read_only, url.path))
        elif url.engine == "mysql":
            link = MysqlLink(await _connect_mysql(url, "REPEATABLE-READ"))
        else:
            link = PostgresLink(await _connect_postgres(url))
    try:
        await link.do(_SNAPSHOT[url.engine])
        yield link
    finally:
        await link.close()


@asynccontextmanager
async def target_link(url: StoreUrl) -> AsyncIterator[Link]:
    """A database to write to; transactions are begun and ended by the caller (`transaction`)."""
    link: Link
    with telling_failures(url):
        if url.engine == "sqlite":
            make_database_file(url.path)
            link = SqliteLink(await asyncio.to_thread(connect, url.path, busy_ms=30_000))
        elif url.engine == "mysql":
            link = MysqlLink(await _connect_mysql(url, "READ-COMMITTED"))
        else:
            link = PostgresLink(await _connect_postgres(url))
    try:
        yield link
    finally:
        await link.close()


@asynccontextmanager
async def transaction(link: Link) -> AsyncIterator[None]:
    """Everything in the block, or nothing. After a failure the connection is closed by whoever opened it,
    and the database rolls back what was open."""
    await link.do("BEGIN IMMEDIATE" if link.engine == "sqlite" else "BEGIN")
    yield
    await link.do("COMMIT")


# -- SQLite ----------------------------------------------------------------------------------------------


def _open_read_only(path: Path) -> sqlite3.Connection:
    if not path.is_file():
        raise StartupError(f"there is no database at {path}: is the URL right?")
    options = "mode=ro"
    if not os.access(path.parent, os.W_OK):  # SQLite cannot keep its shared memory there
        log = path.with_name(f"{path.name}-wal")
        if log.exists() and log.stat().st_size:
            raise StartupError(
                f"{path} has a log beside it, and cannot be read where nothing can be written: copy both"
            )
        options = "mode=ro&immutable=1"
    connection = sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?{options}",
        uri=True,
        isolation_level=None,
        timeout=30,
        check_same_thread=False,
    )
    connection.execute("PRAGMA cache_size=-65536")
    return connection


class SqliteLink:
    engine = "sqlite"
    clock_ms = "CAST((julianday('now')-2440587.5)*86400000 AS INTEGER)"

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    async def _run(self, work: Callable[[], T]) -> T:
        """Work must not return a cursor: whoever drops it last would reset its statement, which is shared, while
        another thread already runs that again."""
        # shielded: a statement in its thread cannot be stopped, and the connection is closed after it
        return await asyncio.shield(asyncio.to_thread(work))

    async def read(self, sql: str, *params: Any) -> list[Row]:
        return await self._run(lambda: self._connection.execute(sql, params).fetchall())

    async def do(self, sql: str, *params: Any) -> None:
        await self._run(lambda: self._connection.execute(sql, params).close())

    async def insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        sql = f"INSERT INTO {table} ({','.join(columns)}) VALUES ({','.join('?' * len(columns))})"
        await self._run(lambda: self._connection.executemany(sql, rows).close())

    async def columns(self, table: str) -> list[str]:
        return [row[0] for row in await self.read("SELECT name FROM pragma_table_info(?)", table)]

    async def close(self) -> None:
        await asyncio.to_thread(self._connection.close)


# -- MySQL and MariaDB -----------------------------------------------------------------------------------


async def _connect_mysql(url: StoreUrl, isolation: str) -> Any:
    target = {"host": url.host, "port": url.port, "user": url.user, "password": url.password, "database": url.database}
    target = {key: value for key, value in target.items() if value} | url.params
    connection = await asyncmy.connect(**target, charset="utf8mb4", connect_timeout=10, autocommit=True)
    try:
        is_mariadb = "mariadb" in str(connection.get_server_info()).lower()
        collation = "utf8mb4_nopad_bin" if is_mariadb else "utf8mb4_0900_bin"
        level = "TX_ISOLATION" if is_mariadb else "TRANSACTION_ISOLATION"
        await connection.cursor().execute(
            f"SET NAMES utf8mb4 COLLATE {collation}, SESSION {level}='{isolation}', time_zone='+00:00', "
            "sql_mode='STRICT_ALL_TABLES'"
        )
    except BaseException:
        connection.close()
        raise
    return connection


class MysqlLink:
    engine = "mysql"
    clock_ms = MYSQL_CLOCK_MS

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def _execute(self, sql: str, params: Row) -> Any:
        cursor = self._connection.cursor()
        if params:
            await cursor.execute(percent(sql), params)
        else:
            await cursor.execute(sql)  # without values the driver leaves % alone
        return cursor

    async def read(self, sql: str, *params: Any) -> list[Row]:
        return list(await (await self._execute(sql, params)).fetchall())

    async def do(self, sql: str, *params: Any) -> None:
        await self._execute(sql, params)

    async def insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """The driver joins rows into statements of at most a megabyte, below every server's packet limit."""
        sql = f"INSERT INTO {table} ({','.join(columns)}) VALUES ({','.join(['%s'] * len(columns))})"
        await self._connection.cursor().executemany(sql, rows)

    async def columns(self, table: str) -> list[str]:
        found = await self.read(
            "SELECT column_name FROM information_schema.columns WHERE table_schema=DATABASE() AND table_name=? "
            "ORDER BY ordinal_position",
            table,
        )
        return [row[0] for row in found]

    async def close(self) -> None:
        self._connection.close()


# -- PostgreSQL ------------------------------------------------------------------------------------------


async def _connect_postgres(url: StoreUrl) -> Any:
    target = {"host": url.host, "port": url.port, "user": url.user, "password": url.password, "database": url.database}
    target = {key: value for key, value in target.items() if value} | url.params
    settings = {"application_name": "nexo", "plan_cache_mode": "force_custom_plan"}
    return await asyncpg.connect(**target, timeout=10, server_settings=settings)


class PostgresLink:
    engine = "postgresql"
    clock_ms = POSTGRES_CLOCK_MS

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def read(self, sql: str, *params: Any) -> list[Row]:
        return [tuple(row) for row in await self._connection.fetch(numbered(sql), *params)]

    async def do(self, sql: str, *params: Any) -> None:
        if params:
            await self._connection.fetch(numbered(sql), *params)
        else:
            await self._connection.execute(sql)

    async def insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        await self._connection.copy_records_to_table(table, records=rows, columns=list(columns))

    async def columns(self, table: str) -> list[str]:
        found = await self.read(
            "SELECT column_name FROM information_schema.columns WHERE table_schema=current_schema() AND table_name=? "
            "ORDER BY ordinal_position",
            table,
        )
        return [row[0] for row in found]

    async def close(self) -> None:
        self._connection.terminate()
