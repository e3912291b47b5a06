"""Who is here: the connections of this instance by user, and who wants to know about whom."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Generic, Protocol, TypeVar

from nexo.core.model import Session

PRESENCE_MAX = 100


class Member(Protocol):
    """A signed-in connection, as the hub needs it."""

    session: Session
    device_id: str

    def drop(self, error_name: str) -> None:
        """Tell the client this error and close."""


C = TypeVar("C", bound=Member)


class Hub(Generic[C]):
    """A user is online while one connection is registered. Closing an old connection never unregisters a
    newer one: each is its own entry."""

    def __init__(self, policy: str, changed: Callable[[str], None]) -> None:
        self._policy = policy
        self._changed = changed
        self.connections: dict[str, list[C]] = {}  # by user
        self._watchers: dict[str, set[C]] = {}
        self._watching: dict[C, tuple[str, ...]] = {}

    def of(self, user_id: str) -> Collection[C]:
        return self.connections.get(user_id, ())

    def online_users(self) -> Collection[str]:
        return self.connections.keys()

    def platforms(self, user_id: str) -> list[int]:
        return sorted({member.session.platform_id for member in self.of(user_id)})

    def seats(self, user_id: str) -> list[int]:
        """The platform of each connection."""
        return sorted(member.session.platform_id for member in self.of(user_id))

    def presence(self, user_ids: Iterable[str]) -> list[tuple[str, bool, list[int]]]:
        return [(user_id, user_id in self.connections, self.platforms(user_id)) for user_id in user_ids]

    def add(self, member: C) -> None:
        """Register; under `per_platform` and `single` the older one in its slot has to go."""
        user_id = member.session.user_id
        before = self.platforms(user_id)
        self.connections.setdefault(user_id, []).append(member)
        self._make_room(member)
        if self.platforms(user_id) != before:
            self._changed(user_id)

    def renew(self, member: C, session: Session) -> None:
        """Go on with another session of the same user, whose slot may be another one."""
        before = self.platforms(session.user_id)
        member.session = session
        if member in self.of(session.user_id):
            self._make_room(member)
            if self.platforms(session.user_id) != before:
                self._changed(session.user_id)

    def _make_room(self, member: C) -> None:
        for other in list(self.of(member.session.user_id)):
            if other is not member and self._same_slot(other, member.session):
                same_device = bool(member.device_id) and other.device_id == member.device_id
                other.drop("replaced" if same_device else "kicked")

    def staying(self, session: Session, elsewhere: Iterable[int] = ()) -> int:
        """How many connections of its user would stay beside a new one of this session: of those here, and of those
        on these platforms elsewhere."""
        seats = (*(member.session.platform_id for member in self.of(session.user_id)), *elsewhere)
        return sum(not self._excludes(platform_id, session.platform_id) for platform_id in seats)

    def _same_slot(self, other: C, session: Session) -> bool:
        return self.shares_slot(other, session.platform_id)

    def shares_slot(self, other: C, platform_id: int) -> bool:
        """Whether this connection and one on that platform cannot both stay."""
        return self._excludes(other.session.platform_id, platform_id)

    def _excludes(self, platform_id: int, other_id: int) -> bool:
        if self._policy == "multi":
            return False
        return self._policy == "single" or platform_id == other_id

    def remove(self, member: C) -> None:
        user_id = member.session.user_id
        others = self.connections.get(user_id)
        if others is None or member not in others:
            return
        before = self.platforms(user_id)
        others.remove(member)
        if not others:
            del self.connections[user_id]
        self.watch(member, ())
        if self.platforms(user_id) != before:
            self._changed(user_id)

    def watch(self, member: C, user_ids: Iterable[str]) -> None:
        """Tell `member` when one of these comes or goes; replaces what it watched before."""
        for user_id in self._watching.pop(member, ()):
            watchers = self._watchers[user_id]
            watchers.discard(member)
            if not watchers:
                del self._watchers[user_id]
        wanted = tuple(dict.fromkeys(user_ids))
        if wanted:
            self._watching[member] = wanted
            for user_id in wanted:
                self._watchers.setdefault(user_id, set()).add(member)

    def watchers(self, user_id: str) -> Collection[C]:
        return self._watchers.get(user_id, ())

    def watched(self) -> list[str]:
        """Everybody whom somebody here watches."""
        return list(self._watchers)

    def of_sessions(self, sids: Collection[str]) -> list[C]:
        return [member for members in self.connections.values() for member in members if member.session.sid in sids]
