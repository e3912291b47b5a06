"""When an open loop sends."""

from __future__ import annotations

from itertools import pairwise

import pytest

from nexo.bench.schedule import Schedule


def test_sends_are_evenly_spread() -> None:
    offsets = list(Schedule(rate=100, seconds=2).offsets())
    assert len(offsets) == 200
    assert all(later - earlier == pytest.approx(0.01) for earlier, later in pairwise(offsets))
    assert offsets[0] == 0


def test_a_burst_leaves_at_once_and_keeps_the_rate() -> None:
    offsets = list(Schedule(rate=100, seconds=2, burst=50).offsets())
    assert len(offsets) == 200
    assert sorted(set(offsets)) == [0.0, 0.5, 1.0, 1.5]


def test_a_ramp_grows_from_nothing_to_the_full_rate() -> None:
    schedule = Schedule(rate=100, seconds=10, ramp_s=4)
    offsets = list(schedule.offsets())
    per_second = [sum(second <= offset < second + 1 for offset in offsets) for second in range(10)]
    assert per_second[:4] == pytest.approx([12.5, 37.5, 62.5, 87.5], abs=1)
    assert per_second[4:] == pytest.approx([100] * 6, abs=1)
    assert len(offsets) == pytest.approx(schedule.total, abs=1)


def test_random_pauses_keep_the_rate_on_average_and_repeat_with_their_seed() -> None:
    schedule = Schedule(rate=1000, seconds=10, poisson=True, seed=3)
    offsets = list(schedule.offsets())
    assert len(offsets) == pytest.approx(10_000, rel=0.05)
    assert offsets == sorted(offsets)
    assert offsets == list(schedule.offsets())
    pauses = [later - earlier for earlier, later in pairwise(offsets)]
    assert sum(pause > 0.002 for pause in pauses) / len(pauses) == pytest.approx(0.135, abs=0.02)


def test_no_rate_means_no_sends() -> None:
    assert list(Schedule(rate=0, seconds=5).offsets()) == []
