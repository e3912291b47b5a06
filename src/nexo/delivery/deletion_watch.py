"""Remembers what users delete while messages are resent to one of their connections.

These messages were read before the deletion; sent after the event of the deletion, they would appear again. A message
that was deleted before the read is not among them. For a later deletion there are two cases: if this instance learns of
it before it sends the message, the message is left out; if it learns of it afterwards, the event follows the message.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from nexo.core.events import Deleted
from nexo.core.model import Message

NOTED_MAX = 10_000


class DeletedMeanwhile:
    """Deletions since a resend began. With too many of them, the rest of the resend is left out."""

    __slots__ = ("_cleared", "_ids", "is_full")

    def __init__(self) -> None:
        self._ids: set[int] = set()
        self._cleared: dict[str, int] = {}
        self.is_full = False

    def note(self, event: Deleted) -> None:
        if len(self._ids) + len(self._cleared) + len(event.server_msg_ids) >= NOTED_MAX:
            self.is_full = True
            return
        self._ids.update(event.server_msg_ids)
        if event.up_to_seq is not None:
            self._cleared[event.conversation_id] = event.up_to_seq

    def has(self, message: Message) -> bool:
        """Returns whether the message has been deleted since then."""
        if self.is_full or message.server_msg_id in self._ids:
            return True
        return message.seq <= self._cleared.get(message.conversation_id, 0)


class DeletionWatch:
    """The resends in progress, by user."""

    def __init__(self) -> None:
        self._resends: dict[str, list[DeletedMeanwhile]] = {}

    @contextmanager
    def during_resend(self, user_id: str) -> Iterator[DeletedMeanwhile]:
        """A context around a resend, to be entered before the messages are read."""
        resend = DeletedMeanwhile()
        self._resends.setdefault(user_id, []).append(resend)
        try:
            yield resend
        finally:
            self._resends[user_id].remove(resend)
            if not self._resends[user_id]:
                del self._resends[user_id]

    def note(self, user_id: str, event: Deleted) -> None:
        for resend in self._resends.get(user_id, ()):
            resend.note(event)
