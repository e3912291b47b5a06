"""A send in the acceptor, the origins by which its outcome returns, and the events that report it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Struct

from nexo.core import events
from nexo.core.model import Draft
from nexo.errors import NexoError
from nexo.ports import Address, Origin, Outcome
from nexo.two_phase.pending_sends import SendLane


class Item(Struct, eq=False):
    """A send in the acceptor; also the `ports.Origin` of a send that is saved directly."""

    draft: Draft
    place: SendLane
    since: float
    answer: Callable[[Item, Outcome], None]
    origin: Origin | None  # None: it was accepted before, and its sender has been answered
    has_left: bool = False  # the queue

    @property
    def output(self) -> object | None:
        return self.origin.output if self.origin is not None else None

    @property
    def address(self) -> Address:
        return self.place.address

    def decided(self, outcome: Outcome) -> None:
        self.place.direct -= 1
        self.answer(self, outcome)


class LookUp(Struct, eq=False):
    """Look-up of the row of a send that was saved before (`ports.Origin`)."""

    item: Item

    @property
    def output(self) -> object | None:
        return self.item.output

    @property
    def address(self) -> Address:
        return self.item.address

    def decided(self, outcome: Outcome) -> None:
        self.item.answer(self.item, outcome)


class RequestOrigin(Struct, eq=False):
    """An HTTP request that waits for the outcome (`ports.Origin`)."""

    waiting: asyncio.Future[Outcome]
    output: object | None = None
    address: Address | None = None

    def decided(self, outcome: Outcome) -> None:
        if not self.waiting.done():
            self.waiting.set_result(outcome)


def busy(detail: str) -> NexoError:
    return NexoError("server_busy", detail, retry_after_ms=1000)


def outcome_event(draft: Draft, outcome: Outcome) -> events.Event:
    """Returns the event that reports a certain outcome to the sender."""
    if isinstance(outcome, NexoError):
        return events.Failed(outcome, draft.client_msg_id)
    if isinstance(outcome, events.Accepted):
        return outcome
    return events.Saved(outcome.message, outcome.content_changed)
