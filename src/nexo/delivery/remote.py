"""Other instances as delivery sees them; `cluster.publisher.ClusterPublisher` implements it. None with one instance.

Every method that publishes returns at once and never raises: a lost push is followed by RESYNC.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from nexo.core import events
from nexo.core.model import Message, Sent
from nexo.ports import Address, Audience, PresenceChange, PresenceStore


class Remote(Protocol):
    presence: PresenceStore
    instance_id: str  # of this instance

    def message_saved(self, sent: Sent, audience: Audience, origin: Address | None) -> None:
        """Publish a committed message to the instances that hold a member."""

    def event_saved(
        self, event: Message, epoch: int, audience: Audience, added: Sequence[str], left: Sequence[str]
    ) -> None: ...

    def provisional(self, message: Message, epoch: int, audience: Audience, origin: Address | None) -> None: ...

    def withdrawn(self, event: events.Withdrawn, sender_id: str, audience: Audience) -> None: ...

    def typing(self, sender_id: str, conversation_id: str, audience: Audience, on: bool) -> None: ...

    def tell_user(self, user_id: str, event: events.Event) -> None: ...

    def ask_for_answer(self, call_id: int) -> None:
        """Ask for the answer of a call, which the instance that has it pushes to the caller."""

    def outcome(self, address: Address, event: events.Event) -> None:
        """Publish the outcome of a send to the instance that accepted it."""

    def presence_changed(self, change: PresenceChange) -> None: ...

    def audience_changed(self, conversation_id: str) -> None: ...

    def visibility_changed(self, user_id: str) -> None: ...

    def push_lost(self, conversation_id: str) -> None: ...

    def sessions_ended(self, sids: list[str], reason: str) -> None: ...

    def count_online(self, conversation_id: str, members: Collection[str], here: Collection[str]) -> int:
        """Returns how many members are online on all instances, as of a few seconds ago."""


class Reorder(Protocol):
    """Puts the messages of one conversation that several instances committed at once into the order of seqs."""

    def take(self, conversation_id: str, seq: int, push: Callable[[], None]) -> None:
        """Call `push` now, or after the messages before it."""
