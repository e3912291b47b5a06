"""Moving whole stores from and to PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import asyncpg

from nexo.config import StoreUrl
from nexo.store.engines.hosts import Hosts, Place
from nexo.store.engines.postgres.driver import check_host
from nexo.store.engines.postgres.sql import PostgresSql, numbered
from nexo.store.engines.server_kind import connect_options, place_options
from nexo.store.engines.transfer_connection import Row, TransferConnection

_LOCK_NUMBER = 1852143732  # of the database's advisory locks


async def connect(url: StoreUrl) -> Any:
    """Returns a connection to the host that is the primary."""
    settings = {"application_name": "nexo", "plan_cache_mode": "force_custom_plan"}

    async def open_at(place: Place) -> Any:
        connection = await asyncpg.connect(**connect_options(url), **place_options(place), server_settings=settings)
        try:
            if url.needs_primary:
                await check_host(connection)
        except BaseException:
            connection.terminate()
            raise
        return connection

    connection, _ = await Hosts(url.hosts).connect(open_at, lambda late: late.terminate())
    return connection


class PostgresTransferConnection(TransferConnection):
    sql = PostgresSql()
    begin_snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

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

    async def empty(self, table: str) -> None:
        await self.do(f"TRUNCATE TABLE {table}")

    async def lock_transfers(self) -> bool:
        return bool((await self.read(f"SELECT pg_try_advisory_lock({_LOCK_NUMBER})"))[0][0])

    async def set_sequence(self, table: str, column: str) -> None:
        # a sequence does not notice rows that were inserted with a number
        await self.do(
            f"SELECT setval(pg_get_serial_sequence('{table}','{column}'),COALESCE(MAX({column}),0)+1,false) "
            f"FROM {table}"
        )

    async def analyze(self, tables: Sequence[str]) -> None:
        await self.do(f"ANALYZE {','.join(tables)}")

    async def close(self) -> None:
        self._connection.terminate()
