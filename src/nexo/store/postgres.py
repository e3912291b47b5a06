"""PostgreSQL by asyncpg: a pool of writers with strict timeouts and a pool of readers.

READ COMMITTED; custom plans, because a generic plan made while a table was small costs milliseconds once
it has grown. A stopped instance frees what it holds: the server ends idle transactions.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import asyncpg

from nexo.store.engine import Conflict, DiskFull, Mode, Stmt, StoreError, Transient
from nexo.store.server import LostConnection
from nexo.store.sql import numbered

CLOCK_MS = "(extract(epoch from clock_timestamp()) * 1000)::bigint"
_NOW = f"SELECT {CLOCK_MS}"

_TRANSIENT = (
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.LockNotAvailableError,
    asyncpg.QueryCanceledError,
    asyncpg.InsufficientResourcesError,  # a full disk, too many connections
)
_LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.OperatorInterventionError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.InternalClientError,
    OSError,
    EOFError,
)


FORGOTTEN_AT = 1000
KNOWN_MAX = 64  # statements; a connection remembers a hundred
KEPT = 2  # connections of each kind that do not go back to their pool, which takes several turns of the event loop


class PostgresDriver:
    name = "postgresql"

    def __init__(self, target: dict[str, Any], *, pool_size: int, lock_timeout_ms: int) -> None:
        self._target = target
        self._pool_size = pool_size
        self._lock_timeout_ms = lock_timeout_ms
        self._pools: dict[bool, Any] = {}
        self._kept: dict[bool, list[Any]] = {False: [], True: []}
        self._asking = {False: 0, True: 0}  # for a connection of the pool
        self._written = {_NOW: None}  # statements of writers
        self._prepared: dict[int, int] = {}  # how many of them a connection has, by the process that serves it

    async def open(self) -> None:
        settings = {
            "application_name": "nexo",
            "plan_cache_mode": "force_custom_plan",
            "default_transaction_isolation": "read committed",
        }
        limit = str(self._lock_timeout_ms)
        strict = {
            "lock_timeout": limit,
            "statement_timeout": limit,
            "idle_in_transaction_session_timeout": limit,
        }
        relaxed = {"statement_timeout": "10000", "default_transaction_read_only": "on"}
        for for_writing, extra in ((True, strict), (False, relaxed)):
            self._pools[for_writing] = await asyncpg.create_pool(
                **self._target,
                min_size=1,
                max_size=self._pool_size,
                server_settings=settings | extra,
                init=self._forget,
                reset=_nothing,  # no statement of ours outlives its transaction
            )

    async def close(self) -> None:
        for for_writing, pool in self._pools.items():
            while self._kept[for_writing]:
                await self._give_back(self._kept[for_writing].pop(), for_writing)
            try:
                await asyncio.wait_for(pool.close(), 5)
            except TimeoutError:
                pool.terminate()
        self._pools.clear()

    async def acquire(self, for_writing: bool) -> Any:
        connection = self._kept_one(for_writing) or await self._from_pool(for_writing)
        if for_writing:
            await self._prepare(connection)
        return connection

    def _kept_one(self, for_writing: bool) -> Any:
        kept = self._kept[for_writing]
        while kept:
            connection = kept.pop()
            if _is_usable(connection):
                return connection
            self.abort(connection)  # its place in the pool is free again
        return None

    async def _from_pool(self, for_writing: bool) -> Any:
        self._asking[for_writing] += 1
        try:
            return await self._pools[for_writing].acquire()
        finally:
            self._asking[for_writing] -= 1

    async def _forget(self, connection: Any) -> None:
        """It is new, perhaps with the number of one that is gone."""
        if len(self._prepared) > FORGOTTEN_AT:
            self._prepared.clear()
        self._prepared.pop(connection.get_server_pid(), None)

    async def _prepare(self, connection: Any) -> None:
        """Before a transaction begins. Between preparing a statement and running it the server waits without any
        time-out: who is stopped there would keep its locks for as long as that lasts."""
        number = connection.get_server_pid()
        done = self._prepared.get(number, 0)
        if done == len(self._written):
            return
        self._prepared[number] = len(self._written)
        try:
            for sql in list(self._written)[done:]:
                with contextlib.suppress(asyncpg.PostgresError):  # whoever needs it will see
                    await connection.executemany(sql, [])
        except BaseException:
            self.abort(connection)
            raise

    async def release(self, connection: Any, for_writing: bool) -> None:
        kept = self._kept[for_writing]
        if not self._asking[for_writing] and len(kept) < KEPT and _is_usable(connection):
            kept.append(connection)
        else:
            await self._give_back(connection, for_writing)

    async def _give_back(self, connection: Any, for_writing: bool) -> None:
        try:
            await self._pools[for_writing].release(connection, timeout=2)
        except (*_LOST, TimeoutError):
            self.abort(connection)

    def abort(self, connection: Any) -> None:
        with contextlib.suppress(asyncpg.InterfaceError):  # lost: the pool has taken it back by itself
            connection.terminate()

    async def run(self, connection: Any, statement: Stmt) -> Any:
        sql, params, mode = statement
        if mode is Mode.NOW:
            return await connection.fetchval(_NOW)
        text = numbered(sql)
        if text not in self._written and len(self._written) < KNOWN_MAX and connection.is_in_transaction():
            self._written[text] = None
        if mode is Mode.ROWS:
            return await connection.fetch(text, *params)
        if mode is Mode.DO:
            await connection.fetch(text, *params)
            return None
        if mode is Mode.MANY:
            await connection.executemany(text, params)
            return None
        raise StoreError(f"PostgreSQL has no statements of mode {mode.name}")

    async def command(self, connection: Any, word: str) -> None:
        await connection.execute(word)

    def translate(self, error: Exception) -> StoreError | None:
        if isinstance(error, asyncpg.UniqueViolationError):
            return Conflict(str(error))
        if isinstance(error, asyncpg.DiskFullError):
            return DiskFull(str(error))
        if isinstance(error, _TRANSIENT):
            return Transient(f"{type(error).__name__}: {error}")
        if isinstance(error, _LOST):
            return LostConnection(f"{type(error).__name__}: {error}")
        if isinstance(error, asyncpg.PostgresError):
            return StoreError(f"{type(error).__name__}: {error}")
        return None


def _is_usable(connection: Any) -> bool:
    try:
        return not connection.is_closed() and not connection.is_in_transaction()
    except asyncpg.InterfaceError:  # lost: the pool has taken it back by itself
        return False


async def _nothing(connection: Any) -> None:
    pass
