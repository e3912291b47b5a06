"""Opening a database: the engine for a URL, its ways of saying things, and a leased id generator."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
import time
from collections.abc import Callable
from typing import TypeVar

import structlog

from nexo.config import Config, StoreUrl
from nexo.errors import NexoError
from nexo.ids import COUNTER_MAX, IdGenerator, now_ms
from nexo.store import leases
from nexo.store.engine import CommitUnknown, Conflict, DiskFull, Engine, MakeScript, StoreError, Transient, write
from nexo.store.leases import Lease
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


def _uptime_s() -> float:
    """Goes on while this process or the whole machine sleeps, and never back."""
    return time.clock_gettime(time.CLOCK_BOOTTIME if hasattr(time, "CLOCK_BOOTTIME") else time.CLOCK_MONOTONIC)


class LeasedIds(IdGenerator):
    """The id generator of this process; its node number is leased while the database is open."""

    def __init__(self, lease: Lease, asked_at: float, holder: str, ask_again: Callable[[], None]) -> None:
        """`ask_again` is called, in whatever thread, when the lease is over before it was renewed."""
        super().__init__(lease.node, lease.used_ms)
        self.holder = holder
        self._ask_again = ask_again
        self.extend(lease, asked_at)

    def extend(self, lease: Lease, asked_at: float) -> None:
        """The same number for some more time, or another one after the old one was lost. The time counts from
        when it was asked for: the answer may have been read much later."""
        with self._lock:
            self.node = lease.node
            self._set_node(lease.node)
            self._until_ms = lease.until_ms
            self._ends_at = asked_at + leases.LEASE_S

    def move(self, lease: Lease, asked_at: float) -> None:
        with self._lock:
            if lease.used_ms >= self._last_ms:
                self._last_ms, self._counter = lease.used_ms, COUNTER_MAX
        self.extend(lease, asked_at)

    @property
    def clock_ms(self) -> int:
        """What the next id would show."""
        return max(self._clock(), self._last_ms)

    def take(self, count: int) -> list[int]:
        """Raises NexoError("server_busy") when somebody else may hold this number by now: this process stood still,
        could not reach the database for too long, or its clock was put forward."""
        # what is borrowed from the future is a millisecond per 4096 ids
        if _uptime_s() >= self._ends_at or self.clock_ms + count >= self._until_ms:
            self._ask_again()
            raise NexoError("server_busy", "The lease for message ids has to be renewed", retry_after_ms=500)
        return super().take(count)


class Database:
    """One open database: what scripts are run on."""

    def __init__(self, url: StoreUrl, config: Config) -> None:
        self.url = url
        self.engine = make_engine(url, config)
        self.sql = Sql(self.engine.name)
        self.ids: LeasedIds
        self._renewal: asyncio.Task[None] | None = None
        self._renew_now = asyncio.Event()

    async def open(self) -> None:
        holder = f"{socket.gethostname()[:30]}:{os.getpid()}:{secrets.token_hex(6)}"
        try:
            await self.engine.start()
            asked_at = _uptime_s()
            lease = await self._take_node(holder)
        except BaseException:
            await self.engine.stop()
            raise
        loop = asyncio.get_running_loop()
        self.ids = LeasedIds(lease, asked_at, holder, lambda: _tell(loop, self._renew_now))
        self._renewal = asyncio.create_task(self._renew())

    async def _take_node(self, holder: str, clock_ms: int = 0) -> Lease:
        while True:
            try:
                return await self.write(lambda: leases.take_node(self.sql, holder, max(clock_ms, now_ms())))
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
        pause_s = leases.RENEW_S
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._renew_now.wait()
            self._renew_now.clear()
            try:
                await self._renew_once(self.ids)
                pause_s = leases.RENEW_S
            except StoreError as error:
                log.warning("node_lease_not_renewed", error=str(error))
                pause_s = leases.RETRY_S

    async def _renew_once(self, ids: LeasedIds) -> None:
        asked_at = _uptime_s()
        clock_ms = ids.clock_ms
        lease = await self.write(lambda: leases.renew_node(self.sql, ids.node, ids.holder, clock_ms))
        if lease is not None:
            ids.extend(lease, asked_at)
            return
        asked_at, old = _uptime_s(), ids.node
        ids.move(await self._take_node(ids.holder, clock_ms), asked_at)
        log.warning("node_lease_lost", old=old, new=ids.node)


def _tell(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
    """From any thread."""
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
        loop.call_soon_threadsafe(event.set)
