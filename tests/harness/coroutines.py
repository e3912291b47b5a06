"""Runs coroutine tests, each on a fresh uvloop, as the server itself runs."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from types import FrameType
from typing import Any

import uvloop


def as_plain_function(function: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> None:
        with (
            _alarm_reaches_the_test(),
            asyncio.Runner(debug=False, loop_factory=uvloop.new_event_loop) as runner,
        ):
            runner.run(function(*args, **kwargs))

    return run


@contextlib.contextmanager
def _alarm_reaches_the_test() -> Iterator[None]:
    """Lets pytest-timeout end a coroutine that waits for ever.

    Its SIGALRM handler raises, but uvloop logs whatever a signal handler raises and goes on waiting;
    only SystemExit and KeyboardInterrupt get out of the loop. So the failure travels as the former.
    """
    handler = signal.getsignal(signal.SIGALRM)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield
        return
    raised: list[BaseException] = []

    def leave_the_loop(signum: int, frame: FrameType | None) -> None:
        try:
            handler(signum, frame)
        except BaseException as failure:
            raised.append(failure)
            raise SystemExit from failure

    signal.signal(signal.SIGALRM, leave_the_loop)
    try:
        yield
    except BaseException:
        if raised:
            raise raised[0] from None
        raise
    finally:
        signal.signal(signal.SIGALRM, handler)
