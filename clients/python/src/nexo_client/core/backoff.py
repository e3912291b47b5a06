"""Pauses between attempts: exponential with jitter, so that many clients do not return at the same moment."""

from __future__ import annotations

import random

from nexo_client.core.options import Options


class Backoff:
    def __init__(self, options: Options, rng: random.Random) -> None:
        self._min_ms = options.backoff_min_ms
        self._max_ms = options.backoff_max_ms
        self._rng = rng

    def pause_s(self, failures: int, retry_after_ms: int | None = None, least: float = 0.5) -> float:
        """Returns the pause after so many failures: the server's hint and up to a quarter more, or a random part,
        from `least` to all, of a time that doubles with each failure."""
        if retry_after_ms is not None:
            return retry_after_ms / 1000 * (1 + self._rng.random() / 4)
        longest_ms = min(self._max_ms, self._min_ms << min(failures, 20))
        return longest_ms * (least + (1 - least) * self._rng.random()) / 1000
