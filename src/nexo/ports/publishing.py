"""What parts learn of a commit, and how a send is accepted: the ends of the publish seam."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from nexo.core.events import Accepted, Event, Saved
from nexo.core.model import (
    CursorChange,
    Draft,
    Head,
    Sent,
)
from nexo.errors import NexoError
from nexo.ports.values import Deletion, GroupChange, MessageEvent, RecallResult

Outcome = Sent | Accepted | NexoError


class Address(NamedTuple):
    """One connection on one instance."""

    instance_id: str
    user_id: str
    conn_id: str


class Origin(Protocol):
    """The submitter of a draft: a connection, an HTTP request, a two-phase worker, or the server itself."""

    @property
    def output(self) -> object | None:
        """The connection of this instance that gets the answer, and therefore needs no push."""

    @property
    def address(self) -> Address | None:
        """The same connection, when it may be on another instance."""

    def decided(self, outcome: Outcome) -> None:
        """Answer the submitter. An exception is logged and has no other effect."""


class CommitListener(Protocol):
    """The publish seam: the store calls its listeners with what was committed, once per commit, on the event loop.

    This is the only way in which a commit is published: no caller of the store publishes anything. A listener returns
    at once. An exception in one listener is logged and affects neither other listeners nor the answer to the submitter.
    Cancelling a caller of the store changes nothing: the store finishes and publishes.
    """

    def on_saved(self, origins: Sequence[Origin], outcomes: Sequence[Sent | NexoError]) -> None:
        """A batch was committed. `outcomes` has one entry per origin: the row (`Sent`; `fresh` is False for a retry
        that found it), or the reason why there is none. The origins have been answered."""

    def on_group_changed(self, change: GroupChange) -> None:
        """A group was changed; `change.event` is not None. For a new group `added` has all members with the creator."""

    def on_recalled(self, recall: RecallResult) -> None:
        """A message was recalled; `recall.event` is not None: repeated recalls are not published."""

    def on_message_changed(self, change: MessageEvent) -> None:
        """A message was edited, pinned or unpinned, or its reactions changed; once for each event."""

    def on_cursors_moved(self, changes: list[CursorChange]) -> None: ...

    def on_deleted(self, deletion: Deletion) -> None:
        """A user deleted messages for themselves; repeated deletions are not published."""

    def on_settings_changed(self, user_id: str, heads: list[Head]) -> None:
        """A user changed settings of conversations: as SYNC shows them now."""

    def on_audience_changed(self, conversation_id: str) -> None:
        """A block or a member's `recv_msg_opt` changed: an audience read before is out of date."""

    def on_account_changed(self, user_id: str) -> None:
        """A user was created or changed."""

    def on_user_event(self, user_ids: Sequence[str], event: Event) -> None:
        """Something was committed that these users get as a frame of its own: a contact request, its decision, a
        request to join a group."""

    def on_visibility_changed(self, user_id: str) -> None:
        """A user has changed who may see whether they are connected."""


class SendAcceptor(Protocol):
    """Two-phase acknowledgement: sends are accepted first and saved later. Sends of one connection to one conversation
    are saved in order, whether each of them is accepted first or saved directly."""

    def takes(self, draft: Draft, conn_id: str = "") -> bool:
        """Returns whether this draft is to be accepted first: by the settings, or because an earlier send of the
        connection to the conversation was accepted and is not saved."""

    def knows(self, draft: Draft) -> bool:
        """Returns whether this instance has accepted the same send before, and does not know that it is saved."""

    def observe(self, draft: Draft) -> None:
        """Measure how fast a send that is saved directly would be accepted, if that is switched on."""

    def submit(self, draft: Draft, conn_id: str, origin: Origin) -> None:
        """Submit as `MessageStore.submit`; the outcome may also be `Accepted`. Then the connection gets another event
        once the message is saved or finally refused."""

    async def send(self, draft: Draft, timeout_s: float) -> Sent | Saved | Accepted:
        """Submit and wait until it is saved, at most `timeout_s`; then `Accepted` is returned."""

    def gone(self, conn_id: str) -> None:
        """The connection ended."""
