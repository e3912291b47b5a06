"""The schema: the migrations make what `store/schema.py` says, identifiers compare byte by byte, and an old
database is not served (SPEC §3)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Table, UniqueConstraint, inspect, text

from harness.core import open_test_core, say
from harness.engines import SERVER_ENGINES
from nexo.config import StoreUrl, parse_store_url
from nexo.errors import StartupError
from nexo.store import migrate, migrations, schema_version
from nexo.store.engines.mysql.sql import binary_collation
from nexo.store.schema import metadata

on_servers = pytest.mark.parametrize(
    "engine_name", [pytest.param(engine, marks=pytest.mark.servers) for engine in SERVER_ENGINES], indirect=True
)
SIMILAR = ["ab", "AB", "Ab", "aB", "ab ", "ab  ", " ab", "a b", "áb"]
IN_BYTE_ORDER = sorted(SIMILAR, key=lambda value: value.encode())


async def migrated(store_url: str) -> StoreUrl:
    url = parse_store_url(store_url)
    await migrate.upgrade(url)
    return url


def describe(connection: Connection) -> dict[str, Any]:
    """Everything the database itself says about its tables."""
    look = inspect(connection)
    tables = {}
    for name in look.get_table_names():
        if name == "alembic_version":
            continue
        columns = [
            {key: column.get(key) for key in ("name", "nullable", "default", "autoincrement")}
            | {"type": str(column["type"]), "collation": getattr(column["type"], "collation", None)}
            for column in look.get_columns(name)
        ]
        tables[name] = {
            "columns": columns,
            "primary key": look.get_pk_constraint(name)["constrained_columns"],
            "unique": sorted((one["name"], one["column_names"]) for one in look.get_unique_constraints(name)),
            "indexes": sorted((str(one["name"]), one["column_names"], one["unique"]) for one in look.get_indexes(name)),
            "options": look.get_table_options(name) if connection.dialect.name in ("mysql", "mariadb") else None,
        }
    return tables


def use_binary_collation(connection: Connection) -> None:
    """Give every table of the schema the options that the migrations set; only MySQL and MariaDB read them."""
    collation = binary_collation(getattr(connection.dialect, "is_mariadb", False))
    for table in metadata.tables.values():
        table.dialect_options["mysql"]["charset"] = "utf8mb4"
        table.dialect_options["mysql"]["collate"] = collation
        table.dialect_options["mysql"]["engine"] = "InnoDB"


# -- what the migrations make --------------------------------------------------------------------------


async def test_alembic_finds_nothing_to_add_to_what_the_migrations_made(store_url: str) -> None:
    def compare(connection: Connection) -> list[Any]:
        use_binary_collation(connection)
        return compare_metadata(MigrationContext.configure(connection, opts={"compare_type": True}), metadata)

    assert await migrate.with_connection(await migrated(store_url), compare) == []


async def test_the_migrations_make_the_tables_of_the_schema_to_the_last_default(store_url: str) -> None:
    def rebuild(connection: Connection) -> tuple[dict[str, Any], dict[str, Any]]:
        by_migration = describe(connection)
        use_binary_collation(connection)
        metadata.drop_all(connection)
        metadata.create_all(connection)
        return by_migration, describe(connection)

    by_migration, by_schema = await migrate.with_connection(await migrated(store_url), rebuild)
    assert set(by_migration) == set(metadata.tables)
    assert by_migration == by_schema


async def test_migrating_twice_changes_nothing(store_url: str) -> None:
    url = parse_store_url(store_url)
    assert await migrate.upgrade(url) == (None, migrate.newest())
    async with open_test_core(store_url, ("alice", "bob")) as core:
        await say(core, "alice", "bob")
    before = await migrate.with_connection(url, describe)
    assert await migrate.upgrade(url) == (migrate.newest(), migrate.newest())
    assert await migrate.with_connection(url, describe) == before
    async with open_test_core(store_url) as core:
        assert len((await core.conversations.pull("bob", "si_alice:bob")).messages) == 1


async def test_processes_that_start_together_migrate_one_after_the_other(store_url: str) -> None:
    url = parse_store_url(store_url)
    before = [was for was, _ in await asyncio.gather(*(migrate.upgrade(url) for _ in range(3)))]
    assert sorted(before, key=str) == [migrate.newest()] * 2 + [None]
    assert await migrate.current(url) == migrate.newest()


# -- identifiers compare byte by byte ------------------------------------------------------------------


def _keys() -> list[tuple[Table, str]]:
    """Every column of text that is part of a key or an index: what is looked up, compared or sorted."""
    found = []
    for table in metadata.tables.values():
        indexed = {column.name for column in table.primary_key.columns}
        indexed |= {column.name for index in table.indexes for column in index.columns}
        for constraint in table.constraints:
            indexed |= {column.name for column in getattr(constraint, "columns", ())}
        found += [(table, name) for name in sorted(indexed) if table.columns[name].type.python_type is str]
    return found


def _row(table: Table, column: str, value: str, number: int) -> dict[str, Any]:
    """A row with `value` in one column; the rest of its key is the same in all, other keys differ."""
    row: dict[str, Any] = {}
    in_primary_key = column in table.primary_key.columns
    unique_alone = {
        next(iter(constraint.columns)).name
        for constraint in table.constraints
        if isinstance(constraint, UniqueConstraint) and len(constraint.columns) == 1
    }
    for one in table.columns:
        differs = one.name in unique_alone or (one.name in table.primary_key.columns and not in_primary_key)
        if one.name == column:
            row[one.name] = value
        elif one.name in ("conv", "seq") and one.name not in table.primary_key.columns:
            row[one.name] = number
        elif not one.nullable and one.server_default is None:
            key = number if differs else 1
            row[one.name] = key if one.type.python_type is int else f"same{key}"
    return row


async def test_identifiers_that_differ_in_case_or_spaces_are_different_everywhere(store_url: str) -> None:
    def fill(connection: Connection) -> dict[str, list[str]]:
        sorted_by = {}
        for table, column in _keys():
            for number, value in enumerate(SIMILAR, 1):
                row = _row(table, column, value, number)
                marks = ",".join(f":{name}" for name in row)
                connection.execute(text(f"INSERT INTO {table.name} ({','.join(row)}) VALUES ({marks})"), row)
                found = connection.execute(
                    text(f"SELECT {column} FROM {table.name} WHERE {column}=:value"), {"value": value}
                ).fetchall()
                assert [row[0] for row in found] == [value], f"{table.name}.{column} = {value!r}"
            found = connection.execute(text(f"SELECT {column} FROM {table.name} ORDER BY {column}")).fetchall()
            sorted_by[f"{table.name}.{column}"] = [row[0] for row in found]
            connection.execute(text(f"DELETE FROM {table.name}"))
        return sorted_by

    sorted_by = await migrate.with_connection(await migrated(store_url), fill)
    assert {"users.user_id", "conversations.conversation_id", "messages.client_msg_id"} <= set(sorted_by)
    for values in sorted_by.values():
        assert values == IN_BYTE_ORDER


async def test_the_pair_of_sender_and_client_msg_id_is_unique_byte_by_byte(store_url: str) -> None:
    def fill(connection: Connection) -> int:
        insert = text(
            "INSERT INTO messages (server_msg_id,conv,seq,sender_id,client_msg_id,msg_type,content,send_at,"
            "countable_no) VALUES (:n,1,:n,:sender,:id,1,'x',1,1)"
        )
        pairs = [(sender, client_msg_id) for sender in SIMILAR for client_msg_id in SIMILAR]
        for number, (sender, client_msg_id) in enumerate(pairs, 1):
            connection.execute(insert, {"n": number, "sender": sender, "id": client_msg_id})
        for number in (9001, 9002):  # events have none, and there are many
            connection.execute(insert, {"n": number, "sender": "ab", "id": None})
        return int(connection.execute(text("SELECT count(*) FROM messages")).scalar_one())

    assert await migrate.with_connection(await migrated(store_url), fill) == len(SIMILAR) ** 2 + 2


# -- databases that do not fit -------------------------------------------------------------------------


@on_servers
async def test_an_empty_server_database_is_refused_and_the_command_named(store_url: str) -> None:
    with pytest.raises(StartupError, match=r"is empty.*`nexo migrate`") as caught:
        async with open_test_core(store_url):
            pass
    assert parse_store_url(store_url).password not in str(caught.value)


@on_servers
async def test_an_old_server_database_is_refused_and_the_command_named(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await migrated(store_url)
    present = migrate.newest()
    for module in (migrate, schema_version):
        monkeypatch.setattr(module, "newest", lambda: "9999")
    with pytest.raises(StartupError, match=rf"is at revision {present}.*needs 9999.*`nexo migrate`"):
        async with open_test_core(store_url):
            pass


def test_the_newest_migration_is_known_without_alembic() -> None:
    directory = ScriptDirectory(migrations.__path__[0])
    assert directory.get_heads() == [schema_version.newest()]


def test_an_embedded_server_that_finds_its_schema_loads_no_sqlalchemy_and_no_driver_of_a_server(tmp_path: Path) -> None:
    start = (
        "import asyncio, sys\n"
        "from nexo.assembly.core import open_core\n"
        "from nexo.background import Background\n"
        "from nexo.config import load\n"
        "async def main():\n"
        f"    async with open_core(load(env={{}}, flags={{'data.dir': {str(tmp_path)!r}}}), Background()):\n"
        "        print({'alembic', 'asyncmy', 'asyncpg', 'sqlalchemy'} & sys.modules.keys() or 'none')\n"
        "asyncio.run(main())\n"
    )
    first, second = (subprocess.run([sys.executable, "-c", start], capture_output=True, text=True) for _ in range(2))
    assert "alembic" in first.stdout, first.stderr
    assert second.stdout.strip() == "none", second.stderr


async def test_a_database_of_a_newer_nexo_is_refused_and_left_alone(store_url: str) -> None:
    url = await migrated(store_url)

    def pretend(connection: Connection) -> None:
        connection.execute(text("UPDATE alembic_version SET version_num='9999'"))

    await migrate.with_connection(url, pretend)
    for attempt in (migrate.upgrade, migrate.check_current):
        with pytest.raises(StartupError, match=r"revision 9999.*newer version of Nexo"):
            await attempt(url)
    with pytest.raises(StartupError, match="newer version of Nexo"):
        async with open_test_core(store_url):
            pass
    assert await migrate.current(url) == "9999"


async def test_the_embedded_default_brings_itself_up_to_date(tmp_path: Any) -> None:
    async with open_test_core(f"sqlite:///{tmp_path}/new/folder/nexo.db", ("alice", "bob")) as core:
        assert (await say(core, "alice", "bob")).seq == 1
