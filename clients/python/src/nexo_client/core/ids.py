"""Names of conversations, and ids of outgoing messages that sort by creation time."""

from __future__ import annotations

import secrets
import time

_SINGLE, _GROUP = "si_", "sg_"


def now_ms() -> int:
    """Returns the date in milliseconds."""
    return time.time_ns() // 1_000_000


def single_conversation_id(one: str, other: str) -> str:
    return f"{_SINGLE}{one}:{other}" if one < other else f"{_SINGLE}{other}:{one}"


def group_conversation_id(group_id: str) -> str:
    return f"{_GROUP}{group_id}"


def group_of(conversation_id: str) -> str | None:
    """Returns the group of a group conversation, None for a single chat."""
    return conversation_id.removeprefix(_GROUP) if conversation_id.startswith(_GROUP) else None


def peer_of(conversation_id: str, user_id: str | None) -> str | None:
    """Returns the other user of a single chat, None for any other conversation."""
    if not conversation_id.startswith(_SINGLE):
        return None
    low, _, high = conversation_id.removeprefix(_SINGLE).partition(":")
    return high if user_id == low else low if user_id == high else None


class MessageIds:
    """Makes ids whose text order is their creation order, also after a restart with a clock that was set back."""

    def __init__(self) -> None:
        self._last = (0, 0)

    def seen(self, client_msg_id: str) -> None:
        """Orders all later ids after this one, which was found in the storage."""
        time_part, _, rest = client_msg_id.partition("-")
        try:
            self._last = max(self._last, (int(time_part, 16), int(rest.partition("-")[0], 16)))
        except ValueError:
            return  # chosen by the application

    def new(self, wall_ms: int) -> str:
        at, number = self._last
        self._last = (wall_ms, 0) if wall_ms > at else (at, number + 1)
        return f"{self._last[0]:012x}-{self._last[1]:06x}-{secrets.token_hex(6)}"
