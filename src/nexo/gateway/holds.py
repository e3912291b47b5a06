"""After a transient refusal, what a connection sends to that conversation later is refused too until the refused
one is back, or for some seconds: a retry must not end up behind its successors."""

from __future__ import annotations

import time
from typing import NamedTuple

from nexo.errors import NexoError

HOLD_S = 5.0
HELD_MAX = 1000


class Hold(NamedTuple):
    client_msg_id: str
    until: float
    error: NexoError
    number: int  # which send of the connection it was


class Holds:
    """Of one connection, by conversation."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[str, Hold] = {}

    def number_of(self, name: str, client_msg_id: str) -> int | None:
        """What comes back after a refusal keeps its place among the sends."""
        held = self._held.get(name)
        return held.number if held is not None and held.client_msg_id == client_msg_id else None

    def refusal(self, name: str, client_msg_id: str) -> NexoError | None:
        """Why this send has to wait; the one that is waited for is let through."""
        held = self._held.get(name)
        if held is None:
            return None
        if held.client_msg_id != client_msg_id and time.monotonic() < held.until:
            return held.error
        del self._held[name]
        return None

    def add(self, name: str, client_msg_id: str, error: NexoError, number: int) -> None:
        """The earliest one counts: what was refused at the door may have others before it that were taken, and are
        refused only now."""
        held = self._held.get(name)
        if held is None or number < held.number:
            now = time.monotonic()
            if len(self._held) >= HELD_MAX:
                self._held = {key: one for key, one in self._held.items() if one.until > now}
            self._held[name] = Hold(client_msg_id, now + HOLD_S, error, number)
