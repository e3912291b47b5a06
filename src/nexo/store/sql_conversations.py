"""Conversations behind the port `ConversationStore`: each method runs one script on one database."""

from __future__ import annotations

from collections.abc import Sequence

from nexo.core.model import (
    ConversationEntry,
    Head,
)
from nexo.core.visibility import Ranges
from nexo.errors import NexoError
from nexo.ports import ActiveSince, DeletedSince, Deletion, GroupChange, MemberSettings
from nexo.store import conversation_times, deletions, history, listing
from nexo.store.contacts import hidden_from
from nexo.store.cursors import CursorWriter
from nexo.store.database import Database
from nexo.store.engine import Script
from nexo.store.expiry import hide_expired, shown
from nexo.store.history import clamp_limit
from nexo.store.member_settings import change_settings
from nexo.store.publish_seam import PublishSeam


class SqlConversations:
    def __init__(self, database: Database, cursors: CursorWriter, seam: PublishSeam, retention_ms: int) -> None:
        self._database = database
        self._sql = database.sql
        self._cursors = cursors
        self._seam = seam
        self._retention_ms = retention_ms

    async def hidden_from(self, viewer_id: str, user_ids: Sequence[str]) -> set[str]:
        if not user_ids:
            return set()
        return await self._database.look(lambda: hidden_from(self._sql, viewer_id, list(user_ids)))

    async def visible_ranges(self, user_id: str, conversation_id: str) -> Ranges:
        view = await self._database.look(lambda: history.open_view(user_id, conversation_id))
        return view.ranges

    async def entries(
        self, user_id: str, cursor: str | None, limit: int | None
    ) -> tuple[list[ConversationEntry], str, bool]:
        count = clamp_limit(limit)
        return await self._database.look(
            lambda: shown(
                listing.entries(self._sql, user_id, cursor, count),
                lambda page: (entry.last_message for entry in page.entries),
                self._retention_ms,
            )
        )

    async def sync(self, user_id: str, cursor: str | None, limit: int | None) -> tuple[list[Head], str, bool]:
        count = clamp_limit(limit)
        return await self._database.look(lambda: listing.sync(user_id, cursor, count))

    async def heads(self, user_id: str, conversation_ids: Sequence[str] | None) -> list[Head]:
        return await self._database.look(lambda: listing.heads(self._sql, user_id, conversation_ids))

    async def silenced(self, user_id: str) -> set[str]:
        return await self._database.look(lambda: listing.silenced(user_id))

    async def change_settings(self, user_id: str, conversation_id: str, settings: MemberSettings) -> ConversationEntry:
        def publish(changed: tuple[ConversationEntry, list[Head]]) -> None:
            if settings.recv_msg_opt is not None or settings.silent_until is not None:
                self._seam.audience_changed(conversation_id)
            self._seam.settings_changed(user_id, changed[1])

        entry, _ = await self._database.change_and_publish(
            lambda: self._change_settings(user_id, conversation_id, settings), publish
        )
        return entry

    def _change_settings(
        self, user_id: str, conversation_id: str, settings: MemberSettings
    ) -> Script[tuple[ConversationEntry, list[Head]]]:
        view = yield from history.open_view(user_id, conversation_id)
        if view.conversation is None or view.member is None:
            raise NexoError("conversation_not_found")
        yield from change_settings(view, settings)
        page = yield from listing.entries(self._sql, user_id, None, 1, conversation_id)
        if not page.entries:
            raise NexoError("conversation_not_found")
        yield from hide_expired([page.entries[0].last_message], self._retention_ms)
        return page.entries[0], (yield from listing.heads(self._sql, user_id, [conversation_id]))

    async def set_message_ttl(self, user_id: str, conversation_id: str, ttl_s: int) -> GroupChange:
        (event_id,) = self._database.ids.take(1)
        return await self._database.change_and_publish(
            lambda: conversation_times.set_ttl(self._sql, user_id, conversation_id, ttl_s, event_id),
            self._seam.group_changed,
        )

    async def seq_at(self, user_id: str, conversation_id: str, time_ms: int) -> int | None:
        return await self._database.look(lambda: conversation_times.seq_at(user_id, conversation_id, time_ms))

    async def delete_messages(
        self, user_id: str, server_msg_ids: Sequence[int], origin: object | None = None
    ) -> list[Deletion]:
        memo: deletions.Memo = {}

        def publish(done: list[Deletion]) -> None:
            for deletion in done:
                self._seam.deleted(deletion._replace(origin=origin))

        return await self._database.change_and_publish(
            lambda: deletions.delete(self._sql, user_id, server_msg_ids, memo),
            publish,
        )

    async def clear(self, user_id: str, conversation_id: str) -> Deletion:
        memo: deletions.Memo = {}

        def publish(deletion: Deletion) -> None:
            if deletion.up_to_seq is not None:
                self._seam.audience_changed(conversation_id)
            self._seam.deleted(deletion)

        return await self._database.change_and_publish(
            lambda: deletions.clear(self._sql, user_id, conversation_id, memo), publish
        )

    async def deleted_since(self, user_id: str, conversation_id: str, after: int, limit: int | None) -> DeletedSince:
        count = clamp_limit(limit)
        return await self._database.look(lambda: deletions.since(user_id, conversation_id, after, count))

    def advance(self, user_id: str, conversation_id: str, *, delivered_seq: int = 0, read_seq: int = 0) -> None:
        self._cursors.advance(user_id, conversation_id, delivered_seq=delivered_seq, read_seq=read_seq)

    async def mark_read(self, user_id: str, conversation_id: str, seq: int) -> tuple[int, int]:
        return await self._cursors.mark_read(user_id, conversation_id, seq)

    async def active_since(self, user_ids: Sequence[str], since_ms: int | None) -> ActiveSince:
        return await self._database.look(lambda: listing.active_since(self._sql, user_ids, since_ms))
