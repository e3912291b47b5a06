"""Changes of messages behind the port `MessageChangeStore`: each method runs one script on one database."""

from __future__ import annotations

from collections.abc import Sequence

from nexo.background import Background
from nexo.config import Config
from nexo.core.model import Message
from nexo.core.visibility import is_visible
from nexo.errors import NexoError
from nexo.ports import EditResult, GivenReaction, MessageEdit, PinResult, ReactionsWritten, ReactResult, SentBefore
from nexo.store import edits, pins, reactions, rows
from nexo.store.batch import HotSql
from nexo.store.database import Database
from nexo.store.engine import Conflict, Script
from nexo.store.engine import rows as query
from nexo.store.expiry import hide_expired
from nexo.store.history import clamp_limit
from nexo.store.listing import ranges_of
from nexo.store.publish_seam import PublishSeam
from nexo.store.reaction_writer import ReactionWriter
from nexo.store.reader_view import complete
from nexo.store.sql import Sql


class SqlMessageChanges:
    def __init__(
        self,
        database: Database,
        hot: HotSql,
        seam: PublishSeam,
        config: Config,
        retention_ms: int,
        background: Background,
    ) -> None:
        self._database = database
        self._sql = database.sql
        self.writer = ReactionWriter(database, hot, retention_ms, background)
        self._seam = seam
        self._edit_window_s = config.edit.window_s
        self._retention_ms = retention_ms

    async def edit(self, edit: MessageEdit) -> EditResult:
        (event_id,) = self._database.ids.take(1)
        while True:
            try:
                return await self._database.change_and_publish(
                    lambda: edits.edit(self._sql, edit, event_id, self._edit_window_s, self._retention_ms),
                    lambda done: self._seam.message_changed(done.published),
                )
            except Conflict:  # something else with this client_msg_id was written meanwhile: found the next time
                continue

    async def react(self, user_id: str, server_msg_id: int, emoji: str, on: bool) -> ReactResult:
        return await self.writer.react(user_id, server_msg_id, emoji, on)

    async def marked(self, older_ms: int, limit: int) -> list[int]:
        return await self._database.look(lambda: reactions.find_marked(older_ms, limit))

    async def announce(self, server_msg_id: int) -> ReactionsWritten:
        (event_id,) = self._database.ids.take(1)
        return await self._database.change_and_publish(
            lambda: reactions.write_event(self._sql, server_msg_id, event_id),
            lambda done: self._seam.message_changed(done.published),
        )

    async def reactions(
        self, user_id: str, server_msg_id: int, cursor: str | None, limit: int | None
    ) -> tuple[list[GivenReaction], str, bool]:
        count = clamp_limit(limit)
        return await self._database.look(lambda: reactions.given(user_id, server_msg_id, cursor, count))

    async def pin(self, user_id: str, server_msg_id: int, on: bool) -> PinResult:
        (event_id,) = self._database.ids.take(1)
        return await self._database.change_and_publish(
            lambda: pins.pin(self._sql, user_id, server_msg_id, on, event_id, self._retention_ms),
            lambda done: self._seam.message_changed(done.published),
        )

    async def pins(self, user_id: str, conversation_id: str) -> list[Message]:
        return await self._database.look(lambda: _pins(self._sql, user_id, conversation_id, self._retention_ms))

    async def originals(self, user_id: str, server_msg_ids: Sequence[int]) -> list[Message]:
        return await self._database.look(lambda: _originals(self._sql, user_id, server_msg_ids, self._retention_ms))

    async def sent_before(self, sender_id: str, client_msg_ids: Sequence[str]) -> dict[str, SentBefore]:
        return await self._database.look(lambda: _sent_before(self._sql, sender_id, client_msg_ids))


def _pins(sql: Sql, user_id: str, conversation_id: str, retention_ms: int) -> Script[list[Message]]:
    found = yield from pins.find_pins(user_id, conversation_id, retention_ms)
    yield from complete(sql, user_id, found.messages, {conversation_id: found.view.shown})
    return found.messages


def _originals(sql: Sql, user_id: str, server_msg_ids: Sequence[int], retention_ms: int) -> Script[list[Message]]:
    chosen = sql.one_of("m.server_msg_id", sorted(set(server_msg_ids)), "bigint")
    found = {
        row[1]: rows.message(tuple(row)[1:], row[0])
        for row in (
            yield query(
                f"SELECT c.conversation_id,{rows.columns(rows.MESSAGE, 'm')} FROM messages m "
                f"JOIN conversations c ON c.id=m.conv WHERE {chosen.sql} AND NOT EXISTS "
                "(SELECT 1 FROM message_deletions d WHERE d.conv=m.conv AND d.user_id=? AND d.seq=m.seq)",
                *chosen.params,
                user_id,
            )
        )
    }
    ranges = {}
    if found:
        names = sorted({message.conversation_id for message in found.values()})
        ranges = yield from ranges_of(sql, user_id, names)
    for server_msg_id in server_msg_ids:
        message = found.get(server_msg_id)
        if message is None or not is_visible(ranges.get(message.conversation_id, ()), message.seq):
            raise NexoError("message_not_found", f"There is no message {server_msg_id}, or you may not see it")
    yield from complete(sql, user_id, found.values(), ranges)
    yield from hide_expired(found.values(), retention_ms)
    return [found[server_msg_id] for server_msg_id in server_msg_ids]


def _sent_before(sql: Sql, sender_id: str, client_msg_ids: Sequence[str]) -> Script[dict[str, SentBefore]]:
    chosen = sql.one_of("client_msg_id", client_msg_ids)
    found = yield query(
        f"SELECT client_msg_id,request_hash,server_msg_id FROM messages WHERE sender_id=? AND {chosen.sql}",
        sender_id,
        *chosen.params,
    )
    return {row[0]: SentBefore(bytes(row[1] or b""), row[2]) for row in found}
