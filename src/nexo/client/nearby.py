"""Who types and who is connected, as far as we were told. Kept nowhere, and forgotten with the connection. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nexo.client.events import UserPresence
from nexo.client.options import TYPING_S


class Typists:
    def __init__(self) -> None:
        self._until: dict[str, dict[str, float]] = {}

    def of(self, name: str) -> list[str]:
        return list(self._until.get(name, ()))

    def told(self, name: str, user_id: str, on: bool, now: float) -> None:
        typists = self._until.setdefault(name, {})
        if on:
            typists[user_id] = now + TYPING_S
        else:
            typists.pop(user_id, None)
        if not typists:
            del self._until[name]

    def take_over(self, now: float) -> list[tuple[str, str]]:
        """Those of whom nothing was heard any more: conversation and user."""
        over = [(name, user) for name, users in self._until.items() for user, until in users.items() if until <= now]
        for name, user_id in over:
            self.told(name, user_id, False, now)
        return over

    def forget(self) -> None:
        self._until.clear()

    def deadline(self) -> float | None:
        return min((until for users in self._until.values() for until in users.values()), default=None)


class Present:
    def __init__(self) -> None:
        self.watched: list[str] = []
        self._known: dict[str, UserPresence] = {}

    def of(self, user_id: str) -> UserPresence | None:
        return self._known.get(user_id)

    def watch(self, user_ids: list[str]) -> None:
        self.watched = user_ids
        self._known = {user: known for user, known in self._known.items() if user in user_ids}

    def told(self, users: Iterable[Mapping[str, Any]]) -> tuple[UserPresence, ...]:
        found = tuple(UserPresence(user["userId"], user["online"], tuple(user["platforms"])) for user in users)
        self._known |= {user.user_id: user for user in found}
        return found
