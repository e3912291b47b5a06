"""The one visibility gate, against plain sets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.people import a_conversation, a_member
from nexo.core.visibility import clip, is_visible, visible_head, visible_ranges

# Lengths of stretches inside and outside, in turn: spans as joining and leaving make them.
stretches = st.lists(st.integers(1, 5), min_size=1, max_size=9)


def spans_of(lengths: list[int]) -> list[tuple[int, int]]:
    found, low = [], 1
    for n, length in enumerate(lengths):
        if n % 2 == 0:
            found.append((low, low + length - 1))
        low += length
    return found


@given(stretches, st.integers(0, 5), st.booleans())
def test_the_ranges_are_the_union_of_the_spans(lengths: list[int], beyond: int, is_open: bool) -> None:
    *past, (low, high) = spans_of(lengths)
    head = high + beyond
    member = a_member(from_seq=low, to_seq=None if is_open else high)
    conversation = a_conversation(head_seq=head)
    ranges = visible_ranges(member, conversation, reversed(past))
    wanted = {seq for a, b in past for seq in range(a, b + 1)} | set(range(low, (head if is_open else high) + 1))
    assert {seq for seq in range(-3, head + 4) if is_visible(ranges, seq)} == wanted
    assert list(ranges) == sorted(ranges)
    assert visible_head(member, conversation) == max(wanted)


@given(stretches, st.integers(-3, 50), st.integers(-3, 50))
def test_clipping_keeps_what_lies_inside(lengths: list[int], begin: int, end: int) -> None:
    ranges = tuple(spans_of(lengths))
    clipped = clip(ranges, begin, end)
    for seq in range(-5, 55):
        assert is_visible(clipped, seq) == (is_visible(ranges, seq) and begin <= seq <= end)
    assert all(low <= high for low, high in clipped)


def test_who_was_never_a_member_sees_nothing() -> None:
    assert visible_ranges(None, a_conversation(head_seq=5), []) == ()


def test_a_conversation_without_messages_has_nothing_to_see() -> None:
    assert visible_ranges(a_member(), a_conversation(head_seq=0), []) == ()
