"""What a connection may do how often, and a token bucket small enough for every one to have two."""

from __future__ import annotations

import time

from msgspec import Struct


class Rules(Struct, frozen=True):
    """The settings a connection keeps to."""

    frames_per_s: int
    frames_burst: int
    acks_per_s: int
    inflight_sends: int
    high_water_bytes: int
    heartbeat_ms: int


class Rate:
    __slots__ = ("_burst", "_per_s", "_tokens", "_updated")

    def __init__(self, per_s: int, burst: int) -> None:
        self._per_s = per_s
        self._burst = max(burst, per_s, 1)
        self._tokens = float(self._burst)
        self._updated = time.monotonic()

    def charge(self, count: int = 1) -> int:
        """0, or the milliseconds until that many more are allowed. A rate of 0 is no limit."""
        if not self._per_s:
            return 0
        tokens = self._tokens
        if tokens < count:
            now = time.monotonic()
            tokens = min(self._burst, tokens + (now - self._updated) * self._per_s)
            self._updated = now
            if tokens < count:
                self._tokens = tokens
                return max(1, int((count - tokens) / self._per_s * 1000))
        self._tokens = tokens - count
        return 0
