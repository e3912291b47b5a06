"""Migrations: bring a database to the schema this version needs, on any engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from alembic import command
from alembic.config import Config as AlembicConfig
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Connection, create_engine, pool
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import create_async_engine

from nexo.config import StoreUrl
from nexo.errors import StartupError
from nexo.store.engine import StoreError
from nexo.store.engines.registry import engine_kind
from nexo.store.engines.server_kind import ServerKind
from nexo.store.schema_version import newest

T = TypeVar("T")

HALF_DONE = "half_done"  # stands in place of a revision while a copy or an import fills the database


def _alembic() -> AlembicConfig:
    config = AlembicConfig()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    return config


def sqlalchemy_url(url: StoreUrl) -> URL:
    kind = engine_kind(url)
    return URL.create(kind.sqlalchemy_driver, **kind.sqlalchemy_target(url))


async def with_connection(url: StoreUrl, work: Callable[[Connection], T]) -> T:
    """Run cold, synchronous SQLAlchemy work in one transaction on any of the engines. A failure raises StoreError with
    the driver's own text: SQLAlchemy's is followed by the statement and its values."""
    try:
        return await _with_connection(url, work)
    except SQLAlchemyError as error:
        raise StoreError(str(getattr(error, "orig", None) or error)) from error


async def _with_connection(url: StoreUrl, work: Callable[[Connection], T]) -> T:
    target = sqlalchemy_url(url)
    kind = engine_kind(url)
    kind.make_database(url)
    if isinstance(kind, ServerKind):
        engine = create_async_engine(target, poolclass=pool.NullPool, async_creator=lambda: kind.connect_plain(url))
        try:
            async with engine.begin() as connection:
                return await connection.run_sync(work)
        finally:
            await engine.dispose()

    def in_thread() -> T:
        engine = create_engine(target, poolclass=pool.NullPool, connect_args=dict(kind.sqlalchemy_options))
        try:
            with engine.begin() as connection:
                return work(connection)
        finally:
            engine.dispose()

    return await asyncio.to_thread(in_thread)


def _current(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


async def current(url: StoreUrl) -> str | None:
    """Returns the revision of a database; None for an empty one."""
    return await with_connection(url, _current)


async def upgrade(url: StoreUrl) -> tuple[str | None, str]:
    """Bring the database up to date; returns the revisions before and after. Doing it twice does nothing."""

    def work(connection: Connection) -> tuple[str | None, str]:
        connection.exec_driver_sql(engine_kind(url).migration_lock)
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
            "again, it continues where it stopped"
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
