"""The conversation list: its order, and its pages over HTTP, which have fields that SYNC does not have."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from nexo_client.core.conversation_state import ConversationState
from nexo_client.core.messages import entry_from_api
from nexo_client.driver import Driver
from nexo_client.errors import ClientError
from nexo_client.http import Call

PAGE = 100


def sort_conversations(conversations: Iterable[ConversationState]) -> list[ConversationState]:
    """Returns the listed conversations: pinned ones first, then by newest activity."""
    listed = [conversation for conversation in conversations if conversation.is_listed]
    return sorted(listed, key=lambda conversation: (not conversation.settings.pinned, -conversation.updated_at))


class ConversationList:
    def __init__(self, call: Call, driver: Driver, failed: Callable[[Exception], None]) -> None:
        self._call = call
        self._driver = driver
        self._failed = failed
        self._cursor: str | None = None
        self._unlisted: dict[str, int] = {}  # heads of the conversations that no page has contained yet
        self._task: asyncio.Task[None] | None = None

    def reset(self) -> None:
        self._cursor = None

    def reload(self) -> None:
        """Loads the first page in the background."""
        if self._task is None or self._task.done():
            self._task = self._driver.spawn(self._load_first_page())

    async def loaded(self) -> None:
        """Returns when no first page is being loaded."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def load_more(self, limit: int) -> bool:
        """Loads the next page; returns whether there are more."""
        engine = self._driver.engine
        data = await self._call("GET", "/conversation/list", {"cursor": self._cursor or None, "limit": limit})
        for row in data["conversations"]:
            entry = entry_from_api(row)
            self._unlisted.pop(entry.conversation_id, None)
            engine.inbox.apply_list_row(entry, self._driver.now())
        self._cursor = data["next_cursor"] if data["has_more"] else None
        if not data["has_more"]:
            engine.inbox.hide(self._unlisted)
        self._driver.pump()
        return bool(data["has_more"])

    async def _load_first_page(self) -> None:
        self._cursor = None
        conversations = self._driver.engine.conversations.values()
        self._unlisted = {conversation.conversation_id: conversation.head_seq for conversation in conversations}
        try:
            await self.load_more(PAGE)
        except ClientError as error:
            self._failed(error)
