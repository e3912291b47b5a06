"""A timer that is exact to tens of microseconds.

Timers of uvloop are rounded to whole milliseconds, which is longer than most answers of a fast server. Linux has exact
timers (timerfd); Python supports them only since 3.13.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import struct
from collections.abc import Callable

_CLOCK_MONOTONIC = 1  # the clock of time.perf_counter() on Linux
_ABSOLUTE = 1
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC
_libc = ctypes.CDLL(None, use_errno=True)


class Alarm:
    """Rings once per `set`; a later `set` replaces the earlier one."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ring: Callable[[], None]) -> None:
        self._loop = loop
        self._ring = ring
        self._descriptor = _libc.timerfd_create(_CLOCK_MONOTONIC, _FLAGS)
        if self._descriptor < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        loop.add_reader(self._descriptor, self._ready)

    def set(self, at: float) -> None:
        """At this moment of `time.perf_counter()`; at once when it has passed."""
        seconds = max(at, 1e-6)
        whole = int(seconds)
        moment = struct.pack("qqqq", 0, 0, whole, max(1, int((seconds - whole) * 1e9)))
        if _libc.timerfd_settime(self._descriptor, _ABSOLUTE, moment, None) < 0:
            raise OSError(ctypes.get_errno(), "timerfd_settime")

    def close(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)

    def _ready(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._descriptor, 8)
        self._ring()
