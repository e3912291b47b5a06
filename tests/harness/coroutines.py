"""Runs coroutine tests, each on a fresh uvloop, as the server itself runs."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import signal
import sys
import threading
import warnings
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
            try:
                runner.run(function(*args, **kwargs))
            except BaseException:
                # It may leave connections open. As an error, the warning of that would hang uvloop in its end.
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    runner.close()
                raise

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


def release_what_failed() -> None:
    """Python keeps the traceback of the last failure, and with it the sockets and loops in its frames. Whenever they
    are collected, it says that they were not closed: here to no caller."""
    for name in ("last_exc", "last_type", "last_value", "last_traceback"):
        if hasattr(sys, name):
            delattr(sys, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()
