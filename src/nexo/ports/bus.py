"""The bus between instances, and presence on it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, Protocol


class Registration(NamedTuple):
    """A user's presence through this instance, as Redis has taken it."""

    number: int  # later registrations of the same user have higher ones, on every instance
    others: dict[str, tuple[int, ...]]  # other instances that hold the user, with the platforms there


class PresenceChange(NamedTuple):
    """A user has connected, disconnected or changed platforms, merged over all instances."""

    user_id: str
    platforms: tuple[int, ...]  # none: offline
    number: int  # of two changes of one user the later has the higher one
    watchers: tuple[str, ...]  # other instances with connections that watch the user


class BusListener(Protocol):
    """The receiver of the bus, called on the event loop at any time between `start` and `stop`."""

    def received(self, payloads: Sequence[bytes]) -> None:
        """Take payloads of another instance, in the order in which it published them. At most once."""

    def lost(self, reason: str) -> None:
        """Something that was published for this instance may be missing: all connected clients must RESYNC, and
        caches that depend on messages of other instances are to be dropped."""

    def registered_again(self, user_ids: Sequence[str]) -> None:
        """The presence of these users was lost and is registered again: pushes of the time between are missing."""

    def presence_changed(self, change: PresenceChange) -> None:
        """Presence was changed by this instance: notify watching connections here and on `change.watchers`."""

    def instance_gone(self, instance_id: str) -> None:
        """An instance has ended with its users: their presence has to be looked up again."""

    def reachable(self, is_up: bool) -> None:
        """Other instances can be heard, or not; called on each change. While they cannot, the database is the only
        source of their messages. `True` follows after all presence is registered again."""

    def here(self) -> Mapping[str, Sequence[int]]:
        """Returns the users connected here with their platforms (one for each connection)."""

    def watched(self) -> Sequence[str]:
        """Returns the users that connections here watch."""


class Bus(Protocol):
    """Publishes to other instances. Payloads are opaque.

    No ACK waits for it: every method that publishes returns at once and never raises. What one instance publishes for
    another arrives in that order and at most once, or the receiver detects the loss within `bus.detect_s`
    (`BusListener.lost`): frames are numbered from 1 per publisher and receiver, a frame that could not be published
    takes its number nevertheless, heartbeats carry the last number, and a publisher that becomes silent without GOODBYE
    counts as a loss. An instance receives only what is published for users that it holds, or for all.
    """

    instance_id: str  # of this process from its start to its end, never used again
    is_shared: bool  # False: there can be no other instance
    # When this instance last committed something (`time.monotonic`), reported to other instances; None: this process
    # has no clients.
    committed_at: Callable[[], float] | None

    @property
    def is_up(self) -> bool:
        """Whether this instance receives its own heartbeats: other instances hear it and it hears them."""

    def misses(self, instance_id: str) -> bool:
        """Returns whether nothing arrives from an instance that has not ended, while other instances are heard."""

    def peers(self) -> Collection[str]:
        """Returns the other instances that are alive."""

    def last_commits(self) -> list[float]:
        """Returns when each other instance with clients that is on the bus last committed something."""

    async def start(self, listener: BusListener) -> None:
        """Connect. Returns when other instances can be heard, or when it is known that they cannot be now."""

    async def stop(self) -> None:
        """Publish what waits, then GOODBYE."""

    def publish(self, payload: bytes, user_ids: Collection[str]) -> None:
        """Publish to every other instance that holds one of these users. They are looked up after this call: a user
        that registers before a commit is found by what is published after it."""

    def publish_to(self, payload: bytes, instance_ids: Collection[str]) -> None:
        """Publish to these instances, except this one."""

    def publish_to_all(self, payload: bytes) -> None:
        """Publish to all other instances."""

    async def take(self, key: str, per_min: int) -> int:
        """Take one token of a limit that all instances share. Returns 0, or the milliseconds until there is one. Also
        0 when Redis cannot be reached: each instance has its own limit besides."""

    async def give_back(self, key: str, per_min: int) -> None:
        """Return a token that `take` gave, for something that does not count after all."""

    async def lock(self, key: str, ttl_s: float) -> bool:
        """Take a lock that expires. Returns whether it was taken; also True when Redis cannot be reached: the lock only
        reduces load."""

    async def unlock(self, key: str) -> None:
        """Release a lock, if this instance still holds it."""


class PresenceStore(Protocol):
    """Which instances hold which users. An entry lives for `bus.presence_ttl_s` and is renewed; only an instance itself
    changes its entries, so the end of an old connection never removes the entry of a newer one. Entries may be lost at
    any moment: that is detected within `bus.detect_s` (all of them) or at the next renewal (some), and they are
    registered again (`BusListener.registered_again`)."""

    async def register(
        self, user_id: str, platforms: Sequence[int], *, anew: bool = False, age_ms: int = 0
    ) -> Registration | None:
        """Register the user on this instance with these platforms (one for each connection). When this returns, a
        look-up of the user finds this instance. Returns None after at most `redis.timeout_ms` if it could not be
        written; it is written later. An unchanged entry is not written again, unless `anew`. `age_ms` is the age of
        the connection in question."""

    def changed(self, user_id: str, platforms: Sequence[int]) -> None:
        """Note the present platforms of the user on this instance, or none. Written soon, in order."""

    async def on_other_instances(self, user_ids: Collection[str]) -> dict[str, tuple[int, ...]]:
        """Returns which of these users are connected to other instances, with the platforms there (one for each
        connection). Empty when it is unknown."""

    async def watch(self, user_ids: Collection[str]) -> dict[str, tuple[int, ...]]:
        """Returns the same as `on_other_instances`. From before the look-up on, other instances publish changes of
        these users to this one, as long as `BusListener.watched` returns them."""

    def unwatch(self, user_ids: Collection[str]) -> None:
        """Note that connections here no longer watch these users. Written soon; a user that is watched again by then
        stays watched."""
