"""How far this device has each conversation: sent with AUTH, and stored for the next start. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from nexo_client.core.conversation_state import ConversationState
from nexo_client.core.options import BASELINES_MAX, BASELINES_MAX_BYTES

_ENTRY_BYTES = 24  # of a frame, besides the conversation id


class Baselines:
    def __init__(self) -> None:
        self._stored: dict[str, int] = {}  # from the storage, until the conversation is known
        self._moved: set[str] = set()

    def restore(self, conversation_id: str, seq: int) -> None:
        self._stored[conversation_id] = seq

    def take_stored(self, conversation_id: str) -> int | None:
        return self._stored.pop(conversation_id, None)

    def note(self, conversation_id: str) -> None:
        self._moved.add(conversation_id)

    @property
    def has_moved(self) -> bool:
        return bool(self._moved)

    def take_moved(self) -> set[str]:
        moved, self._moved = self._moved, set()
        return moved

    def for_auth(self, conversations: Mapping[str, ConversationState]) -> dict[str, int]:
        """Returns as many as fit into a frame, newest activity first. For the rest the server assumes what any
        device of the user has; SYNC then shows what this one lacks."""
        known = {one.conversation_id: one.synced_seq for one in conversations.values() if one.is_known}
        activity = {one.conversation_id: one.updated_at for one in conversations.values()}
        chosen: dict[str, int] = {}
        size = 0
        for conversation_id, seq in sorted((self._stored | known).items(), key=lambda item: -activity.get(item[0], 0)):
            size += len(conversation_id) + _ENTRY_BYTES
            if size > BASELINES_MAX_BYTES or len(chosen) >= BASELINES_MAX:
                break
            chosen[conversation_id] = seq
        return chosen
