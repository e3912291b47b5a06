"""PostgreSQL's phrases."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

from nexo.store.sql import Fragment, Sql

CLOCK_MS = "(extract(epoch from clock_timestamp()) * 1000)::bigint"


@functools.lru_cache(maxsize=4096)
def numbered(sql: str) -> str:
    """Returns a statement with `?` written as `$1`, `$2`, …"""
    head, *rest = sql.split("?")
    return head + "".join(f"${i}{part}" for i, part in enumerate(rest, 1))


class PostgresSql(Sql):
    for_update = " FOR UPDATE"
    least = "least"
    greatest = "greatest"
    clock_ms = CLOCK_MS

    def one_of(self, column: str, values: Iterable[Any], column_type: str = "text") -> Fragment:
        return Fragment(f"{column} = ANY(?::{column_type}[])", (list(values),))

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
            f"SELECT {columns} FROM unnest(?::bigint[],?::{second_type}[]) AS k(a,b) "
            f"JOIN {table} t ON t.{a}=k.a AND t.{b}=k.b {rest}"
        )
        return Fragment(sql, tuple(list(values) for values in zip(*pairs, strict=True)))

    def concat(self, first: str, second: str) -> str:
        return f"({first}||{second})"
