"""SQLite's phrases. One transaction writes at a time, so there are no rows to lock."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from nexo.store.sql import Fragment, Sql


class SqliteSql(Sql):
    for_update = ""
    least = "min"
    greatest = "max"
    clock_ms = "CAST((julianday('now')-2440587.5)*86400000 AS INTEGER)"

    def one_of(self, column: str, values: Iterable[Any], column_type: str = "text") -> Fragment:
        return Fragment(f"{column} IN (SELECT value FROM json_each(?))", (json.dumps(list(values)),))

    def by_pairs(
        self,
        columns: str,
        table: str,
        key: tuple[str, str],
        second_type: str,
        pairs: Sequence[tuple[Any, Any]],
        rest: str,
    ) -> Fragment:
        a, b = key
        sql = (
            f"SELECT {columns} FROM json_each(?) CROSS JOIN {table} t "
            f"ON t.{a}=json_extract(json_each.value,'$[0]') AND t.{b}=json_extract(json_each.value,'$[1]') {rest}"
        )
        return Fragment(sql, (json.dumps(pairs),))

    def concat(self, first: str, second: str) -> str:
        return f"({first}||{second})"
