"""Ids that `nexo import-legacy` gives: valid ones for everything, and always the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nexo.ids import CANARY_IDS, is_group_id, is_user_id
from nexo.store.legacy.id_mapping import group_id_of, user_id_of


@given(st.sets(st.integers(0, (1 << 64) - 1), min_size=2))
def test_groups_with_numbers_keep_apart(numbers: set[int]) -> None:
    made = {group_id_of(number) for number in numbers}
    assert len(made) == len(numbers)
    assert all(is_group_id(group_id) for group_id in made)


@given(st.text(max_size=80))
def test_every_text_becomes_a_group_id_and_a_user_id_and_always_the_same(text: str) -> None:
    assert is_group_id(group_id_of(text))
    assert group_id_of(text) == group_id_of(text)
    user_id = user_id_of(text, {})
    assert is_user_id(user_id)
    assert user_id not in CANARY_IDS
    assert user_id == (text if is_user_id(text) and text not in CANARY_IDS else user_id_of(text, {}))


def test_a_chosen_id_counts_unless_nexo_does_not_allow_it() -> None:
    assert user_id_of("七", {"七": "seven"}) == "seven"
    assert is_user_id(user_id_of("七", {"七": "still 七"}))
