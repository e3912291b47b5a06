"""Opening a database: the engine for a URL, its ways of saying things, and a leased id generator."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from typing import TypeVar

import structlog

from nexo.config import Config, StoreUrl
from nexo.errors import NexoError
from nexo.ids import COUNTER_MAX, IdGenerator, now_ms
from nexo.store import leases
from nexo.store.engine import CommitUnknown, Conflict, DiskFull, Engine, MakeScript, StoreError, Transient, write
from nexo.store.mysql import MysqlDriver
from nexo.store.postgres import PostgresDriver
from nexo.store.server import ServerEngine
from nexo.store.sql import Sql
from nexo.store.sqlite import SqliteEngine

log = structlog.get_logger()
T = TypeVar("T")


def make_engine(url: StoreUrl, config: Config) -> Engine:
    store = config.store
    if url.engine == "sqlite":
        return SqliteEngine(url.path, reader_threads=store.reader_threads, lock_timeout_ms=store.lock_timeout_ms)
    target = {"host": url.host, "port": url.port, "user": url.user, "password": url.password, "database": url.database}
    target = {key: value for key, value in target.items() if value} | url.params
    if url.engine == "mysql":
        return ServerEngine(
            MysqlDriver(target, pool_size=store.pool_size, lock_timeout_ms=store.lock_timeout_ms),
            store.lock_timeout_ms,
        )
    return ServerEngine(
        PostgresDriver(target, pool_size=store.pool_size, lock_timeout_ms=store.lock_timeout_ms),
        store.lock_timeout_ms,
    )


def _refusal(error: StoreError) -> NexoError:
    log.warning("store_refused", error=f"{type(error).__name__}: {error}")
    if isinstance(error, DiskFull):
        return NexoError("server_busy", "The disk of the database is full", retry_after_ms=1000)
    if isinstance(error, Transient):
        detail = "The database cannot be reached, or does not answer in time"
        return NexoError("server_busy", detail, retry_after_ms=1000)
    if isinstance(error, CommitUnknown):
        return NexoError("internal_error", "The database went away while it was writing: look before you try again")
    return NexoError("internal_error")


class LeasedIds(IdGenerator):
    """The id generator of this process; its node number is leased while the database is open."""

    def __init__(self, node: int, not_before_ms: int, holder: str) -> None:
        super().__init__(node, not_before_ms)
        self.node = node
        self.holder = holder

    def move(self, node: int, not_before_ms: int) -> None:
        """Go on under another number, after the old one was lost."""
        with self._lock:
            self.node = node
            self._set_node(node)
            if not_before_ms >= self._last_ms:
                self._last_ms, self._counter = not_before_ms, COUNTER_MAX


class Database:
    """One open database: what scripts are run on."""

    def __init__(self, url: StoreUrl, config: Config) -> None:
        self.url = url
        self.engine = make_engine(url, config)
        self.sql = Sql(self.engine.name)
        self.ids: LeasedIds
        self._renewal: asyncio.Task[None] | None = None

    async def open(self) -> None:
        holder = f"{socket.gethostname()[:30]}:{os.getpid()}:{secrets.token_hex(6)}"
        try:
            await self.engine.start()
            node, not_before_ms = await self._take_node(holder)
        except BaseException:
            await self.engine.stop()
            raise
        self.ids = LeasedIds(node, not_before_ms, holder)
        self._renewal = asyncio.create_task(self._renew())

    async def _take_node(self, holder: str) -> tuple[int, int]:
        while True:
            try:
                return await self.write(lambda: leases.take_node(self.sql, holder))
            except Conflict:  # another instance that starts at the same moment was faster
                continue

    async def close(self) -> None:
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.gather(self._renewal, return_exceptions=True)
            ids = self.ids
            last_ms = max(ids.last_ms, now_ms())
            try:
                await self.engine.write_once(lambda: leases.release_node(ids.node, ids.holder, last_ms))
            except StoreError as error:
                log.warning("node_lease_not_released", error=str(error))
        await self.engine.stop()

    async def write(self, make: MakeScript[T]) -> T:
        return await write(self.engine, make)

    async def read(self, make: MakeScript[T]) -> T:
        return await self.engine.read(make)

    async def change(self, make: MakeScript[T]) -> T:
        """As `write`, for callers above the store: they learn what a client may be told. A Conflict is
        left to them; they know what it means."""
        try:
            return await self.write(make)
        except Conflict:
            raise
        except StoreError as error:
            raise _refusal(error) from error

    async def look(self, make: MakeScript[T]) -> T:
        """As `read`, for callers above the store."""
        try:
            return await self.read(make)
        except StoreError as error:
            raise _refusal(error) from error

    async def _renew(self) -> None:
        ids = self.ids
        while True:
            await asyncio.sleep(leases.RENEW_S)
            try:
                if await self.write(lambda: leases.renew_node(self.sql, ids.node, ids.holder, ids.last_ms)):
                    continue
                node, not_before_ms = await self._take_node(ids.holder)
                log.warning("node_lease_lost", old=ids.node, new=node)
                ids.move(node, not_before_ms)
            except StoreError as error:
                log.warning("node_lease_not_renewed", error=str(error))
