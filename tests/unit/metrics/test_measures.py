"""Counts and distributions: exact, bounded, and what a percentile read from them means."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nexo.metrics.measures import OTHER, SECONDS, WORDS_MAX, Buckets, Tally, percentile


def test_a_value_falls_into_the_first_bucket_whose_bound_it_does_not_exceed() -> None:
    buckets = Buckets((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 2.0, 2.5):
        buckets.observe(value)
    assert (buckets.counts, buckets.total, buckets.count) == ([2, 2, 1], 7.5, 5)


@given(st.lists(st.floats(0, 4), min_size=1, max_size=200))
def test_of_many_ages_every_one_is_counted(ages: list[float]) -> None:
    buckets = Buckets()
    buckets.observe_ages([5.0 - age for age in sorted(ages, reverse=True)], 5.0)
    assert buckets.count == len(ages)


def test_ages_of_a_queue_are_about_right_though_only_some_are_looked_at() -> None:
    buckets = Buckets()
    buckets.observe_ages([10.0 - i / 1000 for i in range(1000, 0, -1)], 10.0)  # one second down to a millisecond
    half = percentile(buckets.bounds, buckets.counts, 0.5)
    assert half is not None
    assert half == pytest.approx(0.5, rel=0.1)
    assert buckets.total == pytest.approx(500, rel=0.1)


@given(st.lists(st.floats(0, 4.9), min_size=1), st.floats(0.01, 1))
@example([0.0, 0.0, 1.0, 1.0, 1.0], 0.4001)
def test_a_percentile_lies_in_the_bucket_of_the_true_one(values: list[float], share: float) -> None:
    buckets = Buckets(SECONDS)
    for value in values:
        buckets.observe(value)
    told = percentile(buckets.bounds, buckets.counts, share)
    rank = max(1, math.ceil(share * len(values)))
    true = sorted(values)[min(rank, len(values)) - 1]
    assert told is not None
    upper = next(bound for bound in SECONDS if bound >= true)
    assert told <= upper * (1 + 1e-9)


def test_there_is_no_percentile_of_nothing_and_none_above_the_last_bound() -> None:
    assert percentile((1.0,), [0, 0], 0.5) is None
    assert percentile((1.0,), [0, 7], 0.5) == 1.0


def test_a_tally_of_endless_words_ends() -> None:
    tally = Tally(known=1)
    for i in range(10 * WORDS_MAX):
        tally.add(f"word {i}")
    assert len(tally) <= WORDS_MAX + 1
    assert tally["known"] == 1
    assert sum(tally.values()) == 10 * WORDS_MAX + 1
    assert tally[OTHER] > 0
