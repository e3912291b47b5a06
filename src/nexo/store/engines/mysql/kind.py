"""MySQL and MariaDB as the store uses them."""

from __future__ import annotations

import shlex
from typing import Any

from asyncmy.errors import MySQLError

from nexo.config import StoreUrl
from nexo.store.batch import HotSql
from nexo.store.engine import Transient
from nexo.store.engines import advice
from nexo.store.engines.database_files import DumpCommands
from nexo.store.engines.hosts import Hosts
from nexo.store.engines.mysql.driver import MysqlDriver
from nexo.store.engines.mysql.sql import MysqlSql
from nexo.store.engines.mysql.statements import MysqlHot
from nexo.store.engines.mysql.transfer import MysqlTransferConnection, connect
from nexo.store.engines.server import Driver
from nexo.store.engines.server_kind import ServerKind, connect_options
from nexo.store.engines.transfer_connection import TransferConnection

_ADVICE = {
    2003: advice.UNREACHABLE,
    1045: advice.DENIED,
    1698: advice.DENIED,
    1049: advice.NO_DATABASE,
    1044: advice.NO_RIGHT,
    1142: advice.NO_RIGHT,
    1040: advice.TOO_MANY_CONNECTIONS,
    1203: advice.TOO_MANY_CONNECTIONS,
    1021: advice.DISK_FULL,
    1114: advice.DISK_FULL,
}


class MysqlKind(ServerKind):
    sql = MysqlSql()
    driver_errors = (MySQLError,)
    sqlalchemy_driver = "mysql+asyncmy"
    migration_lock = "SELECT GET_LOCK('nexo_migrate', 60)"
    commits_visible_early = True  # until the log is flushed
    needs_analyze = False  # InnoDB estimates the sizes of tables by itself

    def make_driver(self, url: StoreUrl, pool_size: int, lock_timeout_ms: int) -> Driver:
        return MysqlDriver(
            connect_options(url),
            Hosts(url.hosts),
            pool_size=pool_size,
            lock_timeout_ms=lock_timeout_ms,
            needs_primary=url.needs_primary,
        )

    def make_hot_sql(self) -> HotSql:
        return MysqlHot()

    def is_passing(self, error: BaseException) -> bool:
        return isinstance(error, Exception) and isinstance(MysqlDriver.translate(error), Transient)

    def advice_on(self, error: BaseException, url: StoreUrl) -> str:
        return _ADVICE.get(error.args[0], "") if isinstance(error, MySQLError) and error.args else ""

    def dump_commands(self, url: StoreUrl) -> DumpCommands:
        socket = url.params.get("unix_socket", "")
        where = ["--protocol=tcp", f"--host={url.host}", f"--port={url.port}"] if url.host else [f"--socket={socket}"]
        place = shlex.join([*where, *([f"--user={url.user}"] if url.user else [])])
        name = shlex.quote(url.database)
        quoted = "`" + url.database.replace("`", "``") + "`"
        anew = shlex.quote(f"DROP DATABASE {quoted}; CREATE DATABASE {quoted} CHARACTER SET utf8mb4")
        return DumpCommands(
            backup=(
                f"(umask 077; mariadb-dump {place} --single-transaction --quick --no-tablespaces "
                f"--result-file=nexo.sql {name})",
            ),
            restore=(f"mariadb {place} --execute={anew}", f"mariadb {place} {name} < nexo.sql"),
            password="~/.my.cnf ([client] password=…, mode 600)",
        )

    async def connect_plain(self, url: StoreUrl) -> Any:
        return await connect(url)

    async def connect_source(self, url: StoreUrl) -> TransferConnection:
        return MysqlTransferConnection(await connect(url, "REPEATABLE-READ"))

    async def connect_target(self, url: StoreUrl) -> TransferConnection:
        return MysqlTransferConnection(await connect(url, "READ-COMMITTED"))


KIND = MysqlKind()
