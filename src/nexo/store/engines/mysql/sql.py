"""The phrases of MySQL and MariaDB, and what differs between the two."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

from nexo.store.sql import Fragment, Sql, insert_rows

CLOCK_MS = "CAST(UNIX_TIMESTAMP(SYSDATE(3)) * 1000 AS SIGNED)"


@functools.lru_cache(maxsize=4096)
def percent(sql: str) -> str:
    """Returns a statement with `?` written as `%s`."""
    return sql.replace("%", "%%").replace("?", "%s")


def binary_collation(is_mariadb: bool) -> str:
    """The name of the collation that compares bytes and ignores no trailing spaces."""
    return "utf8mb4_nopad_bin" if is_mariadb else "utf8mb4_0900_bin"


def session_settings(is_mariadb: bool, isolation: str) -> str:
    """A SET statement for a new connection, which then uses the collation of Nexo's tables: literals in derived
    tables could not be compared with columns otherwise."""
    level = "TX_ISOLATION" if is_mariadb else "TRANSACTION_ISOLATION"
    return (
        f"SET NAMES utf8mb4 COLLATE {binary_collation(is_mariadb)}, SESSION {level}='{isolation}', "
        "time_zone='+00:00', sql_mode='STRICT_ALL_TABLES'"
    )


class MysqlSql(Sql):
    for_update = " FOR UPDATE"
    locks_need_a_write = True  # Galera: two nodes notice that both have locked a row when both change it
    least = "least"
    greatest = "greatest"
    clock_ms = CLOCK_MS

    def one_of(self, column: str, values: Iterable[Any], column_type: str = "text") -> Fragment:
        items = tuple(values)
        return Fragment(f"{column} IN ({','.join('?' * len(items))})", items) if items else Fragment("FALSE", ())

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
        marks = ",".join(["(?,?)"] * len(pairs))
        sql = f"SELECT {columns} FROM {table} t {rest} WHERE (t.{a},t.{b}) IN ({marks})"
        return Fragment(sql, tuple(value for pair in pairs for value in pair))

    def concat(self, first: str, second: str) -> str:
        return f"CONCAT({first},{second})"

    def insert_ignore(self, table: str, columns: Sequence[str], key: Sequence[str], count: int = 1) -> str:
        # INSERT IGNORE would also swallow values that do not fit
        return f"{insert_rows(table, columns, count)} ON DUPLICATE KEY UPDATE {key[0]}={table}.{key[0]}"

    def insert_or_raise(self, table: str, columns: Sequence[str], key: Sequence[str], count: int = 1) -> str:
        last = columns[-1]
        return f"{insert_rows(table, columns, count)} ON DUPLICATE KEY UPDATE {last}=GREATEST({last},VALUES({last}))"
