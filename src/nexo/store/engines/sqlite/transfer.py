"""Moving whole stores from and to SQLite."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from nexo.errors import StartupError
from nexo.store.engines.sqlite.sql import SqliteSql
from nexo.store.engines.transfer_connection import Row, TransferConnection

T = TypeVar("T")


def open_read_only(path: Path) -> sqlite3.Connection:
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


class SqliteTransferConnection(TransferConnection):
    sql = SqliteSql()
    begin = "BEGIN IMMEDIATE"
    begin_snapshot = "BEGIN"

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        # One thread, so that work is done one after the other: a statement whose caller was cancelled runs to its
        # end, and closing the connection under it would crash the process.
        self._thread = ThreadPoolExecutor(1, "sqlite-transfer")

    async def _run(self, work: Callable[[], T]) -> T:
        """Run work in the thread. It must not return a cursor: dropping the last reference to it resets its
        statement, which is shared, while the thread may already run that again."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def read(self, sql: str, *params: Any) -> list[Row]:
        return await self._run(lambda: self._connection.execute(sql, params).fetchall())

    async def do(self, sql: str, *params: Any) -> None:
        await self._run(lambda: self._connection.execute(sql, params).close())

    async def insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        sql = f"INSERT INTO {table} ({','.join(columns)}) VALUES ({','.join('?' * len(columns))})"
        await self._run(lambda: self._connection.executemany(sql, rows).close())

    async def columns(self, table: str) -> list[str]:
        return [row[0] for row in await self.read("SELECT name FROM pragma_table_info(?)", table)]

    async def empty(self, table: str) -> None:
        await self.do(f"DELETE FROM {table}")

    async def lock_transfers(self) -> bool:
        return True  # the folder of the file is locked

    async def set_sequence(self, table: str, column: str) -> None:
        pass  # the next number follows the greatest one

    async def analyze(self, tables: Sequence[str]) -> None:
        pass  # its plans must be right without: a server's file is never analyzed

    async def close(self) -> None:
        await self._run(self._connection.close)
        self._thread.shutdown(wait=False)
