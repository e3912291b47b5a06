"""The publish seam: the only place that reports commits of the store, once each (`ports.CommitListener`).

First the submitters are answered, then each listener gets the whole batch. An exception of one of them is logged and
does not keep the call from the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import structlog

from nexo.core.events import Event
from nexo.core.model import CursorChange, Head, Sent
from nexo.errors import NexoError
from nexo.ports import CommitListener, Deletion, GroupChange, MessageEvent, Origin, RecallResult

log = structlog.get_logger()


class PublishSeam:
    def __init__(self) -> None:
        self._listeners: list[CommitListener] = []

    def attach(self, listener: CommitListener) -> None:
        self._listeners.append(listener)

    def saved(self, origins: Sequence[Origin], outcomes: Sequence[Sent | NexoError]) -> None:
        """Report a committed batch of sends."""
        for origin, outcome in zip(origins, outcomes, strict=True):
            try:
                origin.decided(outcome)
            except Exception:
                log.exception("answer_failed")
        for listener in self._listeners:
            try:
                listener.on_saved(origins, outcomes)
            except Exception:
                log.exception("commit_listener_failed", listener=type(listener).__name__)

    def group_changed(self, change: GroupChange) -> None:
        if change.event is not None:
            self._notify(lambda listener: listener.on_group_changed(change))

    def recalled(self, recall: RecallResult) -> None:
        if recall.event is not None:
            self._notify(lambda listener: listener.on_recalled(recall))

    def message_changed(self, published: MessageEvent | None) -> None:
        if published is not None:
            self._notify(lambda listener: listener.on_message_changed(published))

    def cursors_moved(self, changes: list[CursorChange]) -> None:
        if changes:
            self._notify(lambda listener: listener.on_cursors_moved(changes))

    def deleted(self, deletion: Deletion) -> None:
        if deletion.server_msg_ids or deletion.up_to_seq is not None:
            self._notify(lambda listener: listener.on_deleted(deletion))

    def settings_changed(self, user_id: str, heads: list[Head]) -> None:
        self._notify(lambda listener: listener.on_settings_changed(user_id, heads))

    def audience_changed(self, conversation_id: str) -> None:
        self._notify(lambda listener: listener.on_audience_changed(conversation_id))

    def account_changed(self, user_id: str) -> None:
        self._notify(lambda listener: listener.on_account_changed(user_id))

    def user_event(self, user_ids: Sequence[str], event: Event) -> None:
        """Report something that concerns these users and has no place in a conversation."""
        self._notify(lambda listener: listener.on_user_event(user_ids, event))

    def visibility_changed(self, user_id: str) -> None:
        self._notify(lambda listener: listener.on_visibility_changed(user_id))

    def _notify(self, call: Callable[[CommitListener], Any]) -> None:
        for listener in self._listeners:
            try:
                call(listener)
            except Exception:
                log.exception("commit_listener_failed", listener=type(listener).__name__)
