"""Token buckets by key: limits on how often a user or address may do something."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable

from nexo.errors import NexoError

MAX_KEYS = 100_000


class RateLimit:
    """Allows `rate` per second on average, and `burst` at once after a pause; a rate of 0 is no limit.

    A bucket is stored as the time at which it will be full again: this one number gives the tokens left, and a
    full bucket needs no entry. With too many keys the least recently used one is dropped, which only helps its user.
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

    def take(self, key: Hashable, count: int = 1) -> int:
        """Takes a token. Returns 0, or the milliseconds until one is available. Of a `count` of tokens, those that are
        not available yet delay what follows."""
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
        self._full_at[key] = full_at + self._interval_s * count
        if len(self._full_at) > self._max_keys:
            del self._full_at[next(iter(self._full_at))]
        return 0

    def give_back(self, key: Hashable) -> None:
        """Returns a token that was taken for something that does not count after all."""
        full_at = self._full_at.get(key)
        if full_at is not None:
            self._full_at[key] = full_at - self._interval_s

    def demand(self, key: Hashable, count: int = 1) -> None:
        """Takes tokens as `take`, or raises too_many_requests."""
        wait_ms = self.take(key, count)
        if wait_ms:
            raise NexoError("too_many_requests", retry_after_ms=wait_ms)


class SendLimits(RateLimit):
    """Limits sends by user id. One per instance, shared by WebSocket and HTTP."""
