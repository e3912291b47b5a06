"""Moving whole stores from and to MySQL and MariaDB."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import asyncmy

from nexo.config import StoreUrl
from nexo.store.engines.hosts import ALONE_S, Hosts, Place
from nexo.store.engines.mysql.driver import CAUSAL_READS, check_host, is_mariadb
from nexo.store.engines.mysql.sql import MysqlSql, percent, session_settings
from nexo.store.engines.server_kind import connect_options, place_options
from nexo.store.engines.transfer_connection import Row, TransferConnection


async def connect(url: StoreUrl, isolation: str = "") -> Any:
    """Returns a connection to the host that is the primary, with the settings of Nexo unless `isolation` is empty."""

    async def open_at(place: Place) -> Any:
        connection = await asyncmy.connect(
            **connect_options(url), **place_options(place), charset="utf8mb4", connect_timeout=ALONE_S, autocommit=True
        )
        try:
            if isolation:
                await connection.cursor().execute(session_settings(is_mariadb(connection), isolation))
            if await check_host(connection, url.needs_primary):
                await connection.cursor().execute(CAUSAL_READS)
        except BaseException:
            connection.close()
            raise
        return connection

    connection, _ = await Hosts(url.hosts).connect(open_at, lambda late: late.close())
    return connection


class MysqlTransferConnection(TransferConnection):
    sql = MysqlSql()
    begin_snapshot = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"

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

    async def empty(self, table: str) -> None:
        await self.do(f"TRUNCATE TABLE {table}")

    async def lock_transfers(self) -> bool:
        return bool((await self.read("SELECT GET_LOCK(CONCAT('nexo_transfer ',DATABASE()),0)"))[0][0])

    async def set_sequence(self, table: str, column: str) -> None:
        pass  # the next number follows the greatest one

    async def analyze(self, tables: Sequence[str]) -> None:
        await self.read(f"ANALYZE TABLE {','.join(tables)}")

    async def close(self) -> None:
        self._connection.close()
