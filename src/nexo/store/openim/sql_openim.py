"""What OpenIM clients need, behind the port `ports.OpenimStore`: each method runs one script on one database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nexo.config import Config
from nexo.core.model import Message
from nexo.core.numbering import NumberedMessages, NumberHead
from nexo.ports.openim import ListChanges
from nexo.store.database import Database
from nexo.store.expiry import shown
from nexo.store.history import LIMIT_MAX
from nexo.store.openim import numbers, versions


def _messages(found: NumberedMessages) -> list[Message]:
    return [one.message for one in found.messages]


class SqlOpenim:
    def __init__(self, database: Database, config: Config, retention_ms: int) -> None:
        self._database = database
        self._sql = database.sql
        self._max_bytes = config.pull.max_bytes
        self._retention_ms = retention_ms

    async def heads(self, user_id: str, conversation_ids: Sequence[str] | None = None) -> list[NumberHead]:
        return await self._database.look(lambda: numbers.heads(self._sql, user_id, conversation_ids))

    async def pull(self, user_id: str, conversation_id: str, begin: int, end: int, limit: int) -> NumberedMessages:
        count = limit if 0 < limit <= LIMIT_MAX else LIMIT_MAX
        return await self._database.look(
            lambda: shown(
                numbers.pull(self._sql, user_id, conversation_id, begin, end, count, self._max_bytes),
                _messages,
                self._retention_ms,
            )
        )

    async def pull_list(self, user_id: str, conversation_id: str, wanted: Sequence[int]) -> NumberedMessages:
        return await self._database.look(
            lambda: shown(
                numbers.pull_list(self._sql, user_id, conversation_id, wanted[:LIMIT_MAX], self._max_bytes),
                _messages,
                self._retention_ms,
            )
        )

    async def pull_events(self, user_id: str, conversation_id: str, begin_seq: int, end_seq: int) -> list[Message]:
        return await self._database.look(
            lambda: numbers.pull_events(self._sql, user_id, conversation_id, begin_seq, end_seq, LIMIT_MAX)
        )

    async def numbered(self, server_msg_ids: Sequence[int]) -> dict[int, tuple[int, Message]]:
        return await self._database.look(lambda: numbers.numbered(self._sql, server_msg_ids))

    async def numbers_between(
        self, conversation_id: str, sender_id: str, after: int, seq: int, limit: int
    ) -> list[int]:
        return await self._database.look(lambda: numbers.numbers_between(conversation_id, sender_id, after, seq, limit))

    async def number_at(self, conversation_id: str, seq: int) -> int:
        return await self._database.look(lambda: numbers.number_at(conversation_id, seq))

    async def places(self, user_id: str, conversation_id: str, wanted: Sequence[int]) -> dict[int, tuple[int, int]]:
        return await self._database.look(lambda: numbers.places(self._sql, user_id, conversation_id, wanted))

    async def follow(
        self, owner: str, kind: str, digests: Mapping[str, str], version: int, version_id: str
    ) -> ListChanges:
        changes = await self._database.change(
            lambda: versions.follow(self._sql, owner, kind, digests, version, version_id)
        )
        return ListChanges(*changes)
