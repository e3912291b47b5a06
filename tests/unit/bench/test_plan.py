"""Plans: their defaults, what is wrong with some, and how they are divided among processes."""

from __future__ import annotations

import pytest

from nexo.bench.capacity import CapacitySearch, parse_objective
from nexo.bench.dialects import make_dialect
from nexo.bench.plan import DialectName, Plan, Scenario, check_plan, completed, divided
from nexo.bench.result import Trial
from nexo.wire.registry import DIALECTS


@pytest.mark.parametrize("scenario", Scenario)
def test_every_scenario_runs_with_its_defaults(scenario: Scenario) -> None:
    plan = completed(Plan(scenario=scenario))
    assert check_plan(plan) == []
    assert plan.people > 0
    assert plan.rate >= 0


@pytest.mark.parametrize("name", DialectName)
def test_every_dialect_of_a_plan_is_one_of_the_servers(name: DialectName) -> None:
    assert make_dialect(name).subprotocol in DIALECTS


def test_what_was_given_stays() -> None:
    plan = completed(Plan(scenario=Scenario.group, members=7, senders=2, rate=0.0))
    assert (plan.members, plan.senders, plan.groups, plan.rate) == (7, 2, 1, 0.0)


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (Plan(scenario=Scenario.group, members=2), "at least three"),
        (Plan(scenario=Scenario.group, members=5, senders=6), "do not fit"),
        (Plan(scenario=Scenario.single, body_bytes=5), "a body has"),
        (Plan(scenario=Scenario.single, pairs=1_000_000), "more than a run can number"),
        (Plan(scenario=Scenario.slow_consumers, slow_share=0.6, stalled_share=0.4), "full speed"),
    ],
)
def test_impossible_plans_are_refused_in_words(plan: Plan, words: str) -> None:
    assert any(words in problem for problem in check_plan(completed(plan)))


@pytest.mark.parametrize("processes", [1, 2, 3, 7])
@pytest.mark.parametrize("scenario", Scenario)
def test_the_parts_of_a_plan_add_up_to_it(scenario: Scenario, processes: int) -> None:
    plan = completed(Plan(scenario=scenario))
    parts = divided(plan, processes)
    for name in ("pairs", "groups", "connections"):
        assert sum(getattr(part, name) for part in parts) == getattr(plan, name)
    assert sum(part.rate for part in parts) == pytest.approx(plan.rate)
    taken = [range(part.first_user, part.first_user + part.people) for part in parts]
    assert len({number for numbers in taken for number in numbers}) == sum(part.people for part in parts)
    assert len({part.seed for part in parts}) == len(parts)


def search_of(capacity: float, start: float) -> CapacitySearch:
    search = CapacitySearch(start)
    while (rate := search.next_rate) is not None:
        search.note(Trial(rate, rate, 10.0 if rate <= capacity else 90.0, rate <= capacity))
    return search


@pytest.mark.parametrize("capacity", [40.0, 500.0, 777.0, 12_345.0])
def test_the_search_finds_the_capacity_to_five_percent(capacity: float) -> None:
    search = search_of(capacity, 500)
    assert search.best is not None
    assert capacity / 1.06 <= search.best.rate <= capacity
    assert len(search.trials) <= 20


def test_nothing_holds_when_nothing_can() -> None:
    assert search_of(0.0, 500).best is None


def test_the_search_ends_when_the_generator_is_the_limit() -> None:
    search = CapacitySearch(1000)
    search.note(Trial(1000, 1000, 5.0, True))
    search.note(Trial(2000, 1500, 99.0, False, was_generator=True))
    assert search.next_rate is None
    assert search.best is not None
    assert search.best.rate == 1000


def test_objectives_are_read_and_nonsense_is_not() -> None:
    assert str(parse_objective("p99=50")) == "saved p99 ≤ 50 ms"
    assert parse_objective("received.p99.9=7.5").percentile == "p99.9"
    for text in ("p98=5", "p99", "p99=fast", "lost.p99=1", ""):
        with pytest.raises(ValueError, match="no objective"):
            parse_objective(text)
