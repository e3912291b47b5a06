"""PostgreSQL by asyncpg: a pool of writers with strict timeouts and a pool of readers.

READ COMMITTED; custom plans, because a generic plan made while a table was small costs milliseconds once
it has grown. A stopped instance frees what it holds: the server ends idle transactions.
"""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import asyncpg

from nexo.store.engine import Conflict, DiskFull, Mode, Stmt, StoreError, Transient
from nexo.store.engines.connection_pool import ConnectionPool
from nexo.store.engines.hosts import Hosts, NotPrimary, Place
from nexo.store.engines.postgres.sql import CLOCK_MS, numbered
from nexo.store.engines.server import LostConnection, NotWritable, RolledBack
from nexo.store.engines.server_kind import place_options

_NOW = f"SELECT {CLOCK_MS}"

_ROLLED_BACK = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)
_TRANSIENT = (
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

_JOURNAL_KEY = "journal_pkey"  # a reader took the number that a row was about to get: the next attempt gets another

KNOWN_MAX = 64  # statements; a connection remembers a hundred


async def check_host(connection: Any, for_writing: bool = True) -> None:
    """Raises NotPrimary for a standby, and for a primary that takes no writes. Servers from version 14 on have reported
    it while the connection was opened."""
    settings = connection.get_settings()
    in_standby = getattr(settings, "in_hot_standby", None)
    if in_standby is None:
        in_standby = "on" if await connection.fetchval("SELECT pg_is_in_recovery()") else "off"
    if in_standby == "on":
        raise NotPrimary("this server is a standby")
    if for_writing and getattr(settings, "default_transaction_read_only", "off") == "on":
        raise NotPrimary("this server is read-only")


class PostgresDriver:
    name = "postgresql"

    def __init__(
        self, target: dict[str, Any], hosts: Hosts, *, pool_size: int, lock_timeout_ms: int, needs_primary: bool
    ) -> None:
        self._target = target
        self._needs_primary = needs_primary
        self._written = {_NOW: None}  # statements of writers
        self._prepared: WeakKeyDictionary[Any, int] = WeakKeyDictionary()  # how many of them a connection has
        settings = {
            "application_name": "nexo",
            "plan_cache_mode": "force_custom_plan",
            "default_transaction_isolation": "read committed",
        }
        limit = str(lock_timeout_ms)
        strict = {
            "lock_timeout": limit,
            "statement_timeout": limit,
            "idle_in_transaction_session_timeout": limit,
        }
        relaxed = {"statement_timeout": "10000", "default_transaction_read_only": "on"}
        hosts.on_move = self._move
        self._pools = {
            for_writing: ConnectionPool(hosts, pool_size, partial(self._open, settings | extra), _is_usable, self.abort)
            for for_writing, extra in ((True, strict), (False, relaxed))
        }

    async def open(self) -> None:
        for pool in self._pools.values():
            pool.release(await pool.acquire())

    async def _open(self, settings: dict[str, str], place: Place) -> Any:
        connection = await asyncpg.connect(**self._target, **place_options(place), server_settings=settings)
        try:
            if self._needs_primary:
                await check_host(connection, "default_transaction_read_only" not in settings)
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def close(self) -> None:
        for pool in self._pools.values():
            await pool.close(lambda connection: connection.close())

    async def acquire(self, for_writing: bool) -> Any:
        connection = await self._pools[for_writing].acquire()
        if for_writing:
            try:
                await self._prepare(connection)
            except BaseException:
                self.abort(connection)
                self._pools[for_writing].release(connection)
                raise
        return connection

    async def _prepare(self, connection: Any) -> None:
        """Prepare statements before a transaction begins. Between preparing a statement and running it the server waits
        without any timeout: an instance that is stopped there would keep its locks for as long as that lasts."""
        done = self._prepared.get(connection, 0)
        if done == len(self._written):
            return
        self._prepared[connection] = len(self._written)
        for sql in list(self._written)[done:]:
            with contextlib.suppress(asyncpg.PostgresError):  # the script that runs it gets the error
                await connection.executemany(sql, [])

    async def release(self, connection: Any, for_writing: bool) -> None:
        self._pools[for_writing].release(connection)

    def abort(self, connection: Any) -> None:
        connection.terminate()

    def drop_idle(self) -> None:
        for pool in self._pools.values():
            pool.drop_idle()

    def _move(self, place: Place) -> None:
        for pool in self._pools.values():
            pool.keep_only(place)

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

    @staticmethod
    def translate(error: Exception) -> StoreError | None:
        if isinstance(error, asyncpg.UniqueViolationError):
            if error.constraint_name == _JOURNAL_KEY:
                return Transient(str(error))
            return Conflict(str(error))
        if isinstance(error, asyncpg.DiskFullError):
            return DiskFull(str(error))
        if isinstance(error, _ROLLED_BACK):
            return RolledBack(_words_of(error))
        if isinstance(error, asyncpg.ReadOnlySQLTransactionError):  # the primary has become a standby
            return NotWritable(_words_of(error))
        if isinstance(error, _TRANSIENT):
            return Transient(_words_of(error))
        if isinstance(error, asyncpg.InternalClientError):  # states of the driver, which are not the database's words
            return LostConnection("the connection was lost in the middle of a statement")
        if isinstance(error, _LOST):
            return LostConnection(_words_of(error))
        if isinstance(error, asyncpg.PostgresError):
            return StoreError(_words_of(error))
        return None


def _words_of(error: Exception) -> str:
    """Returns the error in one line; PostgreSQL adds details and hints on further ones."""
    return f"{type(error).__name__}: " + "; ".join(filter(None, map(str.strip, str(error).splitlines())))


def _is_usable(connection: Any) -> bool:
    return not connection.is_closed() and not connection.is_in_transaction()
