"""The interfaces between push, the store, presence and the push services."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, Protocol

from nexo.core.journal import Place
from nexo.core.push import Composed, Marking, Note, NoteResult, PushPage, PushTarget


class PushStore(Protocol):
    """Every method may raise `NexoError("server_busy")`; nothing was changed then."""

    async def page(self, place: Place, limit: int) -> tuple[PushPage, Place, bool, bool]:
        """Returns what follows a place of the journal, the place after it, whether there is more, and whether a
        transaction in progress may still add to it."""

    async def has_targets(self) -> bool: ...

    async def targets_of(self, user_ids: Sequence[str]) -> list[PushTarget]:
        """Returns the devices of users, of live sessions only."""

    async def name_of(self, user_id: str) -> str:
        """Returns the nickname of a user, or the id."""

    async def is_ringing(self, call_id: int) -> bool: ...

    async def remove(self, push_id: int) -> None:
        """Removes a device that its service does not know any more."""

    async def away(self, wanted: Sequence[Marking]) -> set[int]: ...

    async def recalled_in(self, wanted: Sequence[Marking]) -> set[int]: ...

    async def mark(self, wanted: Sequence[Marking]) -> list[Marking]:
        """Makes notes due, for a bounded number of members. Returns what is left; repeating it is harmless."""

    async def look_again(self, convs: Sequence[int], reads: Sequence[tuple[int, str]]) -> int: ...

    async def next_due(self, kind: str) -> tuple[int | None, int]:
        """Returns in how many milliseconds a note is due (None: there is none), and how many wait."""

    async def claim(self, kind: str, limit: int) -> list[Note]:
        """Takes notes that are due; no other call returns them until `finish` or `release_all`."""

    async def release_all(self, kind: str) -> None: ...

    async def compose(self, claimed: Sequence[Note]) -> list[Composed]:
        """Returns what each of these notes should show now, in their order."""

    async def finish(self, results: Sequence[NoteResult]) -> None: ...


class OnlineUsers(Protocol):
    async def online(self, user_ids: Collection[str]) -> set[str]:
        """Returns which of these users have a connection, to any instance."""


class Delivered(NamedTuple):
    """The answer of a push service. `is_gone`: the device is not registered there any more. `retry_s`: the request can
    be repeated after this time; None: repeating it does not help."""

    is_taken: bool
    detail: str  # the status, and the reason if the service gives one: never a token
    is_gone: bool = False
    retry_s: float | None = None


class PushRequest(NamedTuple):
    """One notification for one device. `urgent`: it interrupts the user. `before` is the seq of the message that the
    device shows until then: with it, a notification differs from all earlier ones, and not from its own repetition."""

    target: PushTarget
    payload: dict[str, Any]
    ttl_s: int
    is_urgent: bool
    before: int = 0


class Provider(Protocol):
    """A push service, or all those of one kind."""

    kind: str

    def lane_of(self, target: PushTarget) -> str:
        """Returns the server that a device is reached by: one that fails does not slow down the rest."""

    async def send(self, request: PushRequest) -> Delivered:
        """Sends one notification. Never raises for what the service or the network does."""

    def close(self) -> None: ...
