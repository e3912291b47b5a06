"""Numbers that cost almost nothing to keep: counts by word, and distributions.

They belong to one event loop. Work in another thread is reported to that loop first.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

WORDS_MAX = 256
OTHER = "other"
OBSERVED_MAX = 8  # of one batch: the rest of the batch took about as long

# Seconds. Fine where a healthy server is, so that a percentile read from it means something.
SECONDS = (
    0.00025, 0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075,
    0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0,
)  # fmt: skip
LONG_SECONDS = (0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0)
SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0)


class Tally(dict[str, int]):
    """Counts by word. There are only so many words: one more than that is `other`."""

    def add(self, word: str, count: int = 1) -> None:
        if word in self:
            self[word] += count
        else:
            word = word if len(self) < WORDS_MAX else OTHER
            self[word] = self.get(word, 0) + count


class Buckets:
    """A distribution: how many values were at most each of the bounds, and how many above the last."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float] = SECONDS) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def observe_many(self, value: float, times: int) -> None:
        self.counts[bisect_left(self.bounds, value)] += times
        self.total += value * times

    def observe_all(self, values: Sequence[float]) -> None:
        counts, bounds = self.counts, self.bounds
        for value in values:
            counts[bisect_left(bounds, value)] += 1
        self.total += sum(values)

    def observe_ages(self, since: Sequence[float], now: float) -> None:
        """Count how long ago each of these moments is. Of many, only some are looked at, evenly, and stand for those
        beside them in the queue, which have waited about as long."""
        counts, bounds = self.counts, self.bounds
        size = len(since)
        step = -(-size // OBSERVED_MAX) or 1
        for start in range(0, size, step):
            times = min(step, size - start)
            age = now - since[start + times // 2]
            counts[bisect_left(bounds, age)] += times
            self.total += age * times

    @property
    def count(self) -> int:
        return sum(self.counts)


def percentile(bounds: Sequence[float], counts: Sequence[int], share: float) -> float | None:
    """The value that this share of all is not above, taken as evenly spread within its bucket; None of nothing.
    A value above the last bound is reported as that bound."""
    wanted = share * sum(counts)
    if not wanted:
        return None
    below = 0
    for i, count in enumerate(counts[:-1]):
        if below + count >= wanted:
            low = bounds[i - 1] if i else 0.0
            return low + (bounds[i] - low) * (wanted - below) / count
        below += count
    return bounds[-1]
