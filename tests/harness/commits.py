"""The publish seam in tests: listeners that note what was committed, and submitters that note their outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nexo.core.events import Event
from nexo.core.model import CursorChange, Head, Sent
from nexo.errors import NexoError
from nexo.ports import Address, Deletion, GroupChange, MessageEvent, Origin, RecallResult


class Submitter:
    """A `ports.Origin` that calls a function with the outcome."""

    output: object | None = None
    address: Address | None = None

    def __init__(self, decided: Callable[[Any], Any]) -> None:
        self.decided = decided


class CommitLog:
    """A `ports.CommitListener` that remembers what was committed, and passes cursors on."""

    def __init__(self, on_cursors: Callable[[list[CursorChange]], Any] = lambda changes: None) -> None:
        self.told: list[tuple[str, Any]] = []
        self._on_cursors = on_cursors

    def on_saved(self, origins: Sequence[Origin], outcomes: Sequence[Sent | NexoError]) -> None:
        self.told += [("message_saved", sent) for sent in outcomes if isinstance(sent, Sent)]

    def on_group_changed(self, change: GroupChange) -> None:
        self.told.append(("group_changed", change))

    def on_recalled(self, recall: RecallResult) -> None:
        self.told.append(("recalled", recall))

    def on_message_changed(self, change: MessageEvent) -> None:
        self.told.append(("message_changed", change))

    def on_cursors_moved(self, changes: list[CursorChange]) -> None:
        self.told += [("cursor_moved", change) for change in changes]
        self._on_cursors(changes)

    def on_deleted(self, deletion: Deletion) -> None:
        self.told.append(("deleted", deletion))

    def on_settings_changed(self, user_id: str, heads: list[Head]) -> None:
        self.told.append(("settings_changed", (user_id, heads)))

    def on_audience_changed(self, conversation_id: str) -> None:
        self.told.append(("audience_changed", conversation_id))

    def on_account_changed(self, user_id: str) -> None: ...

    def on_user_event(self, user_ids: Sequence[str], event: Event) -> None:
        self.told += [("user_event", (user_id, event)) for user_id in user_ids]

    def on_visibility_changed(self, user_id: str) -> None:
        self.told.append(("visibility_changed", user_id))

    def take(self) -> list[tuple[str, Any]]:
        told, self.told = self.told, []
        return told
