"""Announces messages without pushing them: a notice for a conversation, or the changed heads of many conversations."""

from __future__ import annotations

import time

from nexo.core import events
from nexo.delivery.outputs import Output

NOTICE_PAUSE_S = 1.0


def push_event(connection: Output, event: events.Event) -> None:
    connection.push(connection.dialect.frame(connection.dialect.encode(event)))


class Notices:
    def __init__(self, heads_s: int) -> None:
        self._heads_s = heads_s
        self.noticed = 0  # messages announced by a notice
        self.noted = 0  # messages announced by a changed head

    def notice(self, connection: Output, conversation_id: str, head_seq: int, important: bool) -> None:
        """Send at most one notice per connection, conversation and second; the last head is always sent."""
        self.noticed += 1
        if connection.notices is None:
            connection.notices = {}
        now = time.monotonic()
        entry = connection.notices.get(conversation_id)
        if entry is None:
            connection.notices[conversation_id] = [now + NOTICE_PAUSE_S, 0, False]
            push_event(connection, events.Notify(conversation_id, head_seq, important))
        else:
            entry[1], entry[2] = head_seq, entry[2] or important

    def note_head(self, connection: Output, conversation_id: str, head_seq: int) -> None:
        self.noted += 1
        if connection.heads is None:
            connection.heads = {}
        if not connection.heads:
            connection.heads_at = time.monotonic() + self._heads_s
        connection.heads[conversation_id] = head_seq

    def sweep(self, connection: Output, now: float) -> None:
        """Send the notices and heads of a connection that have waited long enough."""
        if connection.notices:
            for conversation_id, (due, head_seq, important) in list(connection.notices.items()):
                if now < due:
                    continue
                if head_seq:
                    connection.notices[conversation_id] = [now + NOTICE_PAUSE_S, 0, False]
                    push_event(connection, events.Notify(conversation_id, head_seq, important))
                else:
                    del connection.notices[conversation_id]
        if connection.heads and now >= connection.heads_at:
            push_event(connection, events.HeadsChanged(list(connection.heads.items())))
            connection.heads = None
