"""Writing what the core wants kept: in batches, one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from nexo.client.desk import Store
from nexo.client.storage import Storage


class Keeper:
    def __init__(
        self,
        storage: Storage,
        spawn: Callable[[Coroutine[Any, Any, Any]], asyncio.Task[Any]],
        kept: Callable[[Sequence[tuple[Store, BaseException | None]]], None],
    ) -> None:
        """`kept` is told of each batch, and of each value why it could not be kept."""
        self._storage = storage
        self._spawn = spawn
        self._kept = kept
        self._waiting: list[Store] = []
        self._task: asyncio.Task[None] | None = None

    def keep(self, stores: Sequence[Store]) -> None:
        self._waiting += stores
        if self._waiting and self._task is None:
            self._task = self._spawn(self._keep_all())

    async def done(self) -> None:
        while self._task is not None:
            await asyncio.wait([self._task])

    async def _keep_all(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                results = await asyncio.gather(*(self._write(store) for store in batch), return_exceptions=True)
                self._kept(list(zip(batch, results, strict=True)))
        finally:
            self._task = None

    async def _write(self, store: Store) -> None:
        if store.value is None:
            await self._storage.delete(store.key)
        else:
            await self._storage.set(store.key, store.value)
