"""Who is shown as online, on all instances, and who is told when that changes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from nexo.core import events
from nexo.gateway.connection import Connection
from nexo.gateway.elsewhere import Elsewhere
from nexo.gateway.hub import Hub
from nexo.gateway.websocket import text_frame
from nexo.ids import CANARY_IDS
from nexo.ports import PresenceChange

TOLD_MAX = 100_000

Shown = tuple[str, bool, list[int]]  # user, online, platforms


class Watchers:
    """With one instance the hub knows everything. With many, a change is told once Redis has it, as seen over
    all of them; of two changes the later counts, in whatever order they arrive."""

    def __init__(self, hub: Hub[Connection], elsewhere: Elsewhere | None) -> None:
        self._hub = hub
        self._elsewhere = elsewhere
        self._told: dict[str, tuple[int, tuple[int, ...]]] = {}  # of those who are watched: number, platforms
        self.is_reachable = elsewhere is None  # whether others are heard

    async def show(self, user_ids: Collection[str]) -> list[Shown]:
        others = await self._elsewhere.presence.elsewhere(user_ids) if self._elsewhere is not None else {}
        return self._merged(user_ids, others)

    async def subscribe(self, connection: Connection, user_ids: Iterable[str]) -> list[Shown]:
        """From here on the connection is told of changes; what they are now."""
        wanted = list(dict.fromkeys(user_ids))
        self._hub.watch(connection, wanted)
        others = await self._elsewhere.presence.watch(wanted) if self._elsewhere is not None and wanted else {}
        if connection.closing:
            self._hub.watch(connection, ())
        return self._merged(wanted, others)

    def _merged(self, user_ids: Iterable[str], others: dict[str, tuple[int, ...]]) -> list[Shown]:
        found = []
        for user_id, online, platforms in self._hub.presence(user_ids):
            more = others.get(user_id)
            found.append((user_id, online or more is not None, sorted({*platforms, *(more or ())})))
        return found

    # -- changes -----------------------------------------------------------------------------------------

    def changed_here(self, user_id: str) -> None:
        """The hub says: this user came, went or changed platforms."""
        if self._elsewhere is None:
            if self._hub.watchers(user_id):
                self._tell(user_id, self._hub.presence([user_id]))
            return
        if user_id in CANARY_IDS:
            return
        self._elsewhere.presence.changed(user_id, self._hub.seats(user_id))
        if not self.is_reachable and self._hub.watchers(user_id):
            self._tell(user_id, self._hub.presence([user_id]))

    def changed(self, change: PresenceChange) -> None:
        """Redis has a change of ours."""
        self.changed_elsewhere(change.user_id, change.platforms, change.number)
        if self._elsewhere is not None and change.watchers:
            self._elsewhere.presence_is(change)

    def changed_elsewhere(self, user_id: str, platforms: tuple[int, ...], number: int) -> None:
        if not self._hub.watchers(user_id):
            self._told.pop(user_id, None)
            return
        before = self._told.get(user_id)
        if before is not None and number <= before[0]:
            return
        self._told[user_id] = (number, platforms)
        if len(self._told) > TOLD_MAX:
            self._told = {name: told for name, told in self._told.items() if self._hub.watchers(name)}
        if before is None or before[1] != platforms:
            self._tell(user_id, [(user_id, bool(platforms), list(platforms))])

    async def look_again(self) -> None:
        """An instance is gone without having said who went with it."""
        if self._elsewhere is None:
            return
        names = self._hub.watched()
        others = await self._elsewhere.presence.watch(names) if names else {}
        for shown in self._merged(names, others):
            user_id, _, platforms = shown
            before = self._told.get(user_id, (0, None))
            if before[1] != tuple(platforms):
                self._told[user_id] = (before[0], tuple(platforms))
                self._tell(user_id, [shown])

    def _tell(self, user_id: str, users: Sequence[tuple[str, bool, Sequence[int]]]) -> None:
        event = events.Presence(users)
        for connection in list(self._hub.watchers(user_id)):
            connection.push(text_frame(connection.dialect.encode(event)))
