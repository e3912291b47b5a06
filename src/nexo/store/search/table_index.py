"""The index of search in tables of a server database."""

from __future__ import annotations

from collections.abc import Sequence

from nexo.core.journal import Place
from nexo.core.search_index import Candidate, IndexQuery, IndexState, IndexStep, IndexUnit
from nexo.store.database import Database
from nexo.store.search import tables


class TableIndex:
    batch = 500

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.sql

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def state(self) -> IndexState:
        return await self._database.look(lambda: tables.state(self._sql))

    async def begin(self, place: Place) -> IndexState:
        while await self._database.change(lambda: tables.forget(self._sql)):
            pass
        return await self._database.change(lambda: tables.begin(self._sql, place))

    async def apply(self, version: int, step: IndexStep) -> IndexState | None:
        return await self._database.change(lambda: tables.apply(self._sql, version, step))

    async def tend(self) -> bool:
        return False

    async def units(self, convs: Sequence[int]) -> list[IndexUnit]:
        return await self._database.look(lambda: tables.units(self._sql, convs))

    async def candidates(self, asked: IndexQuery) -> list[Candidate]:
        return await self._database.look(lambda: tables.candidates(self._sql, asked))

    async def media(self, conv: int, kind: int, before_seq: int, limit: int) -> list[int]:
        return await self._database.look(lambda: tables.media(conv, kind, before_seq, limit))
