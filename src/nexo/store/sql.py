"""The few places where SQL differs by engine, for scripts that are otherwise written once.

Scripts use `?` for parameters and only short ASCII literals, so the marks can be rewritten blindly.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple


@functools.lru_cache(maxsize=4096)
def numbered(sql: str) -> str:
    """`?` as PostgreSQL writes it."""
    head, *rest = sql.split("?")
    return head + "".join(f"${i}{part}" for i, part in enumerate(rest, 1))


@functools.lru_cache(maxsize=4096)
def percent(sql: str) -> str:
    """`?` as the MySQL drivers write it."""
    return sql.replace("%", "%%").replace("?", "%s")


class Fragment(NamedTuple):
    sql: str
    params: tuple[Any, ...]


class Sql:
    """An engine's way of saying things. `engine` is sqlite, mysql or postgresql."""

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self.for_update = "" if engine == "sqlite" else " FOR UPDATE"
        self.least = "min" if engine == "sqlite" else "least"
        self.greatest = "max" if engine == "sqlite" else "greatest"

    def one_of(self, column: str, values: Iterable[Any], pg_type: str = "text") -> Fragment:
        """`column IN (values)` with a statement text that does not change with their number, where the
        engine keeps prepared statements."""
        items = list(values)
        if self.engine == "sqlite":
            return Fragment(f"{column} IN (SELECT value FROM json_each(?))", (json.dumps(items),))
        if self.engine == "postgresql":
            return Fragment(f"{column} = ANY(?::{pg_type}[])", (items,))
        if not items:
            return Fragment("FALSE", ())
        return Fragment(f"{column} IN ({','.join('?' * len(items))})", tuple(items))

    def insert_ignore(self, table: str, columns: Sequence[str], key: Sequence[str], count: int = 1) -> str:
        """Insert rows; those whose key exists already are left alone."""
        row = f"({','.join('?' * len(columns))})"
        sql = f"INSERT INTO {table} ({','.join(columns)}) VALUES {','.join([row] * count)}"
        if self.engine == "mysql":
            return f"{sql} ON DUPLICATE KEY UPDATE {key[0]}={table}.{key[0]}"
        return f"{sql} ON CONFLICT ({','.join(key)}) DO NOTHING"
