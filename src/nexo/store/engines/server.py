"""Scripts on a database server: what PostgreSQL and MySQL share, with each driver behind `Driver`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

from nexo.metrics.families import Sample
from nexo.metrics.scripts import NOTED_MAX, ScriptMeter
from nexo.store.engine import (
    CommitUnknown,
    Engine,
    MakeScript,
    Mode,
    Stmt,
    StoreError,
    Transient,
    failure_word,
)

T = TypeVar("T")

READ_TIMEOUT_S = 15.0


class Driver(Protocol):
    """One driver library. Connections are its own; errors are translated by `translate`."""

    name: str

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def acquire(self, for_writing: bool) -> Any: ...

    async def release(self, connection: Any, for_writing: bool) -> None: ...

    def abort(self, connection: Any) -> None:
        """Close it at once, without a message to the server, which rolls back. A message could do harm: a COMMIT that
        is cancelled while it waits for a standby becomes visible without being replicated."""

    def drop_idle(self) -> None:
        """Close the connections that wait: they lead to a server that has lost one."""

    async def run(self, connection: Any, statement: Stmt) -> Any: ...

    async def command(self, connection: Any, word: str) -> None:
        """BEGIN, COMMIT or ROLLBACK."""

    def translate(self, error: Exception) -> StoreError | None:
        """Returns None for errors that are not the driver's. Lost connections become LostConnection."""


class LostConnection(Transient):
    """The connection is gone, or the server did not answer in time."""


class NotWritable(LostConnection):
    """The server on this connection takes no writes (any more): the attempt surely did not commit."""


class RolledBack(Transient):
    """The transaction was rolled back for certain, also when COMMIT says so: a deadlock, a failed certification."""


class ServerEngine(Engine):
    batches_ready = 1  # two would run on different connections and could overtake each other

    def __init__(self, driver: Driver, lock_timeout_ms: int) -> None:
        self.name = driver.name
        self._driver = driver
        self._meter = ScriptMeter()
        self.committed_at = time.monotonic()
        # beyond the server's own timeouts: for a server that does not answer at all
        self._attempt_s = lock_timeout_ms / 1000 + 3

    async def start(self) -> None:
        await self._driver.open()

    async def stop(self) -> None:
        await self._driver.close()

    async def write_once(
        self, make: MakeScript[T], uncertain: bool = False, committed: Callable[[T], None] | None = None
    ) -> T:
        result = await self._attempt(make, True, uncertain)
        self.committed_at = time.monotonic()
        if committed is not None:
            committed(result)
        return result

    async def read(self, make: MakeScript[T]) -> T:
        """Each statement sees what is committed when it starts; a lost connection is tried once more."""
        try:
            return await self._attempt(make, False, False)
        except LostConnection:
            return await self._attempt(make, False, False)

    async def _attempt(self, make: MakeScript[T], for_writing: bool, uncertain: bool) -> T:
        driver = self._driver
        started = time.perf_counter()
        connection: Any = None
        committing = False
        try:
            async with asyncio.timeout(self._attempt_s if for_writing else READ_TIMEOUT_S):
                connection = await driver.acquire(for_writing)
                script = make()
                begun = False
                result: Any = None
                try:
                    while True:
                        statement = script.send(result)
                        if for_writing and not begun:
                            await driver.command(connection, "BEGIN")
                            begun = True
                        if statement.mode is not Mode.PROOF:
                            result = await driver.run(connection, statement)
                        elif uncertain:
                            query = Stmt(statement.sql, statement.params, Mode.ROWS)
                            result = bool(await driver.run(connection, query))
                        else:
                            result = False
                except StopIteration as stop:
                    if begun:
                        committing = True
                        await driver.command(connection, "COMMIT")
                    self._meter.noted.append((script, time.perf_counter() - started))
                    if len(self._meter.noted) >= NOTED_MAX:
                        self._meter.count()
                    return stop.value  # type: ignore[no-any-return]
                except BaseException as error:
                    script.close()
                    if begun and not isinstance(error, (asyncio.CancelledError, TimeoutError)):
                        await self._rollback(connection)
                    raise
        except asyncio.CancelledError:
            if connection is not None:
                driver.abort(connection)
            raise
        except Exception as error:
            translated = (
                LostConnection("no answer in time") if isinstance(error, TimeoutError) else driver.translate(error)
            )
            if translated is None:
                raise
            is_unknown = committing and not isinstance(translated, NotWritable | RolledBack)
            self._meter.failures.add("unknown" if is_unknown else failure_word(translated))
            if connection is not None and (is_unknown or isinstance(translated, LostConnection)):
                driver.abort(connection)
            if isinstance(translated, LostConnection):
                driver.drop_idle()
            if is_unknown:  # after a time-out, too
                raise CommitUnknown(str(translated)) from error
            raise translated from error
        finally:
            if connection is not None:
                await driver.release(connection, for_writing)

    def samples(self) -> Iterable[Sample]:
        return self._meter.samples()

    async def _rollback(self, connection: Any) -> None:
        try:
            await self._driver.command(connection, "ROLLBACK")
        except Exception as error:
            if self._driver.translate(error) is None:
                raise
            self._driver.abort(connection)
