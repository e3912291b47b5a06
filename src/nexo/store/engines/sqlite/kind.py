"""SQLite as the store uses it."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from types import MappingProxyType
from typing import Any

from nexo.config import Config, StoreUrl
from nexo.store.batch import HotSql
from nexo.store.engine import Engine, Transient
from nexo.store.engines import advice
from nexo.store.engines.index_file import IndexFile
from nexo.store.engines.kind import EngineKind
from nexo.store.engines.sqlite.driver import SqliteEngine, classified, connect, is_disk_full, make_database_file
from nexo.store.engines.sqlite.files import SqliteFiles
from nexo.store.engines.sqlite.search_index import SqliteSearchIndex
from nexo.store.engines.sqlite.sql import SqliteSql
from nexo.store.engines.sqlite.statements import SqliteHot
from nexo.store.engines.sqlite.transfer import SqliteTransferConnection, open_read_only
from nexo.store.engines.transfer_connection import Row, TransferConnection

_NOT_WRITABLE = "may the user that Nexo runs as write there?"
_ADVICE = {
    "SQLITE_NOTADB": "this file is something else: is store.url right?",
    "SQLITE_CORRUPT": "the file is damaged: bring it back from a backup (docs/operate.md)",
    "SQLITE_FULL": advice.DISK_FULL,
    "SQLITE_IOERR": "its disk fails: look at the system's log",
    "SQLITE_READONLY": _NOT_WRITABLE,
    "SQLITE_CANTOPEN": _NOT_WRITABLE,
    "SQLITE_BUSY": "another program holds it: end that first",
}
_TRANSFER_BUSY_MS = 30_000


class SqliteKind(EngineKind):
    sql = SqliteSql()
    driver_errors = (sqlite3.Error,)
    unreachable_advice = _NOT_WRITABLE
    sqlalchemy_driver = "sqlite+pysqlite"
    sqlalchemy_options = MappingProxyType({"timeout": 30})
    migration_lock = "BEGIN IMMEDIATE"
    begin_snapshot = "BEGIN"
    begin_repair = "BEGIN IMMEDIATE"
    needs_analyze = False
    files = SqliteFiles()

    def make_engine(self, url: StoreUrl, config: Config) -> Engine:
        store = config.store
        return SqliteEngine(url.path, reader_threads=store.reader_threads, lock_timeout_ms=store.lock_timeout_ms)

    def make_hot_sql(self) -> HotSql:
        return SqliteHot()

    def make_database(self, url: StoreUrl) -> None:
        make_database_file(url.path)

    async def read_once(self, url: StoreUrl, config: Config, sql: str) -> list[Row]:
        def read() -> list[Row]:
            with closing(sqlite3.connect(f"{url.path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
                return connection.execute(sql).fetchall()

        return await asyncio.to_thread(read)

    def sqlalchemy_target(self, url: StoreUrl) -> dict[str, Any]:
        return {"database": str(url.path)}

    def is_passing(self, error: BaseException) -> bool:
        return isinstance(error, sqlite3.Error) and isinstance(classified(error), Transient)

    def advice_on(self, error: BaseException, url: StoreUrl) -> str:
        # a StoreError begins with the name that the driver's error had
        name = getattr(error, "sqlite_errorname", "") or str(error)
        if name.startswith("SQLITE_IOERR") and is_disk_full(url.path):  # its memory-mapped file could not grow
            return advice.DISK_FULL
        return next((text for word, text in _ADVICE.items() if name.startswith(word)), "")

    def make_index_file(self, url: StoreUrl) -> IndexFile:
        return SqliteSearchIndex(url.path.with_suffix(".search.db"))

    async def connect_source(self, url: StoreUrl) -> TransferConnection:
        return SqliteTransferConnection(await asyncio.to_thread(open_read_only, url.path))

    async def connect_target(self, url: StoreUrl) -> TransferConnection:
        make_database_file(url.path)
        return SqliteTransferConnection(await asyncio.to_thread(connect, url.path, busy_ms=_TRANSFER_BUSY_MS))


KIND = SqliteKind()
