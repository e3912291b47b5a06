"""How SQL is run: scripts, and the engines that run them.

A script is a generator that yields statements and gets their rows. It holds the logic of a transaction once, for every
engine: SQLite runs it in a thread (one hop per transaction, not per statement), the drivers of servers await each
statement. Scripts do no I/O of their own. After a transient failure they run again from the start, so they must not
change anything outside the database.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from enum import IntEnum
from typing import Any, NamedTuple, Protocol, TypeVar

from nexo.metrics.families import Sample

UNKNOWN_GIVE_UP_S = 30.0  # to find out whether a commit was written: longer than a server takes to restart

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Mode(IntEnum):
    ROWS = 0  # all rows
    DO = 1  # no result
    MANY = 2  # the statement once per parameter tuple
    EACH = 3  # first row (or None) per parameter tuple; SQLite only, where a round trip costs nothing
    NOW = 4  # the time in milliseconds, by the clock of the database
    PROOF = 5  # whether an earlier attempt of this script was committed
    MARK = 6  # a value that differs once another script or process has written, and the time; SQLite only
    ALL = 7  # several statements, each once per parameter tuple; returns as MARK; SQLite only


class Stmt(NamedTuple):
    sql: str
    params: Sequence[Any]
    mode: Mode


Script = Generator[Stmt, Any, T]
MakeScript = Callable[[], Generator[Stmt, Any, T_co]]


def rows(sql: str, *params: Any) -> Stmt:
    return Stmt(sql, params, Mode.ROWS)


def do(sql: str, *params: Any) -> Stmt:
    return Stmt(sql, params, Mode.DO)


def many(sql: str, params: Sequence[Sequence[Any]]) -> Stmt:
    return Stmt(sql, params, Mode.MANY)


def proof(sql: str, *params: Any) -> Stmt:
    """Returns a statement that yields True when the connection was lost during the commit of the last attempt, and the
    query finds what it wrote. To be asked after taking the lock, which waits for a commit in progress. A script that
    does not ask must be harmless to run twice."""
    return Stmt(sql, params, Mode.PROOF)


Part = tuple[str, Sequence[Sequence[Any]]]  # a statement and its parameter tuples

NOW = Stmt("", (), Mode.NOW)
MARK = Stmt("", (), Mode.MARK)


class StoreError(Exception):
    """The database could not do it. Its text is never shown to clients."""


class Transient(StoreError):
    """Nothing was written; another attempt may work (deadlock, lock timeout, lost connection)."""


class DiskFull(Transient):
    """The disk of the database is full. Tried again like other transient failures: an operator may free space."""


class CommitUnknown(StoreError):
    """The connection was lost during a commit: only a query can show whether it was written."""


class Conflict(StoreError):
    """A unique key refused a row; nothing was written."""


class Engine(Protocol):
    """One database. `write` runs a script in one transaction and returns after commit; `read` runs one
    that changes nothing and sees committed data only (at least everything committed before the call)."""

    name: str
    committed_at: float  # `time.monotonic()` of the last commit; of the start before there was one
    batches_ready: int  # how many batches the committer hands over before the first of them is answered

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def write_once(
        self, make: MakeScript[T], uncertain: bool = False, committed: Callable[[T], None] | None = None
    ) -> T:
        """Runs one attempt. Raises Transient, CommitUnknown, Conflict; any other error rolls back.
        `uncertain`: an earlier attempt ended in CommitUnknown. `committed` is called with
        the result, on any thread, after the commit and before the next script begins."""
        ...

    async def read(self, make: MakeScript[T]) -> T: ...

    def samples(self) -> Iterable[Sample]:
        """Returns its metrics."""


def failure_word(error: BaseException) -> str:
    """Returns the label of a failure in the metrics; empty for refusals, which are no failures."""
    if isinstance(error, Transient):
        return "transient"
    if isinstance(error, CommitUnknown):
        return "unknown"
    if isinstance(error, Conflict):
        return "conflict"
    return "failed" if isinstance(error, StoreError) else ""


async def write(engine: Engine, make: MakeScript[T], tries: int = 6) -> T:
    """Run a transaction until it is done: transient failures are repeated with growing pauses.

    A raised Transient means that nothing was written. After a commit with an unknown result this is not certain, so
    attempts continue for longer, and CommitUnknown is raised in the end.
    """
    attempt = 0
    unknown_since: float | None = None
    while True:
        attempt += 1
        try:
            return await engine.write_once(make, unknown_since is not None)
        except (Transient, CommitUnknown) as error:
            if unknown_since is None and isinstance(error, CommitUnknown):
                unknown_since = time.monotonic()
            if unknown_since is None:
                if attempt >= tries:
                    raise
            elif time.monotonic() - unknown_since >= UNKNOWN_GIVE_UP_S:
                raise CommitUnknown(str(error)) from error
            await asyncio.sleep(random.uniform(0.5, 1.0) * min(0.5, 0.01 * 2**attempt))
