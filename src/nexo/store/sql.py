"""The few phrases of SQL that differ by engine, for scripts that are otherwise written once.

Scripts use `?` for parameters and only short ASCII literals, so that a driver can rewrite the marks blindly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple


class Fragment(NamedTuple):
    sql: str
    params: tuple[Any, ...]


class Sql(ABC):
    """The phrases of one engine."""

    for_update: str  # follows a SELECT whose rows are to be locked
    locks_need_a_write = False  # row locks may be local to one of several nodes, which compare only what was written
    least: str
    greatest: str
    clock_ms: str  # an expression: the time in milliseconds, by the clock of the database

    @abstractmethod
    def one_of(self, column: str, values: Iterable[Any], column_type: str = "text") -> Fragment:
        """Returns `column IN (values)`, with a statement text that does not change with their number, where the
        engine keeps prepared statements."""

    @abstractmethod
    def concat(self, first: str, second: str) -> str:
        """Returns an expression that joins two texts; NULL when one of them is."""

    @abstractmethod
    def by_pairs(
        self,
        columns: str,
        table: str,
        key: tuple[str, str],
        second_type: str,
        pairs: Sequence[tuple[Any, Any]],
        rest: str,
    ) -> Fragment:
        """Returns a SELECT of these columns of the rows `t` of a table whose key, a number and a value of
        `second_type`, is one of these pairs. `rest` joins other tables."""

    def insert_ignore(self, table: str, columns: Sequence[str], key: Sequence[str], count: int = 1) -> str:
        """Returns a statement that inserts rows and skips those whose key exists."""
        return f"{insert_rows(table, columns, count)} ON CONFLICT ({','.join(key)}) DO NOTHING"

    def insert_or_raise(self, table: str, columns: Sequence[str], key: Sequence[str], count: int = 1) -> str:
        """Returns a statement that inserts rows; of one whose key exists, the last column becomes the greater value."""
        last = columns[-1]
        return (
            f"{insert_rows(table, columns, count)} ON CONFLICT ({','.join(key)}) "
            f"DO UPDATE SET {last}={self.greatest}({table}.{last},excluded.{last})"
        )


def insert_rows(table: str, columns: Sequence[str], count: int) -> str:
    row = f"({','.join('?' * len(columns))})"
    return f"INSERT INTO {table} ({','.join(columns)}) VALUES {','.join([row] * count)}"
