"""How tests wait: for a sign, for its absence, or for time itself where time is the cause.

No test calls `sleep`: tests/test_tests.py counts those that do. What tells of itself (a frame, a call, an event) is
awaited where it shows: `Client.expect`, `ScriptedPeer.until`, `ServerProcess.wait_for_output`. `until` is for what
only shows when it is looked at: a row, a metric, a file, another process.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar, cast, overload

PATIENCE_S = 30.0  # only a defect makes a test wait this long; the machine may be busy
EVERY_S = 0.01
_TICK_S = 0.02

T = TypeVar("T")


@overload
async def until(look: Callable[[], Awaitable[T]], what: object = ..., *, patience_s: float = ...) -> T: ...
@overload
async def until(look: Callable[[], T], what: object = ..., *, patience_s: float = ...) -> T: ...
async def until(look: Callable[[], T | Awaitable[T]], what: object = None, *, patience_s: float = PATIENCE_S) -> T:
    """What `look` returns (or its coroutine does), as soon as that is true. `what` is said when it never is; it may be
    a function, which is called then."""
    deadline = time.monotonic() + patience_s
    while True:
        found = look()
        if inspect.isawaitable(found):
            found = await found
        if found:
            return cast(T, found)
        if time.monotonic() > deadline:
            raise AssertionError(_never(what, look, patience_s))
        await asyncio.sleep(EVERY_S)


def until_blocking(look: Callable[[], T], what: object = None, *, patience_s: float = PATIENCE_S) -> T:
    """The same for tests and fixtures that are no coroutines."""
    deadline = time.monotonic() + patience_s
    while not (found := look()):
        if time.monotonic() > deadline:
            raise AssertionError(_never(what, look, patience_s))
        time.sleep(EVERY_S)
    return found


def _never(what: object, look: Callable[..., object], patience_s: float) -> str:
    told = what() if callable(what) else what
    return f"not within {patience_s:.0f} s: {look if told is None else told}"


async def nothing_for(seconds: float) -> None:
    """That something does not happen is asserted next, and only time can show it. A machine that is busy makes such a
    test weaker, never red."""
    await asyncio.sleep(seconds)


async def time_passes(seconds: float) -> None:
    """Time is the cause of what comes next: an outage that lasts, a rule of the server that counts seconds, the pace
    of a load. Not for what merely takes a while: that has a sign."""
    await asyncio.sleep(seconds)


class LoopTime:
    """Seconds in which this event loop could work."""

    seconds = 0.0


@contextlib.asynccontextmanager
async def loop_time() -> AsyncIterator[LoopTime]:
    """Measures what runs in this event loop. A moment in which a busy machine does not let the loop run counts as a
    short one, so that a limit may be as tight as on an idle machine."""
    taken = LoopTime()

    async def tick() -> None:
        last = time.monotonic()
        while True:
            await asyncio.sleep(_TICK_S)
            now = time.monotonic()
            taken.seconds += min(now - last, 2 * _TICK_S)
            last = now

    ticking = asyncio.create_task(tick())
    try:
        yield taken
    finally:
        ticking.cancel()


async def loop_turns(count: int = 1) -> None:
    """Whatever is ready to run in this loop runs, so many times over."""
    for _ in range(count):
        await asyncio.sleep(0)


def stand_still(seconds: float) -> None:
    """The whole process does nothing, its event loop included."""
    time.sleep(seconds)
