"""Which of the watched users are connected: `client.presence`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from nexo_client.core.options import PRESENCE_MAX
from nexo_client.events import UserPresence


class Presence:
    """The subscription is repeated after a reconnect."""

    def __init__(self, watch: Callable[[list[str]], None]) -> None:
        self._watch = watch
        self._users: dict[str, UserPresence | None] = {}  # newest subscription last

    @property
    def watched(self) -> list[str]:
        return list(self._users)

    def subscribe(self, user_ids: Iterable[str]) -> None:
        """Adds users. Beyond a hundred the oldest subscriptions end."""
        for user_id in user_ids:
            self._users[user_id] = self._users.pop(user_id, None)
        for user_id in list(self._users)[:-PRESENCE_MAX]:
            del self._users[user_id]
        self._watch(self.watched)

    def unsubscribe(self, user_ids: Iterable[str]) -> None:
        for user_id in user_ids:
            self._users.pop(user_id, None)
        self._watch(self.watched)

    def of(self, user_id: str) -> UserPresence | None:
        """Returns None while the server has not answered."""
        return self._users.get(user_id)

    def _learn(self, users: Iterable[UserPresence]) -> None:
        self._users |= {user.user_id: user for user in users if user.user_id in self._users}
