"""The rules of `nexo import-legacy` that need no database: ids, times, and where a page begins."""

from __future__ import annotations

import contextlib
import sqlite3
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from nexo.ids import CANARY_IDS, is_group_id, is_user_id
from nexo.store.legacy.naming import group_id_of, user_id_of
from nexo.store.legacy.tables import to_ms
from nexo.store.transfer.paging import after_params, after_sql


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


def test_times_of_every_kind_are_milliseconds() -> None:
    moment = datetime(2024, 5, 1, 12, 0, 0, 250_000, tzinfo=UTC)
    expected = 1_714_564_800_250
    assert to_ms(moment, UTC) == expected
    assert to_ms("2024-05-01 12:00:00.250", UTC) == expected
    assert to_ms("2024-05-01 20:00:00.250", ZoneInfo("Asia/Shanghai")) == expected
    assert to_ms(expected, UTC) == expected
    assert to_ms(expected // 1000, UTC) == expected - 250
    assert to_ms(None, UTC) == to_ms("0000-00-00 00:00:00", UTC) == 0


@given(st.integers(1, 4).flatmap(lambda n: st.tuples(*[st.lists(st.integers(0, 2), min_size=n, max_size=n)] * 2)))
def test_what_comes_after_a_key_is_what_is_greater(pair: tuple[list[int], list[int]]) -> None:
    row, key = pair
    names = [f"c{i}" for i in range(len(row))]
    columns = ",".join(f"? AS {name}" for name in names)
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        query = f"SELECT {after_sql(names)} FROM (SELECT {columns})"
        ((found,),) = connection.execute(query, [*after_params(key), *row]).fetchall()
    assert bool(found) is (row > key)
