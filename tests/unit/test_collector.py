"""The collector runs in full when memory has grown, now and then in any case, and otherwise not."""

from __future__ import annotations

import gc
import time
import weakref

from nexo.collector import GROWTH_BYTES, IN_ANY_CASE_S, Collector, calm
from nexo.metrics.process import memory_bytes


class Knot:
    """An object that only the cycle collector can free."""

    def __init__(self) -> None:
        self.self = self


def old_knot() -> weakref.ref[Knot]:
    """Returns garbage in the oldest generation, which young runs do not look at."""
    knot = Knot()
    gc.collect(1)
    gc.collect(1)
    return weakref.ref(knot)


def test_old_garbage_is_freed_when_memory_has_grown_and_after_some_time() -> None:
    before = gc.get_threshold()
    calm()
    try:
        collector = Collector()
        now, used = time.monotonic(), memory_bytes()
        knot = old_knot()
        assert not collector.check(now + 1, used)
        assert knot() is not None
        assert collector.check(now + 1, used + GROWTH_BYTES * 10)
        assert knot() is None
        knot = old_knot()
        assert not collector.check(now + 2, memory_bytes())
        assert collector.check(now + 2 + IN_ANY_CASE_S, memory_bytes())
        assert knot() is None
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
