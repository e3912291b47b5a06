"""Ownership of shards behind the port `OwnerStore`."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from nexo.store import owners
from nexo.store.database import Database
from nexo.store.engine import Conflict


class SqlOwners:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def free(self, shards: int) -> list[int]:
        return await self._database.look(lambda: owners.free(shards))

    async def take(self, owner: str, shards: Collection[int], ttl_s: float, at_most: int) -> dict[int, int]:
        while True:
            try:
                return await self._database.change(
                    lambda: owners.take(self._database.sql, owner, shards, int(ttl_s * 1000), at_most)
                )
            except Conflict:  # another instance took its first shards at the same moment
                continue

    async def renew(self, owner: str, held: Mapping[int, int], ttl_s: float) -> set[int]:
        return await self._database.change(lambda: owners.renew(self._database.sql, owner, held, int(ttl_s * 1000)))

    async def release(self, owner: str, held: Mapping[int, int]) -> None:
        await self._database.change(lambda: owners.release(owner, held))
