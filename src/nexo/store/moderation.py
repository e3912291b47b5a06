"""What moderators do to messages and groups, as scripts; each writes its line of the audit log."""

from __future__ import annotations

from typing import Any

from nexo.core.model import ConversationStatus, Message, MessageStatus
from nexo.core.moderation import Moderator, ReadMessage
from nexo.core.unread import countable_sql
from nexo.errors import NexoError
from nexo.ids import group_conversation_id
from nexo.ports import RecallResult
from nexo.store import audit, message_versions, recall, rows
from nexo.store.conversations import lock_conversation, save_conversation
from nexo.store.database import Database
from nexo.store.engine import NOW, Script, do
from nexo.store.engine import rows as query
from nexo.store.expiry import hide_expired
from nexo.store.journal import writing
from nexo.store.publish_seam import PublishSeam
from nexo.store.reader_view import EVERYTHING, complete
from nexo.store.sql import Sql

_MESSAGE = f"c.conversation_id,{rows.columns(rows.MESSAGE, 'm')}"


class SqlModeration:
    """Behind the port `service.moderation.ModerationStore`."""

    def __init__(self, database: Database, seam: PublishSeam | None = None, *, keeps_originals: bool = True) -> None:
        self._database = database
        self._sql = database.sql
        self._seam = seam or PublishSeam()
        self._keeps = keeps_originals

    async def recall(self, server_msg_id: int, moderator: Moderator) -> RecallResult:
        (event_id,) = self._database.ids.take(1)
        return await self._database.change_and_publish(
            lambda: _recall(self._sql, server_msg_id, event_id, moderator, self._keeps), self._seam.recalled
        )

    async def read(self, server_msg_id: int, actor: str) -> ReadMessage:
        read = await self._database.look(lambda: _read(self._sql, server_msg_id))
        message = read.message
        detail = {"conversation_id": message.conversation_id, "sender_id": message.sender_id}
        await self._note(actor, "message.read", str(server_msg_id), {**detail, "versions": len(read.versions)})
        return read

    async def messages_of(self, user_id: str, before: int, limit: int, actor: str) -> list[Message]:
        found = await self._database.look(lambda: _messages_of(self._sql, user_id, before, limit))
        await self._note(actor, "user.messages", user_id, {"before": str(before), "messages": len(found)})
        return found

    async def set_group_disabled(self, group_id: str, is_disabled: bool, reason: str, actor: str) -> bool:
        name = group_conversation_id(group_id)
        return await self._database.change_and_publish(
            lambda: _set_disabled(self._sql, group_id, is_disabled, reason, actor),
            lambda _: self._seam.audience_changed(name),
        )

    async def _note(self, actor: str, act: str, target: str, detail: dict[str, Any]) -> None:
        """Writes the audit log after a look, which must not hold up the transactions of senders."""
        await self._database.change(lambda: audit.write(actor, act, target, detail))

    async def trim_versions(self, keep_ms: int) -> int:
        return await self._database.change(lambda: message_versions.trim(self._sql, keep_ms))


def _recall(sql: Sql, server_msg_id: int, event_id: int, moderator: Moderator, keep: bool) -> Script[RecallResult]:
    found = yield from recall.lock_message(sql, server_msg_id)
    if found.message.is_event:
        raise NexoError("message_not_found", "Events cannot be recalled")
    recall.check_not_expired(found.message, (yield NOW))
    if found.message.status == MessageStatus.RECALLED:
        return (yield from recall.recalled_before(found, event_id))
    detail = {"conversation_id": found.message.conversation_id, "sender_id": found.message.sender_id}
    yield from audit.write(moderator.actor, "message.recall", str(server_msg_id), detail)
    return (yield from recall.blank(found, event_id, moderator.user_id, moderator.actor, (yield NOW), keep))


def _read(sql: Sql, server_msg_id: int) -> Script[ReadMessage]:
    found = yield query(
        f"SELECT {_MESSAGE} FROM messages m JOIN conversations c ON c.id=m.conv WHERE m.server_msg_id=?",
        server_msg_id,
    )
    if not found:
        raise NexoError("message_not_found")
    name, *row = found[0]
    message = rows.message(row, name)
    yield from hide_expired([message])
    yield from complete(sql, "", [message], {name: EVERYTHING})
    is_over = message.expires_at is not None and message.expires_at <= (yield NOW)
    kept = [] if is_over else (yield from message_versions.read(server_msg_id))
    return ReadMessage(message, kept)


def _messages_of(sql: Sql, user_id: str, before: int, limit: int) -> Script[list[Message]]:
    if not (yield query("SELECT 1 FROM users WHERE user_id=?", user_id)):
        raise NexoError("user_not_found", f"There is no user {user_id}")
    # By the index of senders and client ids, which holds the ids of their messages too: an index of its own would cost
    # every send. `+0` keeps a database from walking over the messages of all users in the order of their ids.
    found = yield query(
        "SELECT server_msg_id FROM messages WHERE sender_id=? AND client_msg_id IS NOT NULL AND server_msg_id+0<? "
        f"AND {countable_sql()} "
        f"ORDER BY server_msg_id+0 DESC LIMIT {int(limit)}",
        user_id,
        before or (1 << 63) - 1,
    )
    messages: list[Message] = []
    if found:
        chosen = sql.one_of("m.server_msg_id", [row[0] for row in found], "bigint")
        for name, *row in (
            yield query(
                f"SELECT {_MESSAGE} FROM messages m JOIN conversations c ON c.id=m.conv WHERE {chosen.sql} "
                "ORDER BY m.server_msg_id DESC",
                *chosen.params,
            )
        ):
            messages.append(rows.message(row, name))
    yield from hide_expired(messages)
    yield from complete(sql, "", messages, {message.conversation_id: EVERYTHING for message in messages})
    return messages


def _set_disabled(sql: Sql, group_id: str, is_disabled: bool, reason: str, actor: str) -> Script[bool]:
    conversation = yield from lock_conversation(sql, group_conversation_id(group_id))
    if conversation is None:
        raise NexoError("group_not_found")
    status = ConversationStatus.DISABLED if is_disabled else ConversationStatus.NORMAL
    if conversation.status not in (ConversationStatus.NORMAL, ConversationStatus.DISABLED):
        raise NexoError("group_not_available", "The group has been dismissed")
    if conversation.status == status:
        return False
    now_ms = yield NOW
    conversation.status = status
    yield from save_conversation(conversation)
    group_status = 2 if is_disabled else 0
    yield do("UPDATE chat_groups SET status=?,updated_at=? WHERE group_id=?", group_status, now_ms, group_id)
    yield from writing.note(now_ms, writing.group(conversation.id, "disabled" if is_disabled else "enabled"))
    act = "group.disable" if is_disabled else "group.enable"
    yield from audit.write(actor, act, group_id, {"reason": reason} if is_disabled else {})
    return True
