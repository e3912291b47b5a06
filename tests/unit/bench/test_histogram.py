"""Latencies in buckets: bounded, mergeable, and never far from the truth."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from nexo.bench.histogram import BUCKETS, MAX_US, Histogram, bounds_of, bucket_of, merged

VALUES = st.integers(0, 10 * MAX_US)


@given(VALUES)
def test_every_value_lies_in_its_bucket_and_buckets_are_narrow(value: int) -> None:
    low, high = bounds_of(bucket_of(value))
    assert low <= min(value, MAX_US) < high
    assert high - low <= max(1, low / 127)
    assert 0 <= bucket_of(value) < BUCKETS


def test_buckets_follow_each_other_without_a_gap() -> None:
    for bucket in range(BUCKETS - 1):
        assert bounds_of(bucket)[1] == bounds_of(bucket + 1)[0]


def test_percentiles_are_within_one_percent_of_the_sorted_values() -> None:
    source = random.Random(1)
    values = sorted(int(source.lognormvariate(8, 1.5)) for _ in range(20_000))
    histogram = Histogram()
    for value in values:
        histogram.record(value)
    for percent in (50, 95, 99, 99.9):
        true = values[max(0, -(-len(values) * percent // 100).__int__() - 1)]
        assert abs(histogram.percentile_us(percent) - true) <= max(1, true * 0.01)
    summary = histogram.summary()
    assert summary.max == values[-1] / 1000
    assert summary.count == len(values)
    assert abs(summary.mean - sum(values) / len(values) / 1000) < 0.001


@given(st.lists(VALUES, max_size=50), st.lists(VALUES, max_size=50))
def test_parts_add_up_to_the_whole(left: list[int], right: list[int]) -> None:
    parts, whole = [Histogram(), Histogram()], Histogram()
    for part, values in zip(parts, (left, right), strict=True):
        for value in values:
            part.record(value)
            whole.record(value)
    together = merged(part.packed().unpacked() for part in parts)
    assert together.counts == whole.counts
    assert together.summary() == whole.summary()


def test_an_empty_one_has_a_summary_too() -> None:
    assert Histogram().summary().p99 == 0.0


def test_columns_hold_every_value_once() -> None:
    histogram = Histogram()
    for value in (1, 10, 100, 1000, 10_000):
        histogram.record(value)
    assert list(histogram.columns([5, 500])) == [1, 2, 2]


def test_a_million_records_need_no_more_room_than_there_are_buckets() -> None:
    histogram = Histogram()
    for value in range(0, 40_000_000, 1000):
        histogram.record(value)
    assert len(histogram.counts) < BUCKETS
