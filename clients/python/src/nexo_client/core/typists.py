"""Who types in which conversation. Never stored, and forgotten with the connection. No I/O."""

from __future__ import annotations

from nexo_client.core.options import TYPING_S


class Typists:
    def __init__(self) -> None:
        self._until: dict[str, dict[str, float]] = {}

    def of(self, conversation_id: str) -> list[str]:
        return list(self._until.get(conversation_id, ()))

    def start(self, conversation_id: str, user_id: str, now: float) -> None:
        self._until.setdefault(conversation_id, {})[user_id] = now + TYPING_S

    def stop(self, conversation_id: str, user_id: str) -> None:
        typists = self._until.get(conversation_id, {})
        typists.pop(user_id, None)
        if not typists:
            self._until.pop(conversation_id, None)

    def take_expired(self, now: float) -> list[tuple[str, str]]:
        """Removes and returns, as conversation and user, those whose last TYPING frame is too old."""
        expired = [(one, user) for one, users in self._until.items() for user, until in users.items() if until <= now]
        for conversation_id, user_id in expired:
            self.stop(conversation_id, user_id)
        return expired

    def clear(self) -> None:
        self._until.clear()

    def deadline(self) -> float | None:
        return min((until for users in self._until.values() for until in users.values()), default=None)
