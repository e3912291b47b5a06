"""What an instance concludes from what it can reach, case by case."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from nexo.cluster import verdict
from nexo.cluster.verdict import LEASE_S, STAY_S, ClusterVerdict, ClusterView, judge
from nexo.ports import InstanceRow

DETECT_S = 3.0
PEER = InstanceRow("peer", "host:1", False, True, "", 0, 500)
ALONE = ClusterView(DETECT_S, True, None, 0.1, 60_000, [], 0.5, frozenset(), [], False)
BESIDE = replace(ALONE, rows=[PEER], peer_commit_ages_s=[0.5], had_peers=True)


def row(**changes: Any) -> list[InstanceRow]:
    return [PEER._replace(**changes)]


@pytest.mark.parametrize("view", [ALONE, BESIDE])
def test_an_instance_that_reaches_everything_is_ready_and_watches_nothing(view: ClusterView) -> None:
    assert judge(view) == ClusterVerdict()


def test_a_peer_that_lives_and_is_not_heard_makes_it_watch_the_database() -> None:
    missed = replace(BESIDE, missed=frozenset({"peer"}))
    assert judge(missed) == ClusterVerdict(watches=True)
    assert judge(replace(missed, rows=row(age_ms=int(LEASE_S * 1000)))) == ClusterVerdict(), (
        "it is gone, not only silent"
    )
    assert judge(replace(missed, rows=row(is_worker=True))).watches, "a worker commits too"


@pytest.mark.parametrize("down_s", [0.0, DETECT_S - 0.1])
def test_a_short_absence_from_the_bus_is_no_reason(down_s: float) -> None:
    assert judge(replace(BESIDE, bus_down_s=down_s)) == ClusterVerdict()


def test_off_the_bus_while_others_are_on_it_is_not_ready_and_then_drains() -> None:
    off = replace(BESIDE, bus_down_s=DETECT_S)
    assert judge(off) == ClusterVerdict(False, verdict.BUS_LOST, False)
    assert judge(replace(off, bus_down_s=DETECT_S + STAY_S)) == ClusterVerdict(False, verdict.BUS_LOST, True)


@pytest.mark.parametrize(
    "rows",
    [
        [],
        row(on_bus=False),
        row(is_worker=True),
        row(age_ms=3_100),  # perhaps it was killed
    ],
    ids=["alone", "the_others_are_off_it_too", "only_a_worker", "the_others_row_is_old"],
)
def test_off_the_bus_with_nobody_better_placed_it_stays(rows: list[InstanceRow]) -> None:
    assert judge(replace(BESIDE, bus_down_s=100.0, rows=rows)) == ClusterVerdict()


def test_a_row_from_before_its_own_start_is_no_reason_to_send_clients_away() -> None:
    """As after kill -9 and a restart beside a Redis that is down."""
    view = replace(BESIDE, bus_down_s=100.0, own_age_ms=400)
    assert judge(view) == ClusterVerdict()


def test_without_the_database_it_drains_only_while_others_commit() -> None:
    lost = replace(BESIDE, commit_age_s=DETECT_S + 0.1)
    assert judge(lost) == ClusterVerdict(False, verdict.STORE_LOST, True)
    assert judge(replace(lost, peer_commit_ages_s=[DETECT_S - 1])) == ClusterVerdict(False, verdict.STORE_SILENT, False)
    assert judge(replace(lost, peer_commit_ages_s=[])) == ClusterVerdict(False, verdict.STORE_SILENT, False)


def test_cut_off_from_everything_it_drains_if_there_were_others() -> None:
    lost = replace(BESIDE, commit_age_s=DETECT_S + 0.1, bus_down_s=DETECT_S, peer_commit_ages_s=[])
    assert judge(lost) == ClusterVerdict(False, verdict.BOTH_LOST, True)
    assert not judge(replace(lost, had_peers=False)).drains


def test_two_instances_on_one_database_without_redis_are_told() -> None:
    assert judge(replace(ALONE, is_shared=False, bus_down_s=9.0)) == ClusterVerdict()
    assert judge(replace(BESIDE, is_shared=False, bus_down_s=9.0)).reason == verdict.NO_BUS


@pytest.mark.parametrize("detect_s", [1, 3, 10, 60])
def test_a_database_that_fails_for_all_at_once_is_never_taken_for_a_failure_of_one(detect_s: int) -> None:
    """All commit once per announcement; the failure comes at any moment between two of them."""
    pause_s = min(1.0, detect_s / 4)
    for step in range(100):
        own_last = -pause_s * step / 100  # before the failure at 0
        judged_at = own_last + detect_s + 0.001
        peer_age_s = judged_at  # its last commit was right before the failure, known without delay
        view = replace(
            BESIDE, detect_s=float(detect_s), commit_age_s=judged_at - own_last, peer_commit_ages_s=[peer_age_s]
        )
        assert not judge(view).drains, step
