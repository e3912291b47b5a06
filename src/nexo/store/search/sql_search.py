"""What search reads from the database, behind `search.ports.SearchStore`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nexo.core.journal import Place
from nexo.core.model import Message
from nexo.core.search_index import SearchChanges, SearchSource
from nexo.store.database import Database
from nexo.store.journal.sql_journal import SqlJournal
from nexo.store.search import feed, reading


class SqlSearch:
    def __init__(self, database: Database, journal: SqlJournal) -> None:
        self._database = database
        self._sql = database.sql
        self._journal = journal

    async def changes(self, place: Place, limit: int) -> SearchChanges:
        found = await self._journal.read_parts(
            place, limit, lambda given: feed.sources_of(self._sql, given), feed.PAGE_BYTES
        )
        return SearchChanges(found.resolved.sources, found.place, found.has_more, found.is_waiting)

    async def now(self) -> Place:
        return await self._journal.now()

    async def newest(self) -> int:
        return await self._journal.newest()

    async def older(self, below: int, limit: int) -> list[SearchSource]:
        return await self._database.look(lambda: feed.older(self._sql, below, limit))

    async def exists(self, server_msg_id: int) -> bool:
        return await self._database.look(lambda: feed.exists(server_msg_id))

    async def ends(self) -> tuple[int, int]:
        return await self._database.look(feed.oldest_id), await self._database.look(feed.newest_id)

    async def conversations_of(self, user_id: str, conversation_id: str | None) -> dict[int, str]:
        return await self._database.look(lambda: reading.conversations_of(user_id, conversation_id))

    async def visible(self, user_id: str, wanted: Mapping[str, Sequence[int]]) -> dict[tuple[str, int], Message]:
        return await self._database.look(lambda: reading.visible(self._sql, user_id, wanted))

    async def seqs_of_types(
        self, user_id: str, conversation_id: str, msg_types: Sequence[int], before_seq: int | None, limit: int
    ) -> tuple[list[int], int]:
        return await self._database.look(
            lambda: reading.seqs_of_types(self._sql, user_id, conversation_id, msg_types, before_seq, limit)
        )
