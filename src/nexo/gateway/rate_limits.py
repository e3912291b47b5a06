"""Limits of one connection, and a token bucket that is small enough for two per connection."""

from __future__ import annotations

import math
import time

from msgspec import Struct


class ConnectionRules(Struct, frozen=True):
    """Configured values that every connection uses."""

    frames_per_s: int
    frames_burst: int
    acks_per_s: int
    inflight_sends: int
    high_water_bytes: int
    heartbeat_ms: int
    queued_bytes: int = 0  # above high water pushes are taken up to this many unsent bytes


class Rate:
    __slots__ = ("_burst", "_per_s", "_updated", "tokens")

    def __init__(self, per_s: int, burst: int) -> None:
        self._per_s = per_s
        self._burst = max(burst, per_s, 1)
        self.tokens = float(self._burst) if per_s else math.inf  # callers may take one themselves
        self._updated = time.monotonic()

    def charge(self, count: int = 1) -> int:
        """Take `count` tokens. Returns 0, or the milliseconds until they are available. A rate of 0 is no limit."""
        if not self._per_s:
            return 0
        tokens = self.tokens
        if tokens < count:
            now = time.monotonic()
            tokens = min(self._burst, tokens + (now - self._updated) * self._per_s)
            self._updated = now
            if tokens < count:
                self.tokens = tokens
                return max(1, int((count - tokens) / self._per_s * 1000))
        self.tokens = tokens - count
        return 0
