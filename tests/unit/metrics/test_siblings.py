"""The numbers of several processes together, also of those that have ended."""

from __future__ import annotations

import os
from pathlib import Path

from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.measures import Buckets
from nexo.metrics.siblings import Siblings, keep_ended


def numbers(saved: int, connections: int, ready: bool = True) -> list[Sample]:
    lag = Buckets()
    for _ in range(saved):
        lag.observe(0.1)
    return [*f.SENDS.each({"saved": saved}), f.USERS(connections), f.READY(ready), f.LOOP_LAG(lag)]


def value(samples: list[Sample], name: str, *labels: str) -> object:
    (found,) = [sample.value for sample in samples if (sample.name, sample.labels) == (name, labels)]
    return found.count if isinstance(found, Buckets) else found


def process(folder: Path, number: int, pid: int, samples: list[Sample]) -> Siblings:
    made = Siblings(folder, number, lambda: samples)
    made._file = folder / f"{number}-{pid}.snapshot"
    made._leave()
    return made


def test_counters_are_added_and_gauges_stay_apart(tmp_path: Path) -> None:
    one = process(tmp_path, 1, 101, numbers(3, 10))
    process(tmp_path, 2, 102, numbers(4, 20, ready=False))
    together = one.samples()
    assert value(together, "nexo_sends_total", "saved") == 7
    assert value(together, "nexo_users_online", "1") == 10
    assert value(together, "nexo_users_online", "2") == 20
    apart = one.by_process()
    assert sorted(apart) == ["1", "2"]
    assert value(apart["2"], "nexo_users_online") == 20


def test_what_a_process_counted_stays_when_it_has_ended_and_its_gauges_go(tmp_path: Path) -> None:
    one = process(tmp_path, 1, 101, numbers(3, 10))
    for pid in (102, 103, 104):
        process(tmp_path, 2, pid, numbers(4, 20))
        assert value(one.samples(), "nexo_users_online", "2") == 20
        keep_ended(tmp_path, 2, pid)
    together = one.samples()
    assert value(together, "nexo_sends_total", "saved") == 15
    assert [s.labels for s in together if s.name == "nexo_users_online"] == [("1",)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1-101.snapshot", "ended"], "nothing piles up"


def test_nobody_is_counted_twice_between_the_sum_and_the_end_of_the_file(tmp_path: Path) -> None:
    one = process(tmp_path, 1, 101, numbers(3, 10))
    process(tmp_path, 2, 102, numbers(4, 20))
    left = (tmp_path / "2-102.snapshot").read_bytes()
    keep_ended(tmp_path, 2, 102)
    (tmp_path / "2-102.snapshot").write_bytes(left)  # as if it were not removed yet
    assert value(one.samples(), "nexo_sends_total", "saved") == 7


def test_one_that_ended_before_it_began_leaves_nothing(tmp_path: Path) -> None:
    keep_ended(tmp_path, 1, os.getpid())
    assert list(tmp_path.iterdir()) == []
