"""SQLite: one writer thread, a few reader threads, stdlib sqlite3.

WAL with synchronous=FULL: a commit is on the disk when it returns. The threads take jobs from queues; results go
back to the event loop in one callback per transaction. Another thread copies the log into the database
(`Checkpointer`): by default a commit would, every four megabytes, and all commits behind it would wait.
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

from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.scripts import NOTED_MAX, ScriptMeter
from nexo.store.engine import Conflict, DiskFull, MakeScript, Mode, Script, StoreError, Transient, failure_word

log = structlog.get_logger()

T = TypeVar("T")

# The more rows, the more changes of one page are copied at once. How many pages the log has can only be found out
# from its index, which must not be opened: closing it would drop SQLite's own locks.
CHECKPOINT_ROWS = 16_000  # some 100 MiB of log; with a million messages stored, 4,000 cost 12 % more CPU a message
WRITER_CHECKPOINT_PAGES = 64_000  # above this the writer checkpoints itself
# To this the file of the log shrinks after a burst; below, it keeps its size: growing it again costs more.
LOG_KEPT_BYTES = 128 * 2**20
CHECKPOINT_LOOK_S = 0.1
# A log that is not in use any more is given back to the disk: after this time without a write, above this size.
IDLE_S = 5.0
IDLE_BYTES = 4 * 2**20
DISK_FULL_BYTES = 64 * 1024  # with less than this left, a failure to write is for want of room

# A full disk too: what does not fit now is retried while its deadline lasts, and goes in once there is room.
_TRANSIENT = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL}
_UNIQUE = {sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY}


class SqliteConnection(sqlite3.Connection):
    rollbacks = 0  # so far


Job = Callable[[SqliteConnection], None]


def make_database_file(path: Path) -> None:
    """Create the file, readable by its owner only: it holds password hashes. SQLite would follow the umask."""
    path.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


def connect(path: Path, *, busy_ms: int = 2000, is_derived: bool = False) -> SqliteConnection:
    """`is_derived`: its data can be made again, so a commit may be lost with the power; never half of one."""
    # autocommit mode: transactions are begun and ended only by `run_script`
    connection = sqlite3.connect(
        path,
        isolation_level=None,
        timeout=busy_ms / 1000,
        cached_statements=512,
        check_same_thread=False,
        factory=SqliteConnection,
    )
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(f"PRAGMA synchronous={'NORMAL' if is_derived else 'FULL'}")
    connection.execute("PRAGMA cache_size=-65536")
    connection.execute("PRAGMA temp_store=MEMORY")
    connection.execute(f"PRAGMA wal_autocheckpoint={WRITER_CHECKPOINT_PAGES}")
    connection.execute(f"PRAGMA journal_size_limit={LOG_KEPT_BYTES}")
    return connection


def run_script(connection: SqliteConnection, script: Script[T], begin: str) -> T:
    """Runs a script. The transaction begins with the first statement; without statements there is none."""
    cursor = connection.cursor()
    begun = False
    result: Any = None
    try:
        while True:
            sql, params, mode = script.send(result)
            if mode is Mode.NOW:
                result = time.time_ns() // 1_000_000
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
            elif mode is Mode.MARK or mode is Mode.ALL:
                for part, values in params:
                    cursor.executemany(part, values)
                # written by another connection, by this one, or not written after all
                version = cursor.execute("PRAGMA data_version").fetchone()
                result = (version, connection.total_changes, connection.rollbacks), time.time_ns() // 1_000_000
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
            raise classified(error) from error
        raise


def _commit(connection: SqliteConnection, cursor: sqlite3.Cursor) -> None:
    try:
        cursor.execute("COMMIT")
    except sqlite3.Error as error:
        connection.rollbacks += 1
        if connection.in_transaction:
            cursor.execute("ROLLBACK")
        raise classified(error) from error


def is_disk_full(path: Path) -> bool:
    """Whether the disk of a database has no room for a page of its log or of its shared memory."""
    try:
        status = os.statvfs(path.parent)
    except OSError:
        return False
    return status.f_bavail * status.f_frsize < DISK_FULL_BYTES


def classified(error: sqlite3.Error) -> StoreError:
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
    batches_ready = 2  # the writer thread finds the second one as soon as it has committed the first

    def __init__(
        self, path: Path, *, reader_threads: int = 2, lock_timeout_ms: int = 2000, is_derived: bool = False
    ) -> None:
        self._path = path
        self._is_derived = is_derived
        self._busy_ms = lock_timeout_ms
        self._reader_count = max(1, reader_threads)
        self._writes: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._reads: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._meter = ScriptMeter()
        self.committed_at = time.monotonic()
        self._checkpointer: Checkpointer | None = None

    async def start(self) -> None:
        make_database_file(self._path)
        plan = [("nexo-writer", self._writes)] + [("nexo-reader", self._reads)] * self._reader_count
        connections = [self._connect() for _ in plan]
        for (thread_name, jobs), connection in zip(plan, connections, strict=True):
            thread = threading.Thread(target=_work, args=(connection, jobs), name=thread_name, daemon=True)
            thread.start()
            self._threads.append(thread)
        self._checkpointer = Checkpointer(self._path, self._connect(), connections[0], self._writes)
        self._checkpointer.start()

    def _connect(self) -> SqliteConnection:
        return connect(self._path, busy_ms=self._busy_ms, is_derived=self._is_derived)

    async def stop(self) -> None:
        """Finish everything handed over so far, then end the threads."""
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
        self, make: MakeScript[T], uncertain: bool = False, committed: Callable[[T], None] | None = None
    ) -> T:
        result = await self._submit(self._writes, make, "BEGIN IMMEDIATE", committed)
        self.committed_at = time.monotonic()
        return result

    async def read(self, make: MakeScript[T]) -> T:
        return await self._submit(self._reads, make, "BEGIN")

    async def _submit(
        self,
        jobs: queue.SimpleQueue[Job | None],
        make: MakeScript[T],
        begin: str,
        committed: Callable[[T], None] | None = None,
    ) -> T:
        if not self._threads:
            raise StoreError("the store is not open")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        # Threads only answer; measurements are counted here, on the loop.
        timing: list[Any] = []

        def job(connection: SqliteConnection) -> None:
            started = time.perf_counter()
            try:
                script = make()
                timing.append(script)
                value = run_script(connection, script, begin)
                if committed is not None:
                    committed(value)
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
        self._meter.noted.append((timing[0], timing[1]))
        if len(self._meter.noted) >= NOTED_MAX:
            self._meter.count()
        return value

    def samples(self) -> Iterable[Sample]:
        yield from self._meter.samples()
        yield f.QUEUE(self._reads.qsize(), "reads")


class Checkpointer:
    """Copies the log into the database, most of it beside the writer. The writer copies
    what was added meanwhile, which is little, and the log restarts. Otherwise it would grow under constant load. In
    quiet times the log is emptied."""

    def __init__(
        self, path: Path, connection: SqliteConnection, writer: SqliteConnection, writes: queue.SimpleQueue[Job | None]
    ) -> None:
        self._log_file = path.with_name(f"{path.name}-wal")
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
        copied = seen = self._writer.total_changes
        changed_at = time.monotonic()
        try:
            while not self._stopping.wait(CHECKPOINT_LOOK_S):
                changes = self._writer.total_changes
                if changes != seen:
                    seen, changed_at = changes, time.monotonic()
                if changes - copied >= CHECKPOINT_ROWS:
                    copied = changes
                    checkpoint(self._connection)
                    self._writes.put(checkpoint)
                elif time.monotonic() - changed_at >= IDLE_S and self._log_bytes() > IDLE_BYTES:
                    copied, changed_at = changes, time.monotonic()
                    checkpoint(self._connection)
                    checkpoint(self._connection, "TRUNCATE")  # nothing is left to copy: the writer hardly waits
        finally:
            self._connection.close()

    def _log_bytes(self) -> int:
        try:
            return self._log_file.stat().st_size
        except OSError:
            return 0


def checkpoint(connection: SqliteConnection, mode: str = "PASSIVE") -> None:
    try:
        connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
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
    except RuntimeError:  # the loop is closed: no task waits any more
        return


def _work(connection: SqliteConnection, jobs: queue.SimpleQueue[Job | None]) -> None:
    try:
        while (job := jobs.get()) is not None:
            job(connection)
    finally:
        connection.close()
