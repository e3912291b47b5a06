"""A table in pages, in the order of its key: the last row of a page is where the next one begins, so that reading can
continue after an interruption."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from nexo.store.engines.transfer_connection import Row, TransferConnection


def after_sql(key: Sequence[str]) -> str:
    """`(a, b) > (?, ?)` spelled out, with its parameters as `after_params`: MySQL would scan for the short form."""
    if len(key) == 1:
        return f"{key[0]}>?"
    parts = []
    for i, name in enumerate(key):
        same = "".join(f"{earlier}=? AND " for earlier in key[:i])
        parts.append(f"({same}{name}>?)")
    return f"({key[0]}>=? AND ({' OR '.join(parts)}))"


def after_params(values: Sequence[object]) -> list[object]:
    if len(values) == 1:
        return list(values)
    params: list[object] = [values[0]]
    for i in range(len(values)):
        params += values[: i + 1]
    return params


class TablePages:
    """Reads columns of a table by a unique key, whose columns are the first of them."""

    def __init__(self, table: str, columns: Sequence[str], key: Sequence[str], rows: int, where: str = "") -> None:
        self.key_width = len(key)
        select = f"SELECT {','.join(columns)} FROM {table}"
        order = f"ORDER BY {','.join(key)} LIMIT {rows}"
        also = f" AND {where}" if where else ""
        self._first = f"{select} {f'WHERE {where} ' if where else ''}{order}"
        self._next = f"{select} WHERE {after_sql(key)}{also} {order}"
        self._rows = rows

    async def read(self, connection: TransferConnection, after: Sequence[object] | None) -> list[Row]:
        if after is None:
            return await connection.read(self._first)
        return await connection.read(self._next, *after_params(after))

    async def all(
        self, connection: TransferConnection, after: Sequence[object] | None = None
    ) -> AsyncIterator[list[Row]]:
        """Yields page after page; the next one is fetched while this one is worked on."""
        coming = asyncio.ensure_future(self.read(connection, after))
        try:
            while page := await coming:
                if len(page) < self._rows:
                    yield page
                    return
                coming = asyncio.ensure_future(self.read(connection, page[-1][: self.key_width]))
                yield page
        finally:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)
