"""Registered connections of this instance by user, and subscriptions to the presence of users."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from nexo.core.model import Session
from nexo.delivery.outputs import Output

PRESENCE_MAX = 100


class Hub:
    """A user is online while one connection is registered. Closing an old connection never unregisters a
    newer one: each is its own entry."""

    def __init__(
        self, policy: str, changed: Callable[[str], None], unwatched: Callable[[list[str]], None] = lambda _: None
    ) -> None:
        """`changed` is called with a user whose presence has changed, `unwatched` with users that no connection of this
        instance watches any more."""
        self._policy = policy
        self._changed = changed
        self._unwatched = unwatched
        self.connections: dict[str, list[Output]] = {}  # by user
        self._watchers: dict[str, set[Output]] = {}
        self._watching: dict[Output, tuple[str, ...]] = {}
        self.hidden: dict[Output, set[str]] = {}  # watched users that the watcher may not see
        self.on_removed: Callable[[Output], None] = lambda _: None

    def of(self, user_id: str) -> Collection[Output]:
        return self.connections.get(user_id, ())

    def online_users(self) -> Collection[str]:
        return self.connections.keys()

    def platforms(self, user_id: str) -> list[int]:
        return sorted({member.session.platform_id for member in self.of(user_id)})

    def platform_of_each(self, user_id: str) -> list[int]:
        """Returns the platform of each connection of the user."""
        return sorted(member.session.platform_id for member in self.of(user_id))

    def presence(self, user_ids: Iterable[str]) -> list[tuple[str, bool, list[int]]]:
        return [(user_id, user_id in self.connections, self.platforms(user_id)) for user_id in user_ids]

    def add(self, member: Output) -> None:
        """Register a connection; under `per_platform` and `single` the older one in its slot is closed."""
        user_id = member.session.user_id
        before = self.platforms(user_id)
        self.connections.setdefault(user_id, []).append(member)
        self._make_room(member)
        if self.platforms(user_id) != before:
            self._changed(user_id)

    def renew(self, member: Output, session: Session) -> None:
        """Replace the session of a connection by another one of the same user; its slot may change."""
        before = self.platforms(session.user_id)
        member.session = session
        if member in self.of(session.user_id):
            self._make_room(member)
            if self.platforms(session.user_id) != before:
                self._changed(session.user_id)

    def _make_room(self, member: Output) -> None:
        for other in list(self.of(member.session.user_id)):
            if other is not member and self._same_slot(other, member.session):
                same_device = bool(member.device_id) and other.device_id == member.device_id
                other.drop("replaced" if same_device else "kicked")

    def staying(self, session: Session, other_platforms: Iterable[int] = ()) -> int:
        """Returns how many connections of the user would stay beside a new one of this session. `other_platforms`: of
        the user's connections to other instances, the platform of each."""
        platforms = (*(member.session.platform_id for member in self.of(session.user_id)), *other_platforms)
        return sum(not self._excludes(platform_id, session.platform_id) for platform_id in platforms)

    def _same_slot(self, other: Output, session: Session) -> bool:
        return self.shares_slot(other, session.platform_id)

    def shares_slot(self, other: Output, platform_id: int) -> bool:
        """Returns whether the policy excludes this connection beside one on that platform."""
        return self._excludes(other.session.platform_id, platform_id)

    def _excludes(self, platform_id: int, other_id: int) -> bool:
        if self._policy == "multi":
            return False
        return self._policy == "single" or platform_id == other_id

    def remove(self, member: Output) -> None:
        user_id = member.session.user_id
        others = self.connections.get(user_id)
        if others is None or member not in others:
            return
        before = self.platforms(user_id)
        others.remove(member)
        if not others:
            del self.connections[user_id]
        self.watch(member, ())
        self.on_removed(member)
        if self.platforms(user_id) != before:
            self._changed(user_id)

    def watch(self, member: Output, user_ids: Iterable[str]) -> None:
        """Subscribe `member` to the presence of these users; replaces its earlier subscription."""
        self.hidden.pop(member, None)
        before = self._watching.pop(member, ())
        for user_id in before:
            self._watchers[user_id].discard(member)
        wanted = tuple(dict.fromkeys(user_ids))
        if wanted:
            self._watching[member] = wanted
            for user_id in wanted:
                self._watchers.setdefault(user_id, set()).add(member)
        unwatched = [user_id for user_id in before if not self._watchers[user_id]]
        for user_id in unwatched:
            del self._watchers[user_id]
        if unwatched:
            self._unwatched(unwatched)

    def watching(self, member: Output) -> tuple[str, ...]:
        """Returns the users that this connection watches."""
        return self._watching.get(member, ())

    def watchers(self, user_id: str) -> Collection[Output]:
        return self._watchers.get(user_id, ())

    def watched(self) -> list[str]:
        """Returns the users whose presence a connection of this instance watches."""
        return list(self._watchers)

    def of_sessions(self, sids: Collection[str]) -> list[Output]:
        return [member for members in self.connections.values() for member in members if member.session.sid in sids]
