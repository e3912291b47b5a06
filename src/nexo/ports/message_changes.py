"""What the services need of the store to change messages: edits, reactions, pins, and the sources of forwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from nexo.core.model import Message
from nexo.ports.values import EditResult, GivenReaction, MessageEdit, PinResult, ReactionsWritten, ReactResult


class SentBefore(NamedTuple):
    request_hash: bytes
    server_msg_id: int


class MessageChangeStore(Protocol):
    """Changes of stored messages. Each is one transaction with its event, which `CommitListener.on_message_changed`
    gets; only the event of reactions is written later. A repeated change changes nothing and gets the same answer."""

    async def edit(self, edit: MessageEdit) -> EditResult:
        """Replace the content of a message by its sender's new one. The same client_msg_id with another edit is
        `client_msg_id_reused`."""

    async def react(self, user_id: str, server_msg_id: int, emoji: str, on: bool) -> ReactResult:
        """Add or remove a reaction, and mark the change for its event, in one transaction. The cost does not depend on
        the number of members or reactions."""

    async def marked(self, older_ms: int, limit: int) -> list[int]:
        """Returns messages with changed reactions that no event has announced for so long."""

    async def announce(self, server_msg_id: int) -> ReactionsWritten:
        """Write the event of all marked changes of a message; at most one a second, over all instances."""

    async def reactions(
        self, user_id: str, server_msg_id: int, cursor: str | None, limit: int | None
    ) -> tuple[list[GivenReaction], str, bool]:
        """Returns which users reacted to a message, the next cursor, and whether there is more."""

    async def pin(self, user_id: str, server_msg_id: int, on: bool) -> PinResult: ...

    async def pins(self, user_id: str, conversation_id: str) -> list[Message]:
        """Returns the pinned messages that this user may see, the last pinned first."""

    async def originals(self, user_id: str, server_msg_ids: Sequence[int]) -> list[Message]:
        """Returns these messages in this order, as the user may see them. Raises `message_not_found`."""

    async def sent_before(self, sender_id: str, client_msg_ids: Sequence[str]) -> dict[str, SentBefore]:
        """Returns the messages of this sender that are stored, by client_msg_id."""
