"""Failures of a core's transactions, put between its scripts and the real engine."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

from nexo.assembly.core import Core
from nexo.store.engine import MakeScript, Stmt

Committed = Callable[[Any], None]


@contextmanager
def intercepted(
    core: Core, before: Callable[[str, Stmt], None], after: Callable[[str], None] = lambda name: None
) -> Iterator[None]:
    """Inside the block `before` is called with the name of a script that writes and each of its statements, before
    it is run, and `after` with the name once the script is committed and before its caller learns of that. What
    they raise is what the engine raises."""
    engine: Any = core.store.database.engine
    write_once = engine.write_once  # of an outer block, where there is one

    async def write(make: MakeScript[Any], uncertain: bool = False, committed: Committed | None = None) -> Any:
        name = ""

        def watched() -> Any:
            nonlocal name
            script: Any = make()
            name = script.__name__
            watching: Any = _watch(script, before)
            watching.__name__ = name
            return watching

        if engine.name == "sqlite":  # its writer goes on by itself: a commit cannot be unheard
            return await write_once(watched, uncertain, committed)
        result = await write_once(watched, uncertain)
        after(name)
        if committed is not None:
            committed(result)
        return result

    engine.write_once = write
    try:
        yield
    finally:
        engine.write_once = write_once


def _watch(script: Any, before: Callable[[str, Stmt], None]) -> Generator[Stmt, Any, Any]:
    result: Any = None
    try:
        while True:
            statement = script.send(result)
            before(script.__name__, statement)
            result = yield statement
    except StopIteration as stop:
        return stop.value
    finally:
        script.close()
