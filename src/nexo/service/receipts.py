"""Acknowledgements: what a client reports as received or read, checked against what it may see, then recorded."""

from __future__ import annotations

from nexo.core.model import Receipts
from nexo.core.visibility import is_visible
from nexo.errors import NexoError
from nexo.ids import parse_server_msg_id, peer_of
from nexo.ports import ConversationStore, Located, MessageStore

_ACK_TYPES = {"delivered": "delivered", "read": "read", "ack_read": "read"}


def check_ack_type(ack_type: str) -> str:
    known = _ACK_TYPES.get(ack_type.lower())
    if known is None:
        raise NexoError("unknown_ack_type", "An acknowledgement is delivered or read")
    return known


class Acknowledging:
    def __init__(self, messages: MessageStore, conversations: ConversationStore) -> None:
        self._messages = messages
        self._conversations = conversations

    async def ack_message(self, user_id: str, ack_type: str, server_msg_id: str | int) -> Located:
        """Cumulative: everything up to this message in its conversation."""
        kind = check_ack_type(ack_type)
        place = await self._messages.locate(parse_server_msg_id(server_msg_id))
        if place is None:
            raise NexoError("message_not_found")
        if not is_visible(await self._ranges(user_id, place.conversation_id), place.seq):
            raise NexoError("ack_not_allowed")
        self._note(user_id, kind, place.conversation_id, place.seq)
        return place

    async def ack_seq(self, user_id: str, ack_type: str, conversation_id: str, seq: int) -> int:
        """As `ack_message`, by seq; a seq above the head means the head. Returns the seq that was noted."""
        kind = check_ack_type(ack_type)
        ranges = await self._ranges(user_id, conversation_id)
        if not ranges:
            raise NexoError("ack_not_allowed")
        seq = min(seq, ranges[-1][1])
        if not is_visible(ranges, seq):
            raise NexoError("ack_not_allowed")
        self._note(user_id, kind, conversation_id, seq)
        return seq

    def _note(self, user_id: str, kind: str, conversation_id: str, seq: int) -> None:
        read_seq = seq if kind == "read" else 0
        self._conversations.advance(user_id, conversation_id, delivered_seq=seq, read_seq=read_seq)

    async def _ranges(self, user_id: str, conversation_id: str) -> tuple[tuple[int, int], ...]:
        try:
            return await self._conversations.visible_ranges(user_id, conversation_id)
        except NexoError as error:
            if error.row.retry:
                raise
            raise NexoError("ack_not_allowed") from error

    async def mark_read(
        self, user_id: str, conversation_id: str, *, seq: int | None = None, last_msg_id: str | int | None = None
    ) -> tuple[int, int]:
        """Write the read cursor through; where it is and how much is unread now."""
        if (seq is None) == (last_msg_id is None):
            raise NexoError("missing_seq", "Name either seq or last_msg_id")
        if last_msg_id is not None:
            place = await self._messages.locate(parse_server_msg_id(last_msg_id))
            if place is None or place.conversation_id != conversation_id:
                raise NexoError("message_not_found")
            seq = place.seq
        assert seq is not None
        ranges = await self._conversations.visible_ranges(user_id, conversation_id)
        if last_msg_id is not None and not is_visible(ranges, seq):
            raise NexoError("ack_not_allowed")
        if not ranges and peer_of(conversation_id, user_id) is not None:
            return 0, 0
        return await self._conversations.mark_read(user_id, conversation_id, max(0, seq))

    async def receipts(self, user_id: str, server_msg_id: str | int) -> Receipts:
        return await self._messages.receipts(user_id, parse_server_msg_id(server_msg_id))
