"""Databases as an earlier version left them: its schema, and rows in it."""

from __future__ import annotations

from typing import Any

from alembic import command
from sqlalchemy import Connection, MetaData, Table

from nexo.config import StoreUrl
from nexo.store import migrate
from nexo.store.engines.registry import engine_kind
from nexo.store.migration_names import between
from nexo.store.schema_version import newest
from nexo.store.transfer.progress_record import NOT_COPIED

PREVIOUS = between(None, newest())[-2].name
RELEASE_0_1 = "0002"

Rows = dict[str, list[dict[str, Any]]]


async def read_rows(url: StoreUrl) -> Rows:
    """Everything that is stored, of the tables that a database really has."""
    return await migrate.with_connection(url, _read)


async def fill_previous(url: StoreUrl, rows: Rows, revision: str = PREVIOUS) -> None:
    """Give an empty database the schema of an earlier version, and of these rows what fits into it."""

    def fill(connection: Connection) -> None:
        connection.exec_driver_sql(engine_kind(url).migration_lock)
        config = migrate._alembic()
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        for table in _tables(connection):
            names = {column.name for column in table.columns}
            values = [{name: row[name] for name in names & row.keys()} for row in rows.get(table.name, ())]
            if values:
                connection.execute(table.insert(), values)

    await migrate.with_connection(url, fill)


def _tables(connection: Connection) -> list[Table]:
    found = MetaData()
    found.reflect(connection)
    return [table for table in found.sorted_tables if table.name not in NOT_COPIED | {"alembic_version"}]


def _read(connection: Connection) -> Rows:
    return {
        table.name: [dict(row) for row in connection.execute(table.select().order_by(*table.primary_key)).mappings()]
        for table in _tables(connection)
    }
