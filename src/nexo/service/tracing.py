"""Where a message is: from the database, and from what the instances remember of their last pushes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from nexo.core.tracing import StoredTrace, TracesFound
from nexo.ids import check_user_id, parse_server_msg_id


class TraceStore(Protocol):
    async def trace(self, server_msg_id: int, user_id: str | None) -> StoredTrace:
        """Returns the message with one receiver, or with the first of them. Raises `message_not_found`."""


class InstanceTraces(Protocol):
    async def ask(self, server_msg_id: int, user_ids: Sequence[str]) -> TracesFound:
        """Returns what the instances remember; those that do not answer within a short time are named."""


class MessageTrace(NamedTuple):
    stored: StoredTrace
    found: TracesFound


class Tracing:
    def __init__(self, store: TraceStore, instances: InstanceTraces) -> None:
        self._store = store
        self._instances = instances

    async def trace(self, server_msg_id: str | int, user_id: str | None) -> MessageTrace:
        if user_id is not None:
            check_user_id(user_id)
        stored = await self._store.trace(parse_server_msg_id(server_msg_id), user_id)
        wanted = [receiver.user_id for receiver in stored.receivers]
        return MessageTrace(stored, await self._instances.ask(stored.message.server_msg_id, wanted))
