"""Changing messages: edits, reactions and pins. The shape is checked here, everything else under the lock."""

from __future__ import annotations

from typing import Any

from nexo.core import content as form
from nexo.core.emoji import check_emoji
from nexo.core.model import Draft, Kind, Message
from nexo.core.policy import EDITABLE
from nexo.errors import NexoError
from nexo.ids import check_client_msg_id, group_of, parse_server_msg_id
from nexo.ports import (
    EditResult,
    GivenReaction,
    MessageChangeStore,
    MessageEdit,
    MessageStore,
    PinResult,
    ReactResult,
)
from nexo.service.send import Sending


class MessageChanges:
    def __init__(self, messages: MessageStore, changes: MessageChangeStore, sending: Sending) -> None:
        self._messages = messages
        self._changes = changes
        self._sending = sending

    async def edit(
        self,
        user_id: str,
        server_msg_id: str | int,
        content: Any,
        client_msg_id: str | None,
        mentions: Any = None,
    ) -> tuple[EditResult, bool]:
        """Returns the result, and whether the stored content differs from the one that was sent."""
        if client_msg_id is None:
            raise NexoError("missing_client_msg_id")
        check_client_msg_id(client_msg_id)
        message_id = parse_server_msg_id(server_msg_id)
        named = None if mentions is None else form.check_mentions(mentions)
        message = await self._messages.find(user_id, message_id)
        if message.msg_type not in EDITABLE:
            raise NexoError("not_editable", "Only texts, quotes and custom messages can be edited")
        draft = self._draft(user_id, message, client_msg_id, content, named)
        if draft.sender_id == message.sender_id:
            await self._sending.prepare(draft, content)
        result = await self._changes.edit(MessageEdit(message_id, draft, named))
        return result, draft.filtered

    def _draft(
        self, user_id: str, message: Message, client_msg_id: str, content: Any, named: tuple[str, ...] | None
    ) -> Draft:
        """Returns the edit as what a send of it would be."""
        text = form.encode_content(message.msg_type, content)
        name = message.conversation_id
        return Draft(
            user_id,
            client_msg_id,
            name,
            int(Kind.SINGLE if group_of(name) is None else Kind.GROUP),
            message.msg_type,
            text,
            form.edit_hash(message.server_msg_id, text, named),
            message.mentions if named is None else named,
            message.reply_to,
            message.extra,
        )

    async def react(self, user_id: str, server_msg_id: str | int, emoji: Any, on: bool) -> ReactResult:
        message_id = parse_server_msg_id(server_msg_id)
        if emoji is None or emoji == "":
            raise NexoError("missing_emoji")
        return await self._changes.react(user_id, message_id, check_emoji(emoji), on)

    async def reactions(
        self, user_id: str, server_msg_id: str | int, cursor: str | None, limit: int | None
    ) -> tuple[list[GivenReaction], str, bool]:
        return await self._changes.reactions(user_id, parse_server_msg_id(server_msg_id), cursor, limit)

    async def pin(self, user_id: str, server_msg_id: str | int, on: bool) -> PinResult:
        return await self._changes.pin(user_id, parse_server_msg_id(server_msg_id), on)

    async def pins(self, user_id: str, conversation_id: str) -> list[Message]:
        return await self._changes.pins(user_id, conversation_id)
