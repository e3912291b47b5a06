"""An open database: its engine, its phrases of SQL, and a leased id generator."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
from collections.abc import Callable
from typing import Any, TypeVar

import structlog

from nexo.background import Background, Running
from nexo.config import Config, StoreUrl
from nexo.errors import NexoError
from nexo.ids import Lease, LeasedIds, now_ms, uptime_s
from nexo.store import leases
from nexo.store.engine import CommitUnknown, Conflict, DiskFull, MakeScript, StoreError, Transient, write
from nexo.store.engines.registry import engine_kind

log = structlog.get_logger()
T = TypeVar("T")

CHANGES_END_S = 5.0  # how long closing waits for changes in progress


def _refusal(error: StoreError) -> NexoError:
    log.warning("store_refused", error=f"{type(error).__name__}: {error}")
    if isinstance(error, DiskFull):
        return NexoError("server_busy", "The disk of the database is full", retry_after_ms=1000)
    if isinstance(error, Transient):
        detail = "The database cannot be reached, or does not answer in time"
        return NexoError("server_busy", detail, retry_after_ms=1000)
    if isinstance(error, CommitUnknown):
        detail = "The connection to the database was lost during a write: check the result before you try again"
        return NexoError("internal_error", detail)
    return NexoError("internal_error")


class Database:
    """One open database, on which scripts run."""

    def __init__(self, url: StoreUrl, config: Config, background: Background) -> None:
        self.url = url
        self.kind = engine_kind(url)
        self.engine = self.kind.make_engine(url, config)
        self.sql = self.kind.sql
        self.ids: LeasedIds
        self._background = background
        self._renewal: Running | None = None
        self._renew_now = asyncio.Event()
        self._changes: set[asyncio.Task[Any]] = set()  # in progress, with or without a caller

    async def open(self) -> None:
        holder = f"{socket.gethostname()[:30]}:{os.getpid()}:{secrets.token_hex(6)}"
        try:
            await self.engine.start()
            asked_at = uptime_s()
            lease = await self._take_node(holder)
        except BaseException:
            await self.engine.stop()
            raise
        loop = asyncio.get_running_loop()
        self.ids = LeasedIds(lease, asked_at + leases.LEASE_S, holder, lambda: _set_event(loop, self._renew_now))
        self._renewal = self._background.serve("node_lease", self._renew)

    async def _take_node(self, holder: str, clock_ms: int = 0) -> Lease:
        while True:
            try:
                return await self.write(lambda: leases.take_node(self.sql, holder, max(clock_ms, now_ms())))
            except Conflict:  # another instance that starts at the same moment was faster
                continue

    async def close(self) -> None:
        if self._changes:
            await asyncio.wait(self._changes, timeout=CHANGES_END_S)
        if self._renewal is not None:
            await self._renewal.stop()
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
        """As `write`, for callers above the store: raises errors that a client may see. A Conflict is passed on,
        because its meaning depends on the caller."""
        try:
            return await self.write(make)
        except Conflict:
            raise
        except StoreError as error:
            raise _refusal(error) from error

    async def change_and_publish(self, make: MakeScript[T], publish: Callable[[T], None]) -> T:
        """As `change`; `publish` gets the result after the commit, also when the caller is cancelled meanwhile."""
        task = asyncio.get_running_loop().create_task(self._change_and_publish(make, publish))
        self._changes.add(task)
        task.add_done_callback(self._change_ended)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_report_failure)
            raise

    async def _change_and_publish(self, make: MakeScript[T], publish: Callable[[T], None]) -> T:
        result = await self.change(make)
        publish(result)
        return result

    def _change_ended(self, task: asyncio.Task[Any]) -> None:
        self._changes.discard(task)
        if not task.cancelled():
            task.exception()  # a caller that was cancelled does not ask for it

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
            except Exception:
                self._renew_now.set()  # the next run does not wait
                raise

    async def _renew_once(self, ids: LeasedIds) -> None:
        asked_at = uptime_s()
        clock_ms = ids.clock_ms
        lease = await self.write(lambda: leases.renew_node(self.sql, ids.node, ids.holder, clock_ms))
        if lease is not None:
            ids.extend(lease, asked_at + leases.LEASE_S)
            return
        asked_at, old = uptime_s(), ids.node
        ids.move(await self._take_node(ids.holder, clock_ms), asked_at + leases.LEASE_S)
        log.warning("node_lease_lost", old=old, new=ids.node)


def _report_failure(task: asyncio.Task[Any]) -> None:
    """Log the unexpected error of a change whose caller does not wait for it any more."""
    error = None if task.cancelled() else task.exception()
    if error is not None and not isinstance(error, NexoError | StoreError):
        log.error("change_failed", exc_info=error)


def _set_event(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
    """Set an event from any thread."""
    with contextlib.suppress(RuntimeError):  # the loop is closed: no task waits any more
        loop.call_soon_threadsafe(event.set)
