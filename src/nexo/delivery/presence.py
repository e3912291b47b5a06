"""Presence: which users are shown as online on all instances, and the notification of connections that watch them."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence

from nexo.core import events
from nexo.delivery.hub import Hub
from nexo.delivery.notices import push_event
from nexo.delivery.outputs import Output
from nexo.delivery.remote import Remote
from nexo.errors import NexoError
from nexo.ids import CANARY_IDS
from nexo.ports import PresenceChange

SHOWN_MAX = 100_000

Shown = tuple[str, bool, list[int]]  # user, online, platforms
HiddenFrom = Callable[[str, Sequence[str]], Awaitable[set[str]]]


class PresenceWatch:
    """With one instance the hub has all connections. With several, a change is pushed once Redis has it, merged over
    all instances; of two changes the one with the higher number counts, in whatever order they arrive. Users who have
    blocked the viewer, or do not show their presence to the viewer, appear offline."""

    def __init__(self, hub: Hub, remote: Remote | None, hidden_from: HiddenFrom) -> None:
        """`hidden_from` returns the users among some whose presence a viewer may not see."""
        self._hidden_from = hidden_from
        self._rule_changes = 0
        self._hub = hub
        self._remote = remote
        self._shown: dict[str, tuple[int, tuple[int, ...]]] = {}  # of watched users: number, platforms last pushed
        self.is_reachable = remote is None  # whether other instances are heard

    async def show(self, viewer_id: str, user_ids: Sequence[str]) -> list[Shown]:
        hidden = await self._hidden_from(viewer_id, user_ids)
        others = await self._remote.presence.on_other_instances(user_ids) if self._remote is not None else {}
        return self._merged(user_ids, others, hidden)

    async def subscribe(
        self, connection: Output, user_ids: Iterable[str], exist: Callable[[list[str]], Awaitable[Collection[str]]]
    ) -> list[Shown]:
        """Push changes of these users to the connection from now on, instead of those it has watched. Returns their
        present state. `exist` returns which of some users exist: others are shown as offline and not watched, because
        there may be any number of them."""
        wanted = tuple(dict.fromkeys(user_ids))
        self._hub.watch(connection, wanted)
        hidden = self._hub.hidden[connection] = set(wanted)  # until it is known who may be shown
        found = await exist(list(wanted)) if wanted else ()
        known = [user_id for user_id in wanted if user_id in found]
        changes = -1
        while changes != self._rule_changes:  # a block during the query may not be in its result
            changes = self._rule_changes
            blocking = await self._hidden_from(connection.session.user_id, known)
        if self._hub.watching(connection) != wanted:  # replaced meanwhile
            return await self.show(connection.session.user_id, wanted)
        self._hub.watch(connection, () if connection.closing else known)
        hidden &= blocking
        if not connection.closing:
            self._hub.hidden[connection] = hidden
        others = await self._remote.presence.watch(known) if self._remote is not None and known else {}
        if connection.closing:
            self._hub.watch(connection, ())
        return self._merged(wanted, others, hidden)

    def unwatched(self, user_ids: list[str]) -> None:
        """Take note that no connection of this instance watches these users any more."""
        for user_id in user_ids:
            self._shown.pop(user_id, None)
        if self._remote is not None:
            self._remote.presence.unwatch(user_ids)

    def _merged(
        self, user_ids: Iterable[str], others: dict[str, tuple[int, ...]], hidden: Collection[str] = ()
    ) -> list[Shown]:
        found: list[Shown] = []
        for user_id, online, platforms in self._hub.presence(user_ids):
            if user_id in hidden:
                found.append((user_id, False, []))
                continue
            more = others.get(user_id)
            found.append((user_id, online or more is not None, sorted({*platforms, *(more or ())})))
        return found

    # -- blocks, contacts, privacy -----------------------------------------------------------------------

    def concerns(self, one: str, other: str) -> bool:
        """Returns whether one of two users watches the other from here."""
        return bool(self._between(one, other) or self._between(other, one))

    def _between(self, viewer_id: str, user_id: str) -> list[Output]:
        return [output for output in self._hub.watchers(user_id) if output.session.user_id == viewer_id]

    async def check_blocks(self, one: str, other: str) -> None:
        """Show or hide two users to each other after a block or a contact may have changed; hidden while that is not
        known."""
        self._rule_changes += 1
        with contextlib.suppress(NexoError):
            await self._check_blocks(one, other)

    async def _check_blocks(self, one: str, other: str) -> None:
        for viewer_id, user_id in ((one, other), (other, one)):
            for connection in self._between(viewer_id, user_id):
                await self._check_one(connection, user_id)

    async def check_watchers(self, user_id: str) -> None:
        """Show or hide a user on all connections that watch it, after the user has changed who may see it."""
        self._rule_changes += 1
        with contextlib.suppress(NexoError):
            for connection in list(self._hub.watchers(user_id)):
                await self._check_one(connection, user_id)

    async def _check_one(self, connection: Output, user_id: str) -> None:
        hidden = self._hub.hidden.setdefault(connection, set())
        was_hidden = user_id in hidden
        hidden.add(user_id)
        if user_id not in await self._hidden_from(connection.session.user_id, [user_id]):
            hidden.discard(user_id)
        if was_hidden == (user_id in hidden) or connection.closing:
            return
        others = await self._remote.presence.on_other_instances([user_id]) if self._remote else {}
        push_event(connection, events.Presence(self._merged([user_id], others, hidden)))

    # -- changes -----------------------------------------------------------------------------------------

    def changed_here(self, user_id: str) -> None:
        """Publish that a user has connected, disconnected or changed platforms on this instance."""
        if self._remote is None:
            if self._hub.watchers(user_id):
                self._notify(user_id, self._hub.presence([user_id]))
            return
        if user_id in CANARY_IDS:
            return
        self._remote.presence.changed(user_id, self._hub.platform_of_each(user_id))
        if not self.is_reachable and self._hub.watchers(user_id):
            self._notify(user_id, self._hub.presence([user_id]))

    def changed(self, change: PresenceChange) -> None:
        """Notify about a change of this instance that Redis has taken."""
        self.changed_elsewhere(change.user_id, change.platforms, change.number)
        if self._remote is not None and change.watchers:
            self._remote.presence_changed(change)

    def changed_elsewhere(self, user_id: str, platforms: tuple[int, ...], number: int) -> None:
        if not self._hub.watchers(user_id):
            self._shown.pop(user_id, None)
            return
        before = self._shown.get(user_id)
        if before is not None and number <= before[0]:
            return
        self._shown[user_id] = (number, platforms)
        if len(self._shown) > SHOWN_MAX:
            self._shown = {name: shown for name, shown in self._shown.items() if self._hub.watchers(name)}
        if before is None or before[1] != platforms:
            self._notify(user_id, [(user_id, bool(platforms), list(platforms))])

    async def look_again(self) -> None:
        """Look up all watched users: an instance has ended without reporting its users as offline."""
        if self._remote is None:
            return
        names = self._hub.watched()
        others = await self._remote.presence.watch(names) if names else {}
        for shown in self._merged(names, others):
            user_id, _, platforms = shown
            before = self._shown.get(user_id, (0, None))
            if before[1] != tuple(platforms):
                self._shown[user_id] = (before[0], tuple(platforms))
                self._notify(user_id, [shown])

    def _notify(self, user_id: str, users: Sequence[tuple[str, bool, Sequence[int]]]) -> None:
        event = events.Presence(users)
        for connection in list(self._hub.watchers(user_id)):
            if user_id not in self._hub.hidden.get(connection, ()):
                push_event(connection, event)
