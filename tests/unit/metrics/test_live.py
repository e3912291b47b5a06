"""The live page's numbers, from samples under a clock that the test sets."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.live import HOUR_MARKS, POINTS, STEP_S, LiveStats
from nexo.metrics.measures import Buckets, Tally


class Process:
    """One that says what the test wants."""

    def __init__(self) -> None:
        self.saved = 0
        self.connections = 0
        self.errors = Tally()
        self.whole = Buckets()
        self.lag = Buckets()
        self.queue = Buckets()
        self.waiting = 0
        self.cpu = 0.0

    def samples(self) -> Iterable[Sample]:
        yield f.INFO(1, "1.2.3", "sqlite", "picows")
        yield f.SENDS(self.saved, "saved")
        yield f.CONNECTIONS(self.connections, "envelope", "signed_in", "multi")
        yield f.CONNECTIONS_LIMIT(100)
        for reason, count in self.errors.items():
            yield f.ERRORS(count, "websocket", reason)
        yield f.SEND_SECONDS(self.whole)
        yield f.SEND_STAGES(self.queue, "queue")
        yield f.LOOP_LAG(self.lag)
        yield f.QUEUE(self.waiting, "sends")
        yield f.QUEUE_LIMIT(20, "sends")
        yield f.CPU(self.cpu)
        yield f.STARTED(500.0)


class World:
    def __init__(self, *names: str) -> None:
        self.now = 1000.0
        self.processes = {name: Process() for name in names}
        self.stats = LiveStats(lambda: {name: one.samples() for name, one in self.processes.items()}, lambda: self.now)
        self.stats.record()

    def step(self, count: int = 1) -> None:
        for _ in range(count):
            self.now += STEP_S
            self.stats.record()


def test_rates_are_of_the_time_since_the_last_reading() -> None:
    world = World("a")
    one = world.processes["a"]
    one.saved, one.connections = 50, 7
    one.errors.add("blocked", 10)
    world.step()
    live = world.stats.look()
    (point,) = live.history
    assert (point.saved_per_s, point.errors_per_s, point.connections) == (10, 2, 7)
    assert (live.connections, live.connections_limit, live.version, live.engine) == (7, 100, "1.2.3", "sqlite")
    world.now += STEP_S
    one.saved += 100
    assert world.stats.look().saved_per_s == 20


def test_percentiles_are_of_the_last_minute_and_nothing_is_not_zero() -> None:
    world = World("a")
    one = world.processes["a"]
    for _ in range(100):
        one.whole.observe(0.004)
        one.queue.observe(0.04)
    world.step()
    live = world.stats.look()
    assert live.sends.p99_ms == pytest.approx(5, abs=1)
    assert live.stages[0].name == "queue"
    assert live.stages[0].p50_ms == pytest.approx(40, abs=10)
    assert live.stages[1].p50_ms is None
    assert live.history[0].p50_ms == live.sends.p50_ms
    world.step(13)
    live = world.stats.look()
    assert live.sends.p99_ms is None
    assert live.history[-1].p99_ms is None


def test_errors_are_of_the_last_hour_and_say_whose_side_they_are_on() -> None:
    world = World("a")
    errors = world.processes["a"].errors
    errors.add("blocked", 5)
    errors.add("server_busy", 9)
    world.step()
    found = [(one.name, one.count, one.ours) for one in world.stats.look().errors]
    assert found == [("server_busy", 9, True), ("blocked", 5, False)]
    world.step(int(3700 / STEP_S))
    errors.add("blocked", 2)
    live = world.stats.look()
    assert [(one.name, one.count) for one in live.errors] == [("blocked", 2)]
    assert 3600 <= live.errors_s <= 3600 + 60 * 2


def test_the_past_is_bounded_and_told_only_once_to_those_who_say_what_they_have() -> None:
    world = World("a")
    world.step(POINTS + 50)
    live = world.stats.look()
    assert len(live.history) == POINTS
    world.step(2)
    assert len(world.stats.look(live.history[-1].at).history) == 2
    assert len(world.stats._hour) <= HOUR_MARKS + 1


def test_several_processes_are_added_up_and_each_has_its_row() -> None:
    world = World("a", "b")
    a, b = world.processes["a"], world.processes["b"]
    world.now += STEP_S
    a.saved, b.saved, a.connections, b.connections = 10, 20, 3, 4
    a.cpu = 2.5
    b.lag.observe(0.3)
    live = world.stats.look()
    assert (live.connections, live.saved_per_s, live.connections_limit) == (7, 6, 200)
    first, second = live.instances
    assert (first.name, first.connections, first.saved_per_s, first.cpu_share) == ("a", 3, 2, 0.5)
    assert (second.name, second.is_slow, first.is_slow) == ("b", True, False)
    assert live.slow == ["loop"]
    del world.processes["b"]  # it has ended: nothing goes below zero
    world.now += STEP_S
    live = world.stats.look()
    assert live.saved_per_s >= 0
    assert [one.name for one in live.instances] == ["a"]


def test_two_phase_is_shown_where_it_is_on() -> None:
    world = World("a")
    assert world.stats.look().two_phase is None
    lag = Buckets()
    more = [
        f.ACCEPTS(0, "accepted"),
        f.SAVE_LAG_SECONDS(lag),
        f.STREAM_LENGTH(4, "to_save"),
        f.STREAM_LENGTH(2, "dead"),
    ]
    plain = world.processes["a"].samples
    world.processes["a"].samples = lambda: [*plain(), *more]  # type: ignore[method-assign]
    world.step()
    lag.observe(0.3)
    world.now += STEP_S
    told = world.stats.look().two_phase
    assert told is not None
    assert (told.waiting, told.dead, told.accepted.p99_ms) == (4, 2, None)
    assert told.save_lag.p99_ms == pytest.approx(300, rel=0.4)


def test_a_queue_that_is_three_quarters_full_is_slow() -> None:
    world = World("a")
    world.processes["a"].waiting = 15
    live = world.stats.look()
    assert live.slow == ["sends"]
    assert [(queue.name, queue.length, queue.limit) for queue in live.queues] == [
        ("sends", 15, 20),
        ("blocked", 0, None),
    ]
