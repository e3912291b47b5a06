"""Calls that a product's backend makes for one of its users: `backend.act(user_id)`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nexo_client.contacts import Contacts
from nexo_client.core.ids import MessageIds, now_ms
from nexo_client.core.messages import message_from_api
from nexo_client.groups import Groups
from nexo_client.http import Call, decode
from nexo_client.types import HistoryPage, RecallResult, SentMessage
from nexo_client.users import Users


class ActingUser:
    """A user as whom the backend acts. `users`, `contacts` and `groups` are the calls of the chat SDK,
    done as this user."""

    def __init__(self, user_id: str, call: Call) -> None:
        self.user_id = user_id
        self._call = call
        self._ids = MessageIds()
        self.users = Users(self.call)
        self.contacts = Contacts(self.call)
        self.groups = Groups(self.call)

    async def call(self, method: str, path: str, params: Mapping[str, Any] | None = None) -> Any:
        """Performs any call of the HTTP API as this user; returns `data` of the answer."""
        return await self._call(method, path, params, user_id=self.user_id)

    async def send(
        self,
        content: Any,
        *,
        to: str | None = None,
        group_id: str | None = None,
        msg_type: int = 1,
        mentions: Iterable[str] | None = None,
        reply_to: str | None = None,
        extra: Any = None,
        expires_s: int | None = None,
        client_msg_id: str | None = None,
    ) -> SentMessage:
        """Sends a message to a user or a group. After an error, the same call with the same `client_msg_id` never
        stores it twice; without one an id is made."""
        params = {
            "recv_id": to,
            "group_id": group_id,
            "content": content,
            "msg_type": msg_type,
            "mentions": None if mentions is None else [*mentions],
            "reply_to": reply_to,
            "extra": extra,
            "expires_s": expires_s,
            "client_msg_id": client_msg_id or self._ids.new(now_ms()),
        }
        return decode(await self.call("POST", "/msg/send", params), SentMessage)

    async def recall(self, server_msg_id: str) -> RecallResult:
        return decode(await self.call("POST", "/msg/recall", {"server_msg_id": server_msg_id}), RecallResult)

    async def history(
        self, conversation_id: str, *, before_seq: int | None = None, limit: int | None = None
    ) -> HistoryPage:
        """Returns messages of a conversation, newest first, below `before_seq` or from the newest on."""
        asked = {"conversation_id": conversation_id, "before_seq": before_seq, "limit": limit}
        page = await self.call("GET", "/msg/history", asked)
        messages = [message_from_api(shape) for shape in page["messages"]]
        return HistoryPage(messages, page["head_seq"], page["next_seq"], page["has_more"])

    async def mark_read(self, conversation_id: str, seq: int) -> None:
        await self.call("POST", "/conversation/read", {"conversation_id": conversation_id, "seq": seq})
