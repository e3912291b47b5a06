"""The connection that commands use which move whole stores; each engine has its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from nexo.store.sql import Sql

Row = tuple[Any, ...]


class TransferConnection(ABC):
    """One plain connection to a database: no pool, no short timeouts. Rows are tuples on every engine, statements
    use `?`. Not for two tasks at the same time."""

    sql: Sql
    begin = "BEGIN"  # a transaction that writes
    begin_snapshot: str  # a read-only transaction in which everything is read as it is now

    @abstractmethod
    async def read(self, sql: str, *params: Any) -> list[Row]: ...

    @abstractmethod
    async def do(self, sql: str, *params: Any) -> None: ...

    @abstractmethod
    async def insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Insert all of these, in as few statements as suits the engine."""

    @abstractmethod
    async def columns(self, table: str) -> list[str]:
        """Returns the names of a table's columns; none when there is no such table."""

    @abstractmethod
    async def empty(self, table: str) -> None:
        """Delete all rows of a table."""

    @abstractmethod
    async def lock_transfers(self) -> bool:
        """Returns whether this connection may write a transfer; until it is closed no other one may."""

    @abstractmethod
    async def set_sequence(self, table: str, column: str) -> None:
        """Number new rows after those that were inserted with numbers of their own."""

    @abstractmethod
    async def analyze(self, tables: Sequence[str]) -> None:
        """Learn the sizes of tables that were just filled: the plans of the first queries depend on them."""

    @abstractmethod
    async def close(self) -> None:
        """Close the connection; what is not committed is rolled back."""
