"""Bringing a database to the schema this version needs, on any engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from alembic import command
from alembic.config import Config as AlembicConfig
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Connection, create_engine, pool, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import create_async_engine

from nexo.config import StoreUrl
from nexo.errors import StartupError
from nexo.store.current import newest
from nexo.store.engine import StoreError
from nexo.store.sqlite import make_database_file

T = TypeVar("T")

_DRIVERS = {"sqlite": "sqlite+pysqlite", "mysql": "mysql+asyncmy", "postgresql": "postgresql+asyncpg"}
_LOCK_NAME = "nexo_migrate"
_LOCK_NUMBER = 0x6E65786F
HALF_DONE = "half_done"  # stands in place of a revision while a copy or an import fills the database


def _alembic() -> AlembicConfig:
    config = AlembicConfig()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    return config


def sqlalchemy_url(url: StoreUrl) -> URL:
    if url.engine == "sqlite":
        return URL.create(_DRIVERS["sqlite"], database=str(url.path))
    return URL.create(
        _DRIVERS[url.engine],
        username=url.user or None,
        password=url.password or None,
        host=url.host or None,
        port=url.port,
        database=url.database,
        query=url.params,
    )


async def with_connection(url: StoreUrl, work: Callable[[Connection], T]) -> T:
    """Run cold, synchronous SQLAlchemy work against any of the engines. A failure tells the driver's own words:
    SQLAlchemy's are followed by the statement and its values."""
    try:
        return await _with_connection(url, work)
    except SQLAlchemyError as error:
        raise StoreError(str(getattr(error, "orig", None) or error)) from error


async def _with_connection(url: StoreUrl, work: Callable[[Connection], T]) -> T:
    target = sqlalchemy_url(url)
    if url.engine == "sqlite":
        make_database_file(url.path)

        def in_thread() -> T:
            engine = create_engine(target, poolclass=pool.NullPool, connect_args={"timeout": 30})
            try:
                with engine.begin() as connection:
                    return work(connection)
            finally:
                engine.dispose()

        return await asyncio.to_thread(in_thread)
    engine = create_async_engine(target, poolclass=pool.NullPool)
    try:
        async with engine.begin() as connection:
            return await connection.run_sync(work)
    finally:
        await engine.dispose()


def _lock(connection: Connection) -> None:
    """Two processes that start together migrate one after the other."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK_NUMBER})"))
    elif connection.dialect.name in ("mysql", "mariadb"):
        connection.execute(text(f"SELECT GET_LOCK('{_LOCK_NAME}', 60)"))
    else:
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _current(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


async def current(url: StoreUrl) -> str | None:
    """The revision of a database; None for an empty one."""
    return await with_connection(url, _current)


async def upgrade(url: StoreUrl) -> tuple[str | None, str]:
    """Bring the database up to date; the revisions before and after. Doing it twice does nothing."""

    def work(connection: Connection) -> tuple[str | None, str]:
        _lock(connection)
        before = _current(connection)
        check_known(url, before)
        config = _alembic()
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        return before, newest()

    return await with_connection(url, work)


def check_known(url: StoreUrl, revision: str | None) -> None:
    if revision == HALF_DONE:
        raise StartupError(
            f"the database {url.redacted()} holds half a copy: run the same `nexo copy-store` or `nexo import-legacy` "
            "again, it goes on where it was"
        )
    known = {script.revision for script in ScriptDirectory.from_config(_alembic()).walk_revisions()}
    if revision is not None and revision not in known:
        raise StartupError(
            f"the database {url.redacted()} is at revision {revision}, which this version of Nexo does not know: "
            "use the newer version of Nexo that made it"
        )


async def check_current(url: StoreUrl) -> None:
    found = await current(url)
    check_known(url, found)
    if found != newest():
        state = "is empty" if found is None else f"is at revision {found}"
        raise StartupError(
            f"the database {url.redacted()} {state}, this version of Nexo needs {newest()}: run `nexo migrate` first"
        )
