"""Token buckets by key: how often somebody may do something."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable

from nexo.errors import NexoError

MAX_KEYS = 100_000


class RateLimit:
    """So many per second on average, and `burst` of them at once after a pause; a rate of 0 is no limit.

    Of a bucket only the moment is kept at which it will be full again: one number says how many tokens are
    left, and a full bucket is like none. When there are too many keys, the least recently used one is
    forgotten, which can only be to its advantage.
    """

    def __init__(
        self, per_s: float, burst: int, max_keys: int = MAX_KEYS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._interval_s = 1 / per_s if per_s else 0.0
        self._depth_s = max(burst, 1) * self._interval_s
        self._max_keys = max_keys
        self._clock = clock
        self._full_at: dict[Hashable, float] = {}  # in the order of use
        self.refused = 0

    def __len__(self) -> int:
        return len(self._full_at)

    def take(self, key: Hashable) -> int:
        """0, or after how many milliseconds there will be one to take."""
        if not self._interval_s:
            return 0
        now = self._clock()
        full_at = max(self._full_at.pop(key, now), now)
        wait_s = full_at + self._interval_s - now - self._depth_s
        # the sums of many intervals are not exact to the last bit
        if wait_s > 1e-9:
            self._full_at[key] = full_at
            self.refused += 1
            return int(wait_s * 1000) + 1
        self._full_at[key] = full_at + self._interval_s
        if len(self._full_at) > self._max_keys:
            del self._full_at[next(iter(self._full_at))]
        return 0

    def demand(self, key: Hashable) -> None:
        """Take one, or refuse."""
        wait_ms = self.take(key)
        if wait_ms:
            raise NexoError("too_many_requests", retry_after_ms=wait_ms)


class SendLimits(RateLimit):
    """Sends by user id. There is one per instance, whichever way a message comes in."""
