"""How a call reaches devices without a connection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Ring(NamedTuple):
    """A call as devices show it."""

    call_id: str
    call_kind: str  # "audio" or "video"
    caller_id: str
    conversation_id: str
    expires_at: int  # ms: until when it rings


class Ringer(Protocol):
    """Lets devices ring by push. What it sends is not repeated after a crash: a call rings for seconds."""

    async def is_reachable(self, user_id: str) -> bool:
        """Returns whether the user has a device that is registered for push."""

    def ring(self, user_ids: Sequence[str], call: Ring) -> None:
        """Let all registered devices of these users ring. Returns at once, never raises."""

    def stop_ringing(self, user_ids: Sequence[str], call: Ring) -> None:
        """Let devices that ring stop: the call was answered or has ended. Returns at once, never raises."""
