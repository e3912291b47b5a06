"""The answers of calls that were accepted here a moment ago, for callers whose connection broke at that moment.

They are kept in memory only, on the instance that took the answer; an instance to which such a caller reconnects asks.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

from nexo.calls.ports import CallPushes
from nexo.core.events import CallAccepted
from nexo.metrics import families as f
from nexo.metrics.families import Sample

ANSWERS_MAX = 1000  # of at most 65,000 characters each


class _Kept(NamedTuple):
    until: float
    caller_id: str
    event: CallAccepted


class RecentAnswers:
    def __init__(self, keep_s: float, pushes: CallPushes) -> None:
        self._keep_s = keep_s
        self._pushes = pushes
        self._kept: OrderedDict[int, _Kept] = OrderedDict()  # by call, oldest first

    def keep(self, caller_id: str, event: CallAccepted) -> None:
        now = time.monotonic()
        self._kept[event.call_id] = _Kept(now + self._keep_s, caller_id, event)
        while self._kept:
            call_id, oldest = next(iter(self._kept.items()))
            if oldest.until > now and len(self._kept) <= ANSWERS_MAX:
                return
            del self._kept[call_id]

    def forget(self, call_id: int) -> None:
        self._kept.pop(call_id, None)

    def repeat(self, call_id: int) -> None:
        """Let the instance that has the answer send it to the caller, which has connected again."""
        if call_id in self._kept:
            self.wanted(call_id)
        else:
            self._pushes.ask_for_answer(call_id)

    def wanted(self, call_id: int) -> None:
        kept = self._kept.get(call_id)
        if kept is not None:
            self._pushes.push_call(kept.caller_id, kept.event)

    def samples(self) -> Iterable[Sample]:
        yield f.CACHE(len(self._kept), "call_answers")
        yield f.CACHE_LIMIT(ANSWERS_MAX, "call_answers")
