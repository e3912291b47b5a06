"""Acknowledgements: those of this device, sent in batches, and those of others for what it sent. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nexo_client.core.conversation_state import ConversationState
from nexo_client.core.frames import Frame, ack_frame
from nexo_client.core.options import RECEIPTS_MAX, Options
from nexo_client.core.outbox import OutboxItem


class Acks:
    """Collects, for a short time and once per conversation, what was delivered here and what was read."""

    def __init__(self, options: Options) -> None:
        self.at: float | None = None
        self._delay_s = options.ack_delay_ms / 1000
        self._conversation_ids: set[str] = set()

    def note(self, conversation_id: str, now: float) -> None:
        self._conversation_ids.add(conversation_id)
        if self.at is None:
            self.at = now + self._delay_s

    def clear(self) -> None:
        self._conversation_ids.clear()
        self.at = None

    def take(self, conversations: Mapping[str, ConversationState]) -> Iterator[Frame]:
        conversation_ids, self._conversation_ids, self.at = self._conversation_ids, set(), None
        for conversation_id in conversation_ids:
            conversation = conversations[conversation_id]
            if conversation.unsent_read_seq:
                yield ack_frame("read", conversation_id, conversation.unsent_read_seq)
                conversation.acknowledged = max(conversation.acknowledged, conversation.unsent_read_seq)
                conversation.unsent_read_seq = 0
            if conversation.must_acknowledge:
                yield ack_frame("delivered", conversation_id, conversation.handled_seq)
                conversation.acknowledged = conversation.handled_seq


class AwaitedReceipts:
    """The newest saved messages of each conversation that are not yet read by their receivers."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[OutboxItem]] = {}

    def add(self, conversation_id: str, item: OutboxItem) -> None:
        waiting = self._waiting.setdefault(conversation_id, [])
        waiting.append(item)
        del waiting[:-RECEIPTS_MAX]

    def update(self, conversation: ConversationState) -> list[OutboxItem]:
        """Returns the messages whose state has changed."""
        waiting = self._waiting.get(conversation.conversation_id, ())
        changed = []
        for item in waiting:
            state = conversation.state_of(item.seq or 0)
            if state != item.state:
                item.state = state
                changed.append(item)
        unread = [item for item in waiting if item.state != "read"]
        if unread:
            self._waiting[conversation.conversation_id] = unread
        else:
            self._waiting.pop(conversation.conversation_id, None)
        return changed
