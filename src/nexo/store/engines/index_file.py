"""The index of search as a file beside the database; `search.ports.SearchIndex` states what each method does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from nexo.core.journal import Place
from nexo.core.search_index import Candidate, IndexQuery, IndexState, IndexStep, IndexUnit


class IndexFile(Protocol):
    batch: int

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def state(self) -> IndexState: ...

    async def begin(self, place: Place) -> IndexState: ...

    async def apply(self, version: int, step: IndexStep) -> IndexState | None: ...

    async def tend(self) -> bool: ...

    async def units(self, convs: Sequence[int]) -> list[IndexUnit]: ...

    async def candidates(self, asked: IndexQuery) -> list[Candidate]: ...

    async def media(self, conv: int, kind: int, before_seq: int, limit: int) -> list[int]: ...
