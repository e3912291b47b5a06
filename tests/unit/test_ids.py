"""Identifiers: their forms, how conversations are named, and ids that never repeat."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexo import ids
from nexo.errors import NexoError

user_ids = st.from_regex(r"[A-Za-z0-9._@-]{1,64}", fullmatch=True).filter(lambda value: value != "@all")


@given(user_ids)
def test_every_id_of_the_alphabet_is_a_user_id(user_id: str) -> None:
    assert ids.is_user_id(user_id)
    ids.check_user_id(user_id)


@pytest.mark.parametrize("bad", ["", "a" * 65, "a b", "a\n", "é", "a:b", "a/b", "@all", "a\x00", "\ud800", "ａ"])
def test_anything_else_is_none(bad: str) -> None:
    assert not ids.is_user_id(bad)
    with pytest.raises(NexoError, match="bad_user_id"):
        ids.check_user_id(bad)
    with pytest.raises(NexoError, match="bad_receiver"):
        ids.check_user_id(bad, "receiver")


@given(user_ids, user_ids, user_ids, user_ids)
def test_two_pairs_share_a_chat_only_if_they_are_the_same_two(a: str, b: str, c: str, d: str) -> None:
    if a == b or c == d:
        return
    same = {a, b} == {c, d}
    assert (ids.single_conversation_id(a, b) == ids.single_conversation_id(c, d)) is same


@given(user_ids, user_ids)
def test_a_single_chat_names_its_two_in_byte_order(a: str, b: str) -> None:
    if a == b:
        return
    name = ids.single_conversation_id(a, b)
    low, high = sorted((a, b), key=str.encode)
    assert name == f"si_{low}:{high}"
    assert ids.peers_of(name) == (low, high)
    assert (ids.peer_of(name, a), ids.peer_of(name, b)) == (b, a)
    assert ids.peer_of(name, "nobody else!") is None
    assert ids.group_of(name) is None


@given(st.text())
def test_any_text_is_looked_at_without_an_accident(text: str) -> None:
    for value in (text, f"si_{text}", f"sg_{text}", f"si_{text}:{text}x"):
        peers = ids.peers_of(value)
        assert peers is None or ids.single_conversation_id(*peers) == value
        group_id = ids.group_of(value)
        assert group_id is None or ids.group_conversation_id(group_id) == value
    for check in (ids.check_user_id, ids.check_client_msg_id, ids.parse_server_msg_id):
        try:
            check(text)
        except NexoError:
            continue


def test_group_ids_are_made_in_their_form_and_do_not_repeat() -> None:
    made = [ids.new_group_id() for _ in range(1000)]
    assert all(ids.is_group_id(group_id) for group_id in made)
    assert len(set(made)) == 1000
    assert ids.group_of(ids.group_conversation_id(made[0])) == made[0]


@given(st.integers(1, (1 << 63) - 1))
def test_a_server_msg_id_is_read_from_text_and_number_alike(number: int) -> None:
    assert ids.parse_server_msg_id(number) == ids.parse_server_msg_id(str(number)) == number


@pytest.mark.parametrize("bad", ["", "0", 0, -1, "-1", "+1", " 1", "1.0", "１", 1 << 63, str(1 << 63), True, 1.0, None])
def test_what_is_no_server_msg_id_is_refused_by_the_name_of_its_field(bad: object) -> None:
    with pytest.raises(NexoError, match="bad_server_msg_id"):
        ids.parse_server_msg_id(bad)  # type: ignore[arg-type]
    with pytest.raises(NexoError, match="bad_reply_to"):
        ids.parse_server_msg_id(bad, "reply_to")  # type: ignore[arg-type]


# -- the generator -------------------------------------------------------------------------------------

T0 = 1_800_000_000_000
steps = st.lists(st.tuples(st.integers(-5000, 5000), st.integers(0, 9000)), min_size=1, max_size=20)


@given(steps, st.integers(0, ids.MAX_NODES - 1))
def test_ids_ascend_and_never_repeat_wherever_the_clock_goes(moves: list[tuple[int, int]], node: int) -> None:
    now = T0
    generator = ids.IdGenerator(node, clock=lambda: now)
    taken: list[int] = []
    for step, count in moves:
        now += step
        fresh = generator.take(count)
        assert len(fresh) == count
        taken += fresh
    assert all(a < b for a, b in itertools.pairwise(taken))
    assert all(0 < one < 1 << 63 for one in taken)


@given(st.integers(-3000, 3000), st.integers(1, 5000), st.integers(1, 5000))
def test_the_next_holder_of_a_node_number_never_meets_the_last_one(step: int, before: int, after: int) -> None:
    first = ids.IdGenerator(7, clock=lambda: T0)
    old = first.take(before)
    second = ids.IdGenerator(7, not_before_ms=first.last_ms, clock=lambda: T0 + step)
    assert second.take(after)[0] > old[-1]


def test_two_nodes_never_make_the_same_id() -> None:
    generators = [ids.IdGenerator(node, clock=lambda: T0) for node in (0, 1, 2, ids.MAX_NODES - 1)]
    made = [one for generator in generators for one in generator.take(5000)]
    assert len(set(made)) == len(made)


def test_an_id_tells_when_it_was_made() -> None:
    (one,) = ids.IdGenerator(5, clock=lambda: T0).take(1)
    assert ids.time_of(one) == T0


@pytest.mark.parametrize("node", [-1, ids.MAX_NODES])
def test_a_node_number_has_its_range(node: int) -> None:
    with pytest.raises(ValueError, match="node must be"):
        ids.IdGenerator(node)
