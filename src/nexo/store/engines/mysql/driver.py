"""MySQL and MariaDB by asyncmy: a pool of writers with strict timeouts and a pool of readers.

READ COMMITTED, so that a locking read never takes gap locks.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import asyncmy
from asyncmy import errors as my
from asyncmy.constants.CLIENT import FOUND_ROWS

from nexo.store.engine import Conflict, DiskFull, Mode, Stmt, StoreError, Transient
from nexo.store.engines.connection_pool import ConnectionPool
from nexo.store.engines.hosts import ALONE_S, Hosts, NotPrimary, Place
from nexo.store.engines.mysql.sql import CLOCK_MS, percent, session_settings
from nexo.store.engines.server import LostConnection, NotWritable, RolledBack
from nexo.store.engines.server_kind import place_options
from nexo.store.journal.writing import INSERT as JOURNAL_INSERT

_DUPLICATE = {1062, 1586}
_DISK_FULL = {1021, 1114}
# too many connections, locks, deadlocks, statement timeouts
_TRANSIENT = {1020, 1040, 1205, 1317, 1969, 3024, 3572}
_ROLLED_BACK = {1213, 3100, 3101}  # deadlocks, failed certification (Galera, group replication), at COMMIT too
_NOT_WRITABLE = {1047, 1290, 1792, 1836}  # no part of its cluster, or read-only
_LOST = {1053, 1079, 1080, 1158, 1159, 1160, 1161, 1184, 1927, 2003, 2006, 2013, 2014, 2055, 4031}


# On Galera a read waits for what other nodes have committed before it; inside a transaction only its BEGIN does.
CAUSAL_READS = "SET SESSION wsrep_sync_wait=1"
_STATE = (
    "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('read_only','super_read_only','innodb_read_only','wsrep_on') "
    "AND Value NOT IN ('OFF','0')"
)
_GALERA_STATE = "SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_ready','wsrep_cluster_status')"


def is_mariadb(connection: Any) -> bool:
    return "mariadb" in str(connection.get_server_info()).lower()


async def check_host(connection: Any, needs_primary: bool) -> bool:
    """Raises NotPrimary for a server that takes no writes now, if it has to. Returns whether it is a node of Galera."""
    cursor = connection.cursor()
    await cursor.execute(_STATE)
    on = {name.lower() for name, _ in await cursor.fetchall()}
    is_galera = "wsrep_on" in on
    if is_galera:
        await cursor.execute(_GALERA_STATE)
        state = dict(await cursor.fetchall())
        if (state.get("wsrep_ready"), state.get("wsrep_cluster_status")) != ("ON", "Primary"):
            raise NotPrimary("this node is no part of its cluster")
    if needs_primary and (on - {"wsrep_on"}):
        raise NotPrimary("this server is read-only")
    return is_galera


class MysqlDriver:
    name = "mysql"

    def __init__(
        self, target: dict[str, Any], hosts: Hosts, *, pool_size: int, lock_timeout_ms: int, needs_primary: bool
    ) -> None:
        self._target = target
        self._hosts = hosts
        self._lock_timeout_s = max(1, lock_timeout_ms // 1000)
        self._needs_primary = needs_primary
        hosts.on_move = self._move
        self._pools = {
            for_writing: ConnectionPool(hosts, pool_size, partial(self._open, for_writing), _is_usable, self.abort)
            for for_writing in (True, False)
        }

    async def open(self) -> None:
        for pool in self._pools.values():
            pool.release(await pool.acquire())

    async def _open(self, for_writing: bool, place: Place) -> Any:
        connection = await asyncmy.connect(
            **self._target,
            **place_options(place),
            charset="utf8mb4",
            autocommit=True,
            connect_timeout=ALONE_S,
            client_flag=FOUND_ROWS,
        )
        try:
            mariadb = is_mariadb(connection)
            settings = session_settings(mariadb, "READ-COMMITTED")
            settings += self._strict(mariadb) if for_writing else self._relaxed(mariadb)
            cursor = connection.cursor()
            await cursor.execute(settings)
            if await check_host(connection, self._needs_primary):
                await cursor.execute(CAUSAL_READS)
        except BaseException:
            connection.close()
            raise
        return connection

    def _strict(self, mariadb: bool) -> str:
        limit = self._lock_timeout_s
        # the numbers of journal rows ascend by one; Galera and group replication set other steps
        strict = f", innodb_lock_wait_timeout={limit}, auto_increment_increment=1, auto_increment_offset=1"
        return strict + (f", max_statement_time={limit}, idle_transaction_timeout={limit}" if mariadb else "")

    @staticmethod
    def _relaxed(mariadb: bool) -> str:
        return ", max_statement_time=10" if mariadb else ", max_execution_time=10000"

    async def close(self) -> None:
        for pool in self._pools.values():
            await pool.close(lambda connection: connection.ensure_closed())

    async def acquire(self, for_writing: bool) -> Any:
        return await self._pools[for_writing].acquire()

    async def release(self, connection: Any, for_writing: bool) -> None:
        self._pools[for_writing].release(connection)

    def abort(self, connection: Any) -> None:
        transport = connection._transport
        if transport is not None:  # closing would wait until a silent server has read everything
            transport.abort()
        connection.close()

    def drop_idle(self) -> None:
        for pool in self._pools.values():
            pool.drop_idle()

    def _move(self, place: Place) -> None:
        for pool in self._pools.values():
            pool.keep_only(place)

    async def run(self, connection: Any, statement: Stmt) -> Any:
        sql, params, mode = statement
        cursor = connection.cursor()
        if mode is Mode.NOW:
            await cursor.execute(f"SELECT {CLOCK_MS}")
            return (await cursor.fetchone())[0]
        if mode is Mode.MANY:
            for item in params:
                await cursor.execute(percent(sql), item)
            return None
        try:
            await cursor.execute(percent(sql), params or None)
        except my.IntegrityError as error:
            # a reader took the number that this row was about to get: the next attempt gets another one
            if sql.startswith(JOURNAL_INSERT) and error.args[0] in _DUPLICATE:
                raise Transient(str(error)) from error
            raise
        if mode is Mode.ROWS:
            return await cursor.fetchall()
        if mode is Mode.DO:
            return None
        raise StoreError(f"MySQL has no statements of mode {mode.name}")

    async def command(self, connection: Any, word: str) -> None:
        await connection.query(word)

    @staticmethod
    def translate(error: Exception) -> StoreError | None:
        if isinstance(error, my.MySQLError):
            code = error.args[0] if error.args else 0
            if code in _DUPLICATE:
                return Conflict(str(error))
            if code in _DISK_FULL:
                return DiskFull(str(error))
            if code in _ROLLED_BACK:
                return RolledBack(str(error))
            if code in _NOT_WRITABLE:
                return NotWritable(str(error))
            if code in _TRANSIENT:
                return Transient(str(error))
            if code in _LOST or isinstance(error, my.InterfaceError):
                return LostConnection(str(error))
            return StoreError(str(error))
        if isinstance(error, (OSError, EOFError, asyncio.IncompleteReadError)):
            return LostConnection(f"{type(error).__name__}: {error}")
        if isinstance(error, RuntimeError) and "socket instance" in str(error):  # reset while it was being opened
            return LostConnection(str(error))
        return None


def _is_usable(connection: Any) -> bool:
    return bool(connection.connected) and not connection._stream_broken and not connection.get_transaction_status()
