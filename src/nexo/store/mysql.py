"""MySQL and MariaDB by asyncmy: a pool of writers with strict timeouts and a pool of readers.

READ COMMITTED, so that a locking read never takes gap locks. The connection speaks the tables' own binary
collation; literals in derived tables could not be compared with columns otherwise.
"""

from __future__ import annotations

import asyncio
from typing import Any

import asyncmy
from asyncmy import errors as my
from asyncmy.constants.CLIENT import FOUND_ROWS

from nexo.store.engine import Conflict, DiskFull, Mode, Stmt, StoreError, Transient
from nexo.store.server import LostConnection
from nexo.store.sql import percent

CLOCK_MS = "CAST(UNIX_TIMESTAMP(SYSDATE(3)) * 1000 AS SIGNED)"

_DUPLICATE = {1062, 1586}
_DISK_FULL = {1021, 1114}
# too many connections, locks, deadlocks, statement timeouts
_TRANSIENT = {1020, 1040, 1205, 1213, 1317, 1969, 3024, 3572}
_LOST = {1053, 1079, 1080, 1158, 1159, 1160, 1161, 1184, 1927, 2003, 2006, 2013, 2014, 2055, 4031}


class MysqlDriver:
    name = "mysql"

    def __init__(self, target: dict[str, Any], *, pool_size: int, lock_timeout_ms: int) -> None:
        self._target = target
        self._pool_size = pool_size
        self._lock_timeout_s = max(1, lock_timeout_ms // 1000)
        self._pools: dict[bool, Any] = {}
        self.is_mariadb = True

    async def open(self) -> None:
        probe = await asyncmy.connect(**self._target, charset="utf8mb4", connect_timeout=10)
        try:
            self.is_mariadb = "mariadb" in str(probe.get_server_info()).lower()
        finally:
            await probe.ensure_closed()
        collation = "utf8mb4_nopad_bin" if self.is_mariadb else "utf8mb4_0900_bin"
        isolation = "TX_ISOLATION" if self.is_mariadb else "TRANSACTION_ISOLATION"
        common = (
            f"SET NAMES utf8mb4 COLLATE {collation}, SESSION {isolation}='READ-COMMITTED', "
            "time_zone='+00:00', sql_mode='STRICT_ALL_TABLES'"
        )
        limit = self._lock_timeout_s
        strict = f", innodb_lock_wait_timeout={limit}"
        if self.is_mariadb:
            strict += f", max_statement_time={limit}, idle_transaction_timeout={limit}"
            relaxed = ", max_statement_time=10"
        else:
            relaxed = ", max_execution_time=10000"
        for for_writing, extra in ((True, strict), (False, relaxed)):
            self._pools[for_writing] = await asyncmy.create_pool(
                **self._target,
                minsize=1,
                maxsize=self._pool_size,
                charset="utf8mb4",
                init_command=common + extra,
                autocommit=True,
                connect_timeout=5,
                client_flag=FOUND_ROWS,
            )

    async def close(self) -> None:
        for pool in self._pools.values():
            pool.close()
            try:
                await asyncio.wait_for(pool.wait_closed(), 5)
            except TimeoutError:
                pool.terminate()
        self._pools.clear()

    async def acquire(self, for_writing: bool) -> Any:
        return await self._pools[for_writing].acquire()

    async def release(self, connection: Any, for_writing: bool) -> None:
        await self._pools[for_writing].release(connection)

    def abort(self, connection: Any) -> None:
        connection.close()

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
        await cursor.execute(percent(sql), params or None)
        if mode is Mode.ROWS:
            return await cursor.fetchall()
        if mode is Mode.DO:
            return None
        raise StoreError(f"MySQL has no statements of mode {mode.name}")

    async def command(self, connection: Any, word: str) -> None:
        await connection.query(word)

    def translate(self, error: Exception) -> StoreError | None:
        if isinstance(error, my.MySQLError):
            code = error.args[0] if error.args else 0
            if code in _DUPLICATE:
                return Conflict(str(error))
            if code in _DISK_FULL:
                return DiskFull(str(error))
            if code in _TRANSIENT:
                return Transient(str(error))
            if code in _LOST or isinstance(error, my.InterfaceError):
                return LostConnection(str(error))
            return StoreError(str(error))
        if isinstance(error, (OSError, EOFError, asyncio.IncompleteReadError)):
            return LostConnection(f"{type(error).__name__}: {error}")
        return None
