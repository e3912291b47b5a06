"""The form of content: what passes survives every engine, and what does not is refused with a name."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexo.core import content as form
from nexo.errors import NexoError

storable = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | storable
)
good_json = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(storable, inner, max_size=3), max_leaves=10
)
any_text = st.text(st.characters())
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=10,
)


def attempt(work: Callable[[], Any]) -> tuple[str | None, Any]:
    """The name of the refusal, or what came of it."""
    try:
        return None, work()
    except NexoError as error:
        return error.name, None


@given(good_json)
def test_good_json_is_encoded_and_read_back_as_it_was(value: Any) -> None:
    text = form.encode_json(value, "extra", 1 << 20)
    assert "\x00" not in text
    text.encode()
    assert msgspec.json.decode(text) == value


@given(any_json)
def test_any_json_is_taken_or_refused_with_a_name(value: Any) -> None:
    reason, text = attempt(lambda: form.encode_json(value, "extra", 1 << 20))
    assert reason in (None, "bad_extra")
    if reason is None:
        assert msgspec.json.decode(text) == value


@given(st.integers(-5, 120), any_json)
def test_any_content_of_any_type_is_taken_or_refused_with_a_name(msg_type: int, content: Any) -> None:
    reason, _ = attempt(lambda: form.check_content(msg_type, content))
    text = ""
    if reason is None:
        reason, text = attempt(lambda: form.encode_content(msg_type, content))
    assert reason in (None, "bad_content", "missing_content", "body_too_long", "bad_msg_type")
    if reason is None:
        assert msgspec.json.decode(text) == content
        assert len(form.quote_text(msg_type, text)) <= 200


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1 << 64, -(1 << 63) - 1, "\x00", "\ud800", b"x", {1}])
def test_what_no_engine_should_see_is_refused_wherever_it_hides(bad: Any) -> None:
    for value in (bad, [bad], {"a": bad}, {"a": [{"b": bad}]}):
        with pytest.raises(NexoError, match="bad_extra"):
            form.check_json(value, "extra")


@pytest.mark.parametrize("wrap", [lambda value: [value], lambda value: {"a": value}])
def test_nesting_ends_at_32(wrap: Any) -> None:
    value: Any = 1
    for _ in range(32):
        value = wrap(value)
    form.check_json(value, "extra")
    with pytest.raises(NexoError, match="bad_extra"):
        form.check_json(wrap(value), "extra")


def test_nesting_without_end_is_refused_before_python_gives_up() -> None:
    value: Any = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(NexoError, match="bad_extra"):
        form.check_json(value, "extra")


def test_sizes_are_counted_in_bytes_and_texts_in_characters() -> None:
    assert len(form.encode_json("é" * 8191, "extra", 16_384).encode()) == 16_384
    with pytest.raises(NexoError, match="body_too_long"):
        form.encode_json("é" * 8192, "extra", 16_384)
    form.check_content(1, "😀" * 4096)
    with pytest.raises(NexoError, match="body_too_long"):
        form.check_content(1, "a" * 4097)


def test_mentions_are_named_once_and_all_includes_everybody() -> None:
    assert form.check_mentions(["bob", "alice", "bob"]) == ("bob", "alice")
    assert form.check_mentions(["bob", "@all"]) == ("@all",)
    assert form.check_mentions([]) == ()


@given(any_json)
def test_any_mentions_are_taken_or_refused_with_a_name(value: Any) -> None:
    assert attempt(lambda: form.check_mentions(value))[0] in (None, "bad_mentions")


def test_every_part_of_a_request_tells_it_from_another() -> None:
    first: tuple[Any, ...] = ("si_a:b", 1, '"hi"', (), None, None)
    others: list[tuple[int, Any]] = [(0, "si_a:c"), (1, 7), (2, '"ho"'), (3, ("b",)), (4, 5), (5, "{}")]
    hashes = {form.request_hash(*first)}
    for position, value in others:
        changed = list(first)
        changed[position] = value
        hashes.add(form.request_hash(*changed))
    assert len(hashes) == 7
    assert all(len(one) == 16 for one in hashes)
    assert form.request_hash(*first) in hashes


def test_the_order_of_keys_makes_no_other_request() -> None:
    assert form.encode_json({"a": 1, "b": 2}, "extra", 99) == form.encode_json({"b": 2, "a": 1}, "extra", 99)


def test_nothing_is_left_of_a_recalled_message() -> None:
    for msg_type in range(1, 8):
        blank = msgspec.json.decode(form.blank_content(msg_type))
        assert blank == ("" if msg_type in (1, 7) else {})
        assert form.quote_text(msg_type, form.blank_content(msg_type)) == ""
