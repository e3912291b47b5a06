"""Calls about messages: what `Conversation` and `NexoClient` offer beyond sending and reading."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from nexo_client.core.ids import group_conversation_id, group_of, peer_of, single_conversation_id
from nexo_client.core.messages import message_from_api
from nexo_client.http import Call, decode
from nexo_client.repeated_calls import RepeatedCalls
from nexo_client.types import (
    EditResult,
    Forwarded,
    MediaPage,
    Message,
    PinResult,
    Reaction,
    ReactionsPage,
    RecallResult,
    Receipts,
    SearchPage,
    SearchResult,
)

MessageOrId = Message | str  # a message, or the `server_msg_id` of one


class HasId(Protocol):
    """A conversation."""

    @property
    def id(self) -> str: ...


class DeletedPage(NamedTuple):
    """What the user has deleted, up to the revision `deleted_rev`."""

    server_msg_ids: list[str]
    up_to_seq: int | None
    deleted_rev: int
    has_more: bool


def id_of(message: MessageOrId) -> str:
    return message if isinstance(message, str) else message.server_msg_id


class MessageCalls:
    def __init__(
        self, call: Call, repeated: RepeatedCalls, make_id: Callable[[], str], user_id: Callable[[], str]
    ) -> None:
        self._call = call
        self._repeated = repeated
        self._make_id = make_id
        self._user_id = user_id

    async def _repeat(self, method: str, path: str, lane: str, params: Mapping[str, Any]) -> Any:
        return await self._repeated.run(lane, lambda: self._call(method, path, params))

    async def recall(self, server_msg_id: str) -> RecallResult:
        return decode(await self._call("POST", "/msg/recall", {"server_msg_id": server_msg_id}), RecallResult)

    async def receipts(self, server_msg_id: str) -> Receipts:
        return decode(await self._call("GET", "/msg/receipts", {"server_msg_id": server_msg_id}), Receipts)

    async def edit(
        self, message: MessageOrId, content: Any, mentions: Sequence[str] | None, client_msg_id: str | None
    ) -> EditResult:
        server_msg_id = id_of(message)
        params = {
            "server_msg_id": server_msg_id,
            "client_msg_id": client_msg_id or self._make_id(),
            "content": content,
            "mentions": None if mentions is None else list(mentions),
        }
        return decode(await self._repeat("PUT", "/msg/edit", server_msg_id, params), EditResult)

    async def react(self, message: MessageOrId, emoji: str, on: bool) -> list[Reaction]:
        server_msg_id = id_of(message)
        params = {"server_msg_id": server_msg_id, "emoji": emoji, "on": on}
        return decode((await self._repeat("POST", "/msg/react", server_msg_id, params))["reactions"], list[Reaction])

    async def pin(self, message: MessageOrId, on: bool) -> PinResult:
        server_msg_id = id_of(message)
        params = {"server_msg_id": server_msg_id, "on": on}
        return decode(await self._repeat("POST", "/msg/pin", server_msg_id, params), PinResult)

    async def pins(self, conversation_id: str) -> list[Message]:
        found = await self._call("GET", "/msg/pins", {"conversation_id": conversation_id})
        return [message_from_api(shape) for shape in found["messages"]]

    async def reactions(self, message: MessageOrId, cursor: str | None, limit: int | None) -> ReactionsPage:
        asked = {"server_msg_id": id_of(message), "cursor": cursor, "limit": limit}
        return decode(await self._call("GET", "/msg/reactions", asked), ReactionsPage)

    async def delete_for_me(self, messages: Iterable[MessageOrId]) -> list[str]:
        """Returns their ids."""
        server_msg_ids = [id_of(message) for message in messages]
        await self._call("POST", "/msg/delete", {"server_msg_ids": server_msg_ids})
        return server_msg_ids

    async def clear(self, conversation_id: str) -> int:
        """Returns the seq up to which everything is deleted."""
        return int((await self._call("POST", "/conversation/clear", {"conversation_id": conversation_id}))["up_to_seq"])

    async def deleted(self, conversation_id: str, after: int) -> DeletedPage:
        page = await self._call("GET", "/msg/deleted", {"conversation_id": conversation_id, "after": after})
        return DeletedPage(page["server_msg_ids"], page["up_to_seq"], page["deleted_rev"], page["has_more"])

    async def at(self, conversation_id: str, time: int) -> int | None:
        found = await self._call("GET", "/conversation/at", {"conversation_id": conversation_id, "time": time})
        return decode(found["seq"], int | None)  # type: ignore[arg-type]

    async def media(self, conversation_id: str, kind: str, before_seq: int | None, limit: int | None) -> MediaPage:
        asked = {"conversation_id": conversation_id, "kind": kind, "before_seq": before_seq, "limit": limit}
        page = await self._call("GET", "/msg/media", asked)
        messages = [message_from_api(shape) for shape in page["messages"]]
        return MediaPage(messages, page["next_seq"], page["has_more"])

    async def search(self, params: Mapping[str, Any]) -> SearchPage:
        page = await self._call("GET", "/msg/search", params)
        results = [
            SearchResult(message_from_api(found["message"]), found["snippet"], [(a, b) for a, b in found["ranges"]])
            for found in page["results"]
        ]
        return SearchPage(results, page["next_cursor"], page["has_more"])

    async def forward(
        self,
        messages: Iterable[MessageOrId],
        targets: Iterable[HasId | str],
        merge: bool,
        title: str | None,
        client_msg_id: str | None,
    ) -> list[Forwarded]:
        request_id = client_msg_id or self._make_id()
        params = {
            "client_msg_id": request_id,
            "server_msg_ids": [id_of(message) for message in messages],
            "to": [self._target(one if isinstance(one, str) else one.id) for one in targets],
            "merge": merge,
            "title": title,
        }
        answer = await self._repeat("POST", "/msg/forward", request_id, params)
        return [
            Forwarded(self._conversation_of(one), one.get("server_msg_ids", []), one.get("error"))
            for one in answer["sent"]
        ]

    def _target(self, conversation_id: str) -> dict[str, str | None]:
        group_id = group_of(conversation_id)
        return {"recv_id": peer_of(conversation_id, self._user_id())} if group_id is None else {"group_id": group_id}

    def _conversation_of(self, sent: Mapping[str, Any]) -> str:
        if "group_id" in sent:
            return group_conversation_id(sent["group_id"])
        return single_conversation_id(self._user_id(), sent["recv_id"])

    async def report(self, message: MessageOrId, reason: str) -> str:
        """Returns the id of the report."""
        asked = {"server_msg_id": id_of(message), "reason": reason}
        return str((await self._call("POST", "/msg/report", asked))["report_id"])
