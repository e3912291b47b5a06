"""The statements a core really runs: recorded between its scripts and the database driver."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

from nexo.assembly.core import Core
from nexo.store.engine import MakeScript, Mode, Stmt


class Recording:
    """What was run, in order. A statement that is run once per row counts once per row."""

    def __init__(self) -> None:
        self.reads: list[Stmt] = []
        self.writes: list[Stmt] = []
        self.transactions = 0

    @property
    def statements(self) -> list[Stmt]:
        return self.reads + self.writes

    @property
    def single_statements(self) -> list[Stmt]:
        """Without those that carry others, which are listed one by one."""
        found: list[Stmt] = []
        for statement in self.statements:
            if statement.mode is Mode.ALL:
                found += [Stmt(sql, values, Mode.MANY) for sql, values in statement.params]
            else:
                found.append(statement)
        return found

    @property
    def count(self) -> int:
        """Statements the database saw, without BEGIN and COMMIT."""
        return sum(_times(statement) for statement in self.statements)


def _times(statement: Stmt) -> int:
    if statement.mode is Mode.ALL:
        return sum(len(values) for _, values in statement.params) + 1  # and the mark
    if statement.mode in (Mode.EACH, Mode.MANY):
        return len(statement.params)
    return 0 if statement.mode is Mode.PROOF else 1


@contextmanager
def recorded(core: Core) -> Iterator[Recording]:
    """Record all that the core's engine is asked to run inside the block."""
    engine: Any = core.store.database.engine
    recording = Recording()

    def noting(make: MakeScript[Any], into: list[Stmt]) -> Callable[[], Generator[Stmt, Any, Any]]:
        return lambda: _note(make(), into)

    async def write_once(make: MakeScript[Any], *args: Any, **kwargs: Any) -> Any:
        before = len(recording.writes)
        try:
            return await type(engine).write_once(engine, noting(make, recording.writes), *args, **kwargs)
        finally:
            recording.transactions += len(recording.writes) > before

    async def read(make: MakeScript[Any]) -> Any:
        return await type(engine).read(engine, noting(make, recording.reads))

    engine.write_once, engine.read = write_once, read
    try:
        yield recording
    finally:
        del engine.write_once, engine.read


def _note(script: Generator[Stmt, Any, Any], into: list[Stmt]) -> Generator[Stmt, Any, Any]:
    result: Any = None
    try:
        while True:
            statement = script.send(result)
            into.append(statement)
            result = yield statement
    except StopIteration as stop:
        return stop.value
    finally:
        script.close()
