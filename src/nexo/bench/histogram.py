"""Latencies in logarithmic buckets: bounded memory however long a run is, and never off by more than 0.8 %.

Values are whole microseconds. Below 256 each has a bucket of its own; above, every doubling has 128.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

_EXACT = 256
_HALF = _EXACT // 2
MAX_US = (1 << 36) - 1  # nineteen hours: whatever is longer counts as that
BUCKETS = _EXACT + (36 - 8) * _HALF
PERCENTILES = (50.0, 95.0, 99.0, 99.9)


def bucket_of(value_us: int) -> int:
    if value_us < _EXACT:
        return max(value_us, 0)
    value_us = min(value_us, MAX_US)
    shift = value_us.bit_length() - 8
    return (shift << 7) + (value_us >> shift)


def bounds_of(bucket: int) -> tuple[int, int]:
    """The lowest value of a bucket, and the lowest of the next."""
    if bucket < _EXACT:
        return bucket, bucket + 1
    shift = (bucket >> 7) - 1
    lowest = ((bucket & 127) + _HALF) << shift
    return lowest, lowest + (1 << shift)


class Summary(msgspec.Struct, frozen=True):
    """Percentiles in milliseconds."""

    count: int
    mean: float
    p50: float
    p95: float
    p99: float
    p999: float
    max: float


class Histogram:
    """Counts per bucket. `record` is on the hot path of the generator: about a quarter of a microsecond."""

    __slots__ = ("count", "counts", "max_us", "sum_us")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.count = 0
        self.sum_us = 0
        self.max_us = 0

    def record(self, value_us: int) -> None:
        if value_us < _EXACT:
            bucket = value_us if value_us > 0 else 0
        else:
            if value_us > MAX_US:
                value_us = MAX_US
            shift = value_us.bit_length() - 8
            bucket = (shift << 7) + (value_us >> shift)
        counts = self.counts
        counts[bucket] = counts.get(bucket, 0) + 1
        self.count += 1
        self.sum_us += value_us
        if value_us > self.max_us:
            self.max_us = value_us

    def add(self, other: Histogram) -> None:
        for bucket, count in other.counts.items():
            self.counts[bucket] = self.counts.get(bucket, 0) + count
        self.count += other.count
        self.sum_us += other.sum_us
        self.max_us = max(self.max_us, other.max_us)

    def percentile_us(self, percent: float) -> float:
        """The value that this share of the values does not exceed: the middle of its bucket, the true maximum at
        the end."""
        if not self.count:
            return 0.0
        wanted = self.count * percent / 100
        passed = 0
        for bucket in sorted(self.counts):
            passed += self.counts[bucket]
            if passed >= wanted:
                if passed == self.count:
                    low, high = bounds_of(bucket)
                    return float(min(self.max_us, (low + high - 1) / 2)) if percent < 100 else float(self.max_us)
                low, high = bounds_of(bucket)
                return (low + high - 1) / 2
        return float(self.max_us)

    def summary(self) -> Summary:
        p50, p95, p99, p999 = (self.percentile_us(percent) / 1000 for percent in PERCENTILES)
        mean = self.sum_us / self.count / 1000 if self.count else 0.0
        return Summary(self.count, mean, p50, p95, p99, p999, self.max_us / 1000)

    def columns(self, edges_us: Iterable[float]) -> Iterator[int]:
        """How many values lie below the first edge, between the first and the second, … and above the last."""
        left = sorted(self.counts.items())
        place = 0
        for edge in edges_us:
            inside = 0
            while place < len(left) and bounds_of(left[place][0])[0] < edge:
                inside += left[place][1]
                place += 1
            yield inside
        yield sum(count for _, count in left[place:])

    def packed(self) -> Packed:
        return Packed({str(bucket): count for bucket, count in self.counts.items()}, self.sum_us, self.max_us)


class Packed(msgspec.Struct):
    """A histogram on its way to a file or another process."""

    buckets: dict[str, int]
    sum_us: int
    max_us: int

    def unpacked(self) -> Histogram:
        histogram = Histogram()
        histogram.counts = {int(bucket): count for bucket, count in self.buckets.items()}
        histogram.count = sum(histogram.counts.values())
        histogram.sum_us = self.sum_us
        histogram.max_us = self.max_us
        return histogram


def merged(parts: Iterable[Histogram]) -> Histogram:
    total = Histogram()
    for part in parts:
        total.add(part)
    return total


def merged_by_name(parts: Iterable[Mapping[str, Histogram]]) -> dict[str, Histogram]:
    found: dict[str, Histogram] = {}
    for part in parts:
        for name, histogram in part.items():
            found.setdefault(name, Histogram()).add(histogram)
    return found
