"""Where a page of a copy begins, against the order of tuples."""

from __future__ import annotations

import contextlib
import sqlite3

from hypothesis import given
from hypothesis import strategies as st

from nexo.store.transfer.table_pages import after_params, after_sql


@given(st.integers(1, 4).flatmap(lambda n: st.tuples(*[st.lists(st.integers(0, 2), min_size=n, max_size=n)] * 2)))
def test_what_comes_after_a_key_is_what_is_greater(pair: tuple[list[int], list[int]]) -> None:
    row, key = pair
    names = [f"c{i}" for i in range(len(row))]
    columns = ",".join(f"? AS {name}" for name in names)
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        query = f"SELECT {after_sql(names)} FROM (SELECT {columns})"
        ((found,),) = connection.execute(query, [*after_params(key), *row]).fetchall()
    assert bool(found) is (row > key)
