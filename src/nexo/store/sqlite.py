"""SQLite: one writer thread, a few reader threads, stdlib sqlite3.

WAL with synchronous=FULL: a commit is on the disk when it returns. The threads take jobs from queues;
what they produce goes back to the event loop in one callback per transaction. Another thread copies the log
into the database (`Checkpointer`): by default a commit would, every four megabytes, and everybody behind it waits.
"""

from __future__ import annotations

import asyncio
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import structlog

from nexo.ids import now_ms
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.scripts import ScriptMeter
from nexo.store.engine import Conflict, DiskFull, MakeScript, Mode, Script, StoreError, Transient, failure_word

log = structlog.get_logger()

T = TypeVar("T")

# The more rows, the more changes of one page are copied at once. How many pages the log has can only be found out
# from its index, which must not be opened: closing it would drop SQLite's own locks.
CHECKPOINT_ROWS = 16_000  # some 100 MiB of log; with a million messages stored, 4,000 cost 12 % more CPU a message
WRITER_CHECKPOINT_PAGES = 64_000  # should the checkpointer not come round to it, the writer does it itself
CHECKPOINT_LOOK_S = 0.1

# A full disk too: what does not fit now is retried while its deadline lasts, and goes in once there is room.
_TRANSIENT = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL}
_UNIQUE = {sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY}


class Connection(sqlite3.Connection):
    rollbacks = 0  # so far


Job = Callable[[Connection], None]


def make_database_file(path: Path) -> None:
    """Password hashes and messages are nobody else's business; SQLite would follow the umask."""
    path.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


def connect(path: Path, *, busy_ms: int = 2000) -> Connection:
    # autocommit mode: transactions are begun and ended by us, and nobody else
    connection = sqlite3.connect(
        path,
        isolation_level=None,
        timeout=busy_ms / 1000,
        cached_statements=512,
        check_same_thread=False,
        factory=Connection,
    )
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA cache_size=-65536")
    connection.execute("PRAGMA temp_store=MEMORY")
    connection.execute(f"PRAGMA wal_autocheckpoint={WRITER_CHECKPOINT_PAGES}")
    return connection


def run_script(connection: Connection, script: Script[T], begin: str) -> T:
    """Drive a script to its end. The transaction begins with the first statement: none, none begun."""
    cursor = connection.cursor()
    begun = False
    result: Any = None
    try:
        while True:
            sql, params, mode = script.send(result)
            if mode is Mode.NOW:
                result = now_ms()
                continue
            if mode is Mode.PROOF:  # a local commit has no unknown end
                result = False
                continue
            if not begun:
                cursor.execute(begin)
                begun = True
            if mode is Mode.ROWS:
                result = cursor.execute(sql, params).fetchall()
            elif mode is Mode.EACH:
                execute = cursor.execute
                result = [execute(sql, key).fetchone() for key in params]
            elif mode is Mode.MANY:
                cursor.executemany(sql, params)
                result = None
            elif mode is Mode.MARK:  # written by another connection, by this one, or not written after all
                result = (cursor.execute(sql).fetchone(), connection.total_changes, connection.rollbacks)
            else:
                cursor.execute(sql, params)
                result = None
    except StopIteration as stop:
        if begun:
            _commit(connection, cursor)
        return stop.value  # type: ignore[no-any-return]
    except BaseException as error:
        script.close()
        connection.rollbacks += 1
        if connection.in_transaction:
            cursor.execute("ROLLBACK")
        if isinstance(error, sqlite3.Error):
            raise _classified(error) from error
        raise


def _commit(connection: Connection, cursor: sqlite3.Cursor) -> None:
    try:
        cursor.execute("COMMIT")
    except sqlite3.Error as error:
        connection.rollbacks += 1
        if connection.in_transaction:
            cursor.execute("ROLLBACK")
        raise _classified(error) from error


def _classified(error: sqlite3.Error) -> StoreError:
    code = getattr(error, "sqlite_errorcode", 0)
    if code & 0xFF == sqlite3.SQLITE_FULL:
        return DiskFull(str(error))
    if code & 0xFF in _TRANSIENT:
        return Transient(str(error))
    if code in _UNIQUE:
        return Conflict(str(error))
    return StoreError(f"{getattr(error, 'sqlite_errorname', 'SQLITE')}: {error}")


class SqliteEngine:
    name = "sqlite"

    def __init__(self, path: Path, *, reader_threads: int = 2, lock_timeout_ms: int = 2000) -> None:
        self._path = path
        self._busy_ms = lock_timeout_ms
        self._reader_count = max(1, reader_threads)
        self._writes: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._reads: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._meter = ScriptMeter()
        self._checkpointer: Checkpointer | None = None

    async def start(self) -> None:
        make_database_file(self._path)
        plan = [("nexo-writer", self._writes)] + [("nexo-reader", self._reads)] * self._reader_count
        connections = [connect(self._path, busy_ms=self._busy_ms) for _ in plan]
        for (thread_name, jobs), connection in zip(plan, connections, strict=True):
            thread = threading.Thread(target=_work, args=(connection, jobs), name=thread_name, daemon=True)
            thread.start()
            self._threads.append(thread)
        self._checkpointer = Checkpointer(connect(self._path, busy_ms=self._busy_ms), connections[0], self._writes)
        self._checkpointer.start()

    async def stop(self) -> None:
        """Everything handed over so far is finished first."""
        if self._checkpointer is not None:
            await asyncio.to_thread(self._checkpointer.stop)
            self._checkpointer = None
        self._writes.put(None)
        for _ in range(self._reader_count):
            self._reads.put(None)
        for thread in self._threads:
            await asyncio.to_thread(thread.join)
        self._threads.clear()

    async def write_once(
        self, make: MakeScript[T], uncertain: bool = False, committed: Callable[[], None] | None = None
    ) -> T:
        return await self._submit(self._writes, make, "BEGIN IMMEDIATE", committed)

    async def read(self, make: MakeScript[T]) -> T:
        return await self._submit(self._reads, make, "BEGIN")

    async def _submit(
        self,
        jobs: queue.SimpleQueue[Job | None],
        make: MakeScript[T],
        begin: str,
        committed: Callable[[], None] | None = None,
    ) -> T:
        if not self._threads:
            raise StoreError("the store is not open")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        # Threads only answer; what is measured is told here, on the loop.
        timing: list[Any] = []

        def job(connection: Connection) -> None:
            started = time.perf_counter()
            try:
                script = make()
                timing.append(script)
                value = run_script(connection, script, begin)
                if committed is not None:
                    committed()
            except BaseException as error:
                _answer(loop, future, None, error)
            else:
                timing.append(time.perf_counter() - started)
                _answer(loop, future, value, None)

        jobs.put(job)
        try:
            value = await future
        except StoreError as error:
            self._meter.failures.add(failure_word(error))
            raise
        self._meter.observe(*timing)
        return value

    def samples(self) -> Iterable[Sample]:
        yield from self._meter.samples()
        yield f.QUEUE(self._reads.qsize(), "reads")


class Checkpointer:
    """Copies the log into the database, most of it beside the writer. What was added meanwhile the writer
    copies in turn: that is little, and then the log begins anew. It would grow for ever under constant load if
    nobody ever saw its end."""

    def __init__(self, connection: Connection, writer: Connection, writes: queue.SimpleQueue[Job | None]) -> None:
        self._connection = connection
        self._writer = writer
        self._writes = writes
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="nexo-checkpoint", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _work(self) -> None:
        copied = self._writer.total_changes
        try:
            while not self._stopping.wait(CHECKPOINT_LOOK_S):
                if self._writer.total_changes - copied >= CHECKPOINT_ROWS:
                    copied = self._writer.total_changes
                    checkpoint(self._connection)
                    self._writes.put(checkpoint)
        finally:
            self._connection.close()


def checkpoint(connection: Connection) -> None:
    try:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    except sqlite3.Error as error:  # a full disk: the log keeps what was committed, and it is tried again
        log.warning("checkpoint_failed", error=str(error))


def _answer(
    loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any], value: Any, error: BaseException | None
) -> None:
    def settle() -> None:
        if future.cancelled():
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)

    try:
        loop.call_soon_threadsafe(settle)
    except RuntimeError:  # the loop is closed: nobody waits any more
        return


def _work(connection: Connection, jobs: queue.SimpleQueue[Job | None]) -> None:
    try:
        while (job := jobs.get()) is not None:
            job(connection)
    finally:
        connection.close()
