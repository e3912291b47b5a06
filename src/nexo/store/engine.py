"""How SQL is run: scripts, and what an engine does with them.

A script is a generator that yields statements and gets their rows. It holds the logic of a transaction
once, for every engine: SQLite runs it in a thread (one hop per transaction, not per statement), the
servers' drivers await each statement. Scripts do no I/O of their own and may be run again from the
start after a transient failure, so they must not leave traces outside the database.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from enum import IntEnum
from typing import Any, NamedTuple, Protocol, TypeVar

from nexo.metrics.families import Sample

UNKNOWN_GIVE_UP_S = 30.0  # for a look at what became of a commit: longer than a server takes to restart

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Mode(IntEnum):
    ROWS = 0  # all rows
    DO = 1  # nothing comes back
    MANY = 2  # the statement once per parameter tuple
    EACH = 3  # first row (or None) per parameter tuple; SQLite only, where a round trip costs nothing
    NOW = 4  # the clock that counts here, in milliseconds
    PROOF = 5  # did an earlier attempt of this script commit after all?
    MARK = 6  # a value that is another one as soon as somebody else has written; SQLite only


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
    """Yields True when the connection was lost while the last attempt committed, and the query finds
    what it wrote. Ask after taking the lock, which waits for a commit still on its way. A script that
    does not ask must be harmless to run twice."""
    return Stmt(sql, params, Mode.PROOF)


NOW = Stmt("", (), Mode.NOW)
MARK = Stmt("PRAGMA data_version", (), Mode.MARK)


class StoreError(Exception):
    """The database could not do it. Never shown to clients as it is."""


class Transient(StoreError):
    """Nothing was written; the same again may work (deadlock, lock timeout, lost connection)."""


class DiskFull(Transient):
    """There is no room where the database keeps its files. Tried again like the others: somebody may make some."""


class CommitUnknown(StoreError):
    """The connection was lost while committing: written or not, only a look tells."""


class Conflict(StoreError):
    """A unique key refused a row; nothing was written."""


class Engine(Protocol):
    """One database. `write` runs a script in one transaction and returns after commit; `read` runs one
    that changes nothing and sees committed data only (at least everything committed before the call)."""

    name: str

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def write_once(
        self, make: MakeScript[T], uncertain: bool = False, committed: Callable[[], None] | None = None
    ) -> T:
        """One attempt. Raises Transient, CommitUnknown, Conflict; any other error rolls back.
        `uncertain` says that an earlier attempt ended in CommitUnknown. `committed` is called, on any
        thread, after the commit and before the next script begins."""
        ...

    async def read(self, make: MakeScript[T]) -> T: ...

    def samples(self) -> Iterable[Sample]:
        """What it measured."""


def failure_word(error: BaseException) -> str:
    """For the metrics; refusals and the like are no failures, and have none."""
    if isinstance(error, Transient):
        return "transient"
    if isinstance(error, CommitUnknown):
        return "unknown"
    if isinstance(error, Conflict):
        return "conflict"
    return "failed" if isinstance(error, StoreError) else ""


async def write(engine: Engine, make: MakeScript[T], tries: int = 6) -> T:
    """Run a transaction until it is done: transient failures are repeated with growing pauses.

    Transient, in the end, means that surely nothing was written. After a commit of unknown end that could
    not be said, so it is looked for longer, and at last CommitUnknown is raised.
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
