"""Acknowledgements: ours, collected for a moment, and the others' for what we sent. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from nexo.client.options import RECEIPTS_MAX, Options
from nexo.client.outbox import Outgoing
from nexo.client.view import View

Frame = dict[str, Any]


class Acks:
    """What is to be said, once per conversation: the contiguous part, and how far was read."""

    def __init__(self, options: Options) -> None:
        self.at: float | None = None
        self._delay_s = options.ack_delay_ms / 1000
        self._names: set[str] = set()

    def soon(self, name: str, now: float) -> None:
        self._names.add(name)
        if self.at is None:
            self.at = now + self._delay_s

    def forget(self) -> None:
        self._names.clear()
        self.at = None

    def take(self, views: Mapping[str, View]) -> Iterator[Frame]:
        names, self._names, self.at = self._names, set(), None
        for name in names:
            view = views[name]
            if view.wanted_read:
                yield _ack("read", name, view.wanted_read)
                view.acknowledged = max(view.acknowledged, view.wanted_read)
                view.wanted_read = 0
            if view.must_acknowledge:
                yield _ack("delivered", name, view.synced_seq)
                view.acknowledged = view.synced_seq


def _ack(kind: str, name: str, seq: int) -> Frame:
    return {"type": "ACK", "ackType": kind, "conversationId": name, "msgSeq": seq}


class Awaited:
    """Saved messages whose senders may want to know that they were delivered and read; the newest of each
    conversation."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[Outgoing]] = {}

    def add(self, name: str, outgoing: Outgoing) -> None:
        waiting = self._waiting.setdefault(name, [])
        waiting.append(outgoing)
        del waiting[:-RECEIPTS_MAX]

    def update(self, view: View) -> list[Outgoing]:
        """Those whose state has changed."""
        name = view.conversation_id
        changed = []
        for outgoing in self._waiting.get(name, ()):
            state = state_at(view, outgoing.seq or 0)
            if state != outgoing.state:
                outgoing.state = state
                changed.append(outgoing)
        left = [outgoing for outgoing in self._waiting.get(name, ()) if outgoing.state != "read"]
        if left:
            self._waiting[name] = left
        else:
            self._waiting.pop(name, None)
        return changed


def state_at(view: View, seq: int) -> Literal["saved", "delivered", "read"]:
    """Of an own message in this place."""
    if seq <= view.peer_read_seq:
        return "read"
    return "delivered" if seq <= view.peer_delivered_seq else "saved"
