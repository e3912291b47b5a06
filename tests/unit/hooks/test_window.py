"""The window of a webhook: order per conversation, side by side, bounded, and a place that never passes an event."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from nexo.core.journal import Place
from nexo.hooks.window import (
    DOWN_AFTER,
    EVENTS_MAX,
    REQUEST_EVENTS,
    RUN_EVENTS,
    Window,
    WindowPage,
    WindowRun,
    count_of,
)


def fill(window: Window, row: int, *keys: str, size: int = 10) -> list[WindowRun]:
    """Adds a page with one event for each key, and returns them."""
    page = WindowPage(Place(row - 1, 0), Place(row, 0))
    runs = [WindowRun(key, row, 0.0, page, [f"{row}.{number}"], b"x" * size, size) for number, key in enumerate(keys)]
    window.add(page, runs)
    return runs


def test_with_free_connections_a_request_has_one_conversation() -> None:
    window = Window(Place(0, 0))
    fill(window, 1, "a", "b", "a")
    assert [event.key for event in window.take(0, 8)] == ["a", "a"]
    assert [event.key for event in window.take(0, 8)] == ["b"]
    assert window.take(0, 8) == []


def test_with_few_connections_conversations_share_a_request() -> None:
    window = Window(Place(0, 0))
    fill(window, 1, *(f"k{number}" for number in range(10)))
    assert [len(window.take(0, 2)) for _ in range(3)] == [5, 5, 0]


def test_a_conversation_has_one_request_at_a_time() -> None:
    window = Window(Place(0, 0))
    first = fill(window, 1, "a")
    assert window.take(0, 8) == first
    second = fill(window, 2, "a")
    assert window.take(0, 8) == []
    window.taken(first)
    assert window.take(0, 8) == second


def test_the_place_waits_for_the_oldest_event() -> None:
    window = Window(Place(0, 0))
    fill(window, 1, "a")
    fill(window, 2, "b")
    fill(window, 3)
    first, second = window.take(0, 8), window.take(0, 8)
    window.taken(second)
    assert (window.place, window.count, window.oldest_at) == (Place(0, 0), 1, 1)
    window.taken(first)
    assert (window.place, window.count, window.oldest_at) == (Place(3, 0), 0, 0)


def test_conversations_that_failed_together_are_repeated_alone() -> None:
    window = Window(Place(0, 0))
    fill(window, 1, "a", "b")
    together = window.take(0, 1)
    assert len(together) == 2
    window.failed(together, 0)
    assert window.take(0.1, 1) == []
    assert 0.4 < (window.due_in(0, 1) or 0) <= 1
    assert len(window.take(5, 1)) == 1


def test_a_receiver_that_is_down_is_tried_with_one_request_at_a_time() -> None:
    window = Window(Place(0, 0))
    fill(window, 1, *(f"k{number}" for number in range(20)))
    for _ in range(DOWN_AFTER):
        window.failed(window.take(0, 20), 0)
    assert window.is_down
    assert window.take(0.1, 20) == [], "not at once"
    probe = window.take(2, 20)
    assert probe
    assert window.take(2, 20) == []
    assert window.due_in(2, 20) is None, "a timer would run for nothing"
    window.taken(probe)
    assert not window.is_down
    left = window.count
    assert sum(len(window.take(2, 20)) for _ in range(20)) == left, "all that waited is sent now"


def test_a_request_is_bounded_and_so_is_the_window() -> None:
    window = Window(Place(0, 0))
    fill(window, 1, *["a"] * (REQUEST_EVENTS + 5))
    assert len(window.take(0, 1)) == REQUEST_EVENTS
    assert not window.is_full
    fill(window, 2, *["b"] * EVENTS_MAX)
    assert window.is_full
    large = Window(Place(0, 0))
    fill(large, 1, "a", "a", "a", size=200_000)
    assert len(large.take(0, 1)) == 1


def test_events_of_a_conversation_are_counted_one_by_one_and_sent_in_runs() -> None:
    window = Window(Place(0, 0))
    page = WindowPage(Place(0, 0), Place(1, 0))
    runs = [WindowRun(key, 1, 0.0, page, ["1.0"] * RUN_EVENTS, b"x", 1) for key in "abcdef"]
    window.add(page, runs)
    assert (window.count, page.left) == (6 * RUN_EVENTS, 6 * RUN_EVENTS)
    filled = window.take(0, 8)
    assert count_of(filled) == REQUEST_EVENTS, "many wait"
    rest = window.take(0, 8)
    assert count_of(rest) == 2 * RUN_EVENTS
    assert window.take(0, 8) == []
    window.failed(filled, 0)
    window.taken(rest)
    assert (window.count, page.left, window.place) == (4 * RUN_EVENTS, 4 * RUN_EVENTS, Place(0, 0))
    for _ in range(4):
        window.taken(window.take(5, 8))
    assert (window.count, window.place) == (0, Place(1, 0))


@given(
    pages=st.lists(st.lists(st.sampled_from("abcd"), max_size=8), max_size=12),
    seed=st.integers(0, 1 << 30),
    connections=st.integers(1, 4),
)
def test_whatever_fails_every_event_is_taken_in_the_order_of_its_conversation(
    pages: list[list[str]], seed: int, connections: int
) -> None:
    chance = random.Random(seed)
    window = Window(Place(0, 0))
    waiting = [(row, keys) for row, keys in enumerate(pages, start=1)]
    expected: dict[str, list[str]] = {}
    taken: dict[str, list[str]] = {}
    under_way: list[list[WindowRun]] = []
    now = 0.0
    for _ in range(3000):
        now += chance.random() * 2
        if waiting and chance.random() < 0.5:
            row, keys = waiting.pop(0)
            for event in fill(window, row, *keys):
                expected.setdefault(event.key, []).extend(event.event_ids)
        while events := window.take(now, connections):
            busy = {event.key for batch in under_way for event in batch}
            assert not busy & {event.key for event in events}
            under_way.append(events)
        assert len(under_way) <= connections
        if under_way:
            events = under_way.pop(chance.randrange(len(under_way)))
            if chance.random() < 0.3:
                window.failed(events, now)
            else:
                window.taken(events)
                for event in events:
                    taken.setdefault(event.key, []).extend(event.event_ids)
        if window.due_in(now, connections) is not None:
            now += window.due_in(now, connections) or 0.0
        if not waiting and not window.count:
            break
    assert taken == expected
    assert window.place == Place(len(pages), 0)
    assert (window.count, window.failing_since) == (0, 0.0)
