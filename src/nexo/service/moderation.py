"""What moderators do to messages and groups: recall, read originals, list a user's messages, disable groups.

Each act writes its line of the audit log; reading is an act too.
"""

from __future__ import annotations

from typing import Protocol

import structlog

from nexo.core.content import check_text
from nexo.core.model import Message
from nexo.core.moderation import Moderator, ReadMessage
from nexo.errors import NexoError
from nexo.ids import check_user_id, is_group_id, parse_server_msg_id
from nexo.ports import RecallResult

log = structlog.get_logger()

PAGE_MAX = 100
REASON_MAX_CHARS = 255


class ModerationStore(Protocol):
    """As for all ports: `server_busy` when the database cannot be reached."""

    async def recall(self, server_msg_id: int, moderator: Moderator) -> RecallResult:
        """Recall any message, also long after it was sent and in a group that is closed. Repeated: the same answer.
        Raises `message_not_found`, also for events."""

    async def read(self, server_msg_id: int, actor: str) -> ReadMessage:
        """Or `message_not_found`. The line of the audit log is written before this returns."""

    async def messages_of(self, user_id: str, before: int, limit: int, actor: str) -> list[Message]:
        """Returns what a user has sent, newest first, below an id (0: from the newest); or `user_not_found`."""

    async def set_group_disabled(self, group_id: str, is_disabled: bool, reason: str, actor: str) -> bool:
        """Returns whether this changed anything. Raises `group_not_found`, and `group_not_available` for a dismissed
        one."""

    async def trim_versions(self, keep_ms: int) -> int:
        """Delete some versions that were replaced longer ago than this. Returns how many: 0 if none is left."""


class Moderation:
    def __init__(self, store: ModerationStore) -> None:
        self._store = store

    async def recall(self, server_msg_id: str, moderator: Moderator) -> RecallResult:
        return await self._store.recall(parse_server_msg_id(server_msg_id), moderator)

    async def read(self, server_msg_id: str, moderator: Moderator) -> ReadMessage:
        return await self._store.read(parse_server_msg_id(server_msg_id), moderator.actor)

    async def messages_of(
        self, user_id: str, before: str | None, limit: int, moderator: Moderator
    ) -> tuple[list[Message], bool]:
        """Returns a page of what a user has sent, newest first, and whether there is more."""
        check_user_id(user_id)
        if not 1 <= limit <= PAGE_MAX:
            raise NexoError("bad_limit", f"limit is a number from 1 to {PAGE_MAX}")
        below = parse_server_msg_id(before) if before else 0
        found = await self._store.messages_of(user_id, below, limit + 1, moderator.actor)
        return found[:limit], len(found) > limit

    async def disable_group(self, group_id: str, reason: str, actor: str) -> None:
        check_text(reason, "reason", REASON_MAX_CHARS)
        await self._set_disabled(group_id, True, reason, actor)

    async def enable_group(self, group_id: str, actor: str) -> None:
        await self._set_disabled(group_id, False, "", actor)

    async def _set_disabled(self, group_id: str, is_disabled: bool, reason: str, actor: str) -> None:
        if not is_group_id(group_id):
            raise NexoError("bad_group_id", "group_id is the id of a group")
        if await self._store.set_group_disabled(group_id, is_disabled, reason, actor):
            if is_disabled:
                log.info("group_disabled", group_id=group_id, actor=actor)
            else:
                log.info("group_enabled", group_id=group_id, actor=actor)
