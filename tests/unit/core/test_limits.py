"""Token buckets by key: the rate, the burst, the waiting time, and the bound on memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexo.core.limits import RateLimit, SendLimits
from nexo.errors import NexoError


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_after_a_pause_a_burst_is_allowed_and_then_the_rate() -> None:
    clock = Clock()
    limit = RateLimit(per_s=2, burst=3, clock=clock)
    assert [limit.take("a") for _ in range(4)] == [0, 0, 0, 501]
    clock.now += 0.5
    assert limit.take("a") == 0
    assert limit.take("a") > 0
    clock.now += 100
    assert [limit.take("a") > 0 for _ in range(4)] == [False, False, False, True]


def test_who_waits_as_told_is_let_through() -> None:
    clock = Clock()
    limit = RateLimit(per_s=0.1, burst=1, clock=clock)
    assert limit.take("a") == 0
    wait_ms = limit.take("a")
    assert 10_000 <= wait_ms <= 10_002
    clock.now += wait_ms / 1000
    assert limit.take("a") == 0


def test_refusals_cost_nothing_more_and_are_counted() -> None:
    clock = Clock()
    limit = RateLimit(per_s=1, burst=1, clock=clock)
    limit.take("a")
    first = limit.take("a")
    assert [limit.take("a") for _ in range(5)] == [first] * 5
    assert limit.refused == 6


def test_keys_do_not_share_a_bucket() -> None:
    limit = RateLimit(per_s=1, burst=1, clock=Clock())
    assert limit.take("a") == limit.take("b") == 0
    assert limit.take("a") > 0


def test_a_rate_of_zero_is_no_limit_and_keeps_nothing() -> None:
    limit = RateLimit(per_s=0, burst=0, clock=Clock())
    assert {limit.take("a") for _ in range(1000)} == {0}
    assert len(limit) == 0


def test_a_burst_of_zero_still_allows_the_rate() -> None:
    limit = RateLimit(per_s=1, burst=0, clock=Clock())
    assert limit.take("a") == 0
    assert limit.take("a") > 0


def test_the_least_recently_used_key_is_forgotten_when_there_are_too_many() -> None:
    limit = RateLimit(per_s=1, burst=1, max_keys=3, clock=Clock())
    for key in "abc":
        limit.take(key)
    assert limit.take("a") > 0  # used again, so that b is the oldest
    limit.take("d")
    assert len(limit) == 3
    assert limit.take("b") == 0
    assert limit.take("a") > 0


def test_a_demand_that_cannot_be_met_says_when_to_come_back() -> None:
    limit = SendLimits(per_s=1, burst=1, clock=Clock())
    limit.demand("ann")
    with pytest.raises(NexoError) as caught:
        limit.demand("ann")
    assert caught.value.name == "too_many_requests"
    assert caught.value.retry_after_ms == 1001


@given(
    per_s=st.floats(min_value=0.01, max_value=1000),
    burst=st.integers(min_value=1, max_value=100),
    pauses=st.lists(st.floats(min_value=0, max_value=10), max_size=100),
)
def test_in_no_stretch_of_time_more_pass_than_burst_and_rate_allow(
    per_s: float, burst: int, pauses: list[float]
) -> None:
    clock = Clock()
    limit = RateLimit(per_s, burst, clock=clock)
    passed: list[float] = []
    for pause in pauses:
        clock.now += pause
        if not limit.take("a"):
            passed.append(clock.now)
    for i, begin in enumerate(passed):
        for j in range(i, len(passed)):
            assert j - i + 1 <= burst + (passed[j] - begin) * per_s + 1e-6
