"""PostgreSQL as the store uses it."""

from __future__ import annotations

import shlex
from typing import Any

import asyncpg

from nexo.config import StoreUrl
from nexo.store.batch import HotSql
from nexo.store.engine import Transient
from nexo.store.engines import advice
from nexo.store.engines.database_files import DumpCommands
from nexo.store.engines.hosts import Hosts
from nexo.store.engines.postgres.driver import PostgresDriver
from nexo.store.engines.postgres.sql import PostgresSql
from nexo.store.engines.postgres.statements import PostgresHot
from nexo.store.engines.postgres.transfer import PostgresTransferConnection, connect
from nexo.store.engines.server import Driver
from nexo.store.engines.server_kind import ServerKind, connect_options
from nexo.store.engines.transfer_connection import TransferConnection

_ADVICE = {
    "28P01": advice.DENIED,
    "28000": advice.DENIED,
    "3D000": advice.NO_DATABASE,
    "42501": advice.NOT_OWNER,
    "53300": advice.TOO_MANY_CONNECTIONS,
    "53100": advice.DISK_FULL,
}
_MIGRATION_LOCK_NUMBER = 0x6E65786F  # of the database's advisory locks


class PostgresKind(ServerKind):
    sql = PostgresSql()
    driver_errors = (
        asyncpg.PostgresError,
        asyncpg.InterfaceError,
        asyncpg.InternalClientError,  # a connection that was lost in the middle of COPY
    )
    sqlalchemy_driver = "postgresql+asyncpg"
    migration_lock = f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK_NUMBER})"
    needs_analyze = True  # takes a table that it has not counted for a small one, and joins it row by row

    def make_driver(self, url: StoreUrl, pool_size: int, lock_timeout_ms: int) -> Driver:
        return PostgresDriver(
            connect_options(url),
            Hosts(url.hosts),
            pool_size=pool_size,
            lock_timeout_ms=lock_timeout_ms,
            needs_primary=url.needs_primary,
        )

    def make_hot_sql(self) -> HotSql:
        return PostgresHot()

    def is_passing(self, error: BaseException) -> bool:
        return isinstance(error, Exception) and isinstance(PostgresDriver.translate(error), Transient)

    def advice_on(self, error: BaseException, url: StoreUrl) -> str:
        if not isinstance(error, asyncpg.PostgresError):
            return ""
        return _ADVICE.get(error.sqlstate, "").format(database=url.database, user=url.user)

    def dump_commands(self, url: StoreUrl) -> DumpCommands:
        hosts = ",".join(host for host, _ in url.hosts if host) or url.params.get("host", "")
        ports = ",".join(str(port) for _, port in url.hosts)
        place = shlex.join([f"--host={hosts}", f"--port={ports}", *([f"--username={url.user}"] if url.user else [])])
        # of several hosts the tools take the primary, as Nexo does
        name = f"dbname={url.database} target_session_attrs=read-write" if url.more_hosts else url.database
        database = shlex.quote(f"--dbname={name}")
        anew = "DROP SCHEMA public CASCADE; CREATE SCHEMA public AUTHORIZATION pg_database_owner"
        return DumpCommands(
            backup=(f"(umask 077; pg_dump {place} {database} --format=custom --no-owner --no-acl --file=nexo.dump)",),
            restore=(
                f'psql {place} {database} --command="{anew}"',
                f"pg_restore {place} {database} --no-owner --no-acl --single-transaction --exit-on-error nexo.dump",
            ),
            password="~/.pgpass (host:port:database:user:password, mode 600)",
        )

    async def connect_plain(self, url: StoreUrl) -> Any:
        return await connect(url)

    async def connect_source(self, url: StoreUrl) -> TransferConnection:
        return PostgresTransferConnection(await connect(url))

    async def connect_target(self, url: StoreUrl) -> TransferConnection:
        return PostgresTransferConnection(await connect(url))


KIND = PostgresKind()
