"""The index of search in a file of its own: threads of its own, so that it delays no send."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import TypeVar

import structlog

from nexo.core.journal import Place
from nexo.core.search_index import Candidate, IndexQuery, IndexState, IndexStep, IndexUnit
from nexo.errors import NexoError
from nexo.store.engine import StoreError, Transient
from nexo.store.engines.sqlite import search_scripts as scripts
from nexo.store.engines.sqlite.driver import SqliteEngine

log = structlog.get_logger()
T = TypeVar("T")

READERS = 2
BUSY_MS = 5000  # another process may rebuild it
_PARTS = ("", "-wal", "-shm")


class SqliteSearchIndex:
    batch = 4000

    def __init__(self, path: Path) -> None:
        self._path = path
        self._engine = self._make_engine()

    def _make_engine(self) -> SqliteEngine:
        return SqliteEngine(self._path, reader_threads=READERS, lock_timeout_ms=BUSY_MS, is_derived=True)

    async def open(self) -> None:
        """Open the file, or make it. A damaged one is made anew: it can be built again."""
        try:
            await self._start()
        except (StoreError, sqlite3.Error, OSError) as error:
            if isinstance(error, Transient):
                raise NexoError("server_busy", f"The index of search cannot be opened: {error}") from error
            log.warning("search_index_replaced", error=str(error))
            await self._engine.stop()
            for part in _PARTS:
                self._path.with_name(self._path.name + part).unlink(missing_ok=True)
            self._engine = self._make_engine()
            await self._start()

    async def _start(self) -> None:
        await self._engine.start()
        await self._engine.write_once(scripts.make_schema)

    async def close(self) -> None:
        await self._engine.stop()

    async def state(self) -> IndexState:
        return await _ask(self._engine.read(scripts.state))

    async def begin(self, place: Place) -> IndexState:
        return await _ask(self._engine.write_once(lambda: scripts.begin(place)))

    async def apply(self, version: int, step: IndexStep) -> IndexState | None:
        return await _ask(self._engine.write_once(lambda: scripts.apply(version, step)))

    async def tend(self) -> bool:
        return await _ask(self._engine.write_once(scripts.tend))

    async def units(self, convs: Sequence[int]) -> list[IndexUnit]:
        return await _ask(self._engine.read(lambda: scripts.units(convs)))

    async def candidates(self, asked: IndexQuery) -> list[Candidate]:
        return await _ask(self._engine.read(lambda: scripts.candidates(asked)))

    async def media(self, conv: int, kind: int, before_seq: int, limit: int) -> list[int]:
        return await _ask(self._engine.read(lambda: scripts.media(conv, kind, before_seq, limit)))


async def _ask(answer: Awaitable[T]) -> T:
    try:
        return await answer
    except StoreError as error:
        raise NexoError("server_busy", f"The index of search does not answer: {error}", retry_after_ms=1000) from error
