"""Opaque cursors: what is given out is read back, and nothing else gets through."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nexo.errors import NexoError
from nexo.store.paging import Number, decode_cursor, encode_cursor

FORMS: list[Any] = [tuple[Number, Number], tuple[Number, Number, Number], dict[Number, Number], str]
numbers = st.integers(0, (1 << 63) - 1)


def attempt(cursor: str, form: Any) -> tuple[str | None, Any]:
    """The name of the refusal, or what the cursor says."""
    try:
        return None, decode_cursor(cursor, form)
    except NexoError as error:
        return error.name, None


@given(numbers, numbers, numbers)
def test_a_place_comes_back_as_it_was(a: int, b: int, c: int) -> None:
    assert decode_cursor(encode_cursor((a, b)), tuple[Number, Number]) == (a, b)
    assert decode_cursor(encode_cursor((a, b, c)), tuple[Number, Number, Number]) == (a, b, c)


@given(st.dictionaries(numbers, numbers, max_size=300), st.text())
def test_maps_and_texts_come_back_as_they_were(places: dict[int, int], name: str) -> None:
    assert decode_cursor(encode_cursor(places), dict[Number, Number]) == places
    assert decode_cursor(encode_cursor(name), str) == name


def test_a_cursor_is_fit_for_a_url() -> None:
    cursor = encode_cursor({n: n * 7919 for n in range(2000)})
    assert cursor.replace("-", "").replace("_", "").isalnum()


@given(st.text())
@example("é")
@example("====")
@example("A" * 100_000)
@example("\ud800")
def test_arbitrary_text_is_refused_and_nothing_else_happens(text: str) -> None:
    for form in FORMS:
        assert attempt(text, form)[0] in (None, "bad_cursor")


leaves = st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.text()


@given(st.recursive(leaves, st.lists, max_leaves=5))
def test_a_cursor_of_another_listing_is_refused(place: Any) -> None:
    for form in FORMS:
        reason, decoded = attempt(encode_cursor(place), form)
        assert reason in (None, "bad_cursor")
        if reason is None:
            flat = [decoded] if isinstance(decoded, (str, int)) else list(decoded)
            assert all(isinstance(one, str) or 0 <= one < 1 << 63 for one in flat)


def test_a_cursor_that_swells_is_refused() -> None:
    with pytest.raises(NexoError, match="bad_cursor"):
        decode_cursor(encode_cursor("a" * (1 << 21)), str)
