"""Accepting sends: into the stream of their shard, in the order in which they came, acknowledged before they are
saved. What cannot go that way is saved directly, or refused; nothing overtakes what the same connection sent
to the same conversation before.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import structlog
from msgspec import Struct

from nexo.bus.redis_link import BusDown
from nexo.config.tree import TwoPhase
from nexo.core import events
from nexo.core.model import Draft, Kind, Sent
from nexo.errors import NexoError
from nexo.ids import IdGenerator, now_ms
from nexo.metrics.pipeline import AcceptMeter
from nexo.pipeline.entries import Entry
from nexo.pipeline.streams import Fate, Streams
from nexo.ports import Address, MessageStore, Outcome

log = structlog.get_logger()

Answer = Callable[[Outcome], None]

BATCH_MAX = 256
WAITING_MAX = 20_000
UNSAVED_MAX = 1000  # of one connection in one conversation
HTTP = "http-"  # begins the name of a request that waits for its message to be saved


class Place(Struct):
    """What one connection has under way in one conversation."""

    waiting: int = 0  # for Redis
    direct: int = 0  # on the way into the database by itself
    unsaved: dict[str, Draft] = {}  # accepted, by client_msg_id, in order


class Item(NamedTuple):
    draft: Draft
    address: Address
    answer: Answer
    place: Place
    since: float


class Accepting:
    def __init__(
        self,
        streams: Streams,
        settings: TwoPhase,
        messages: MessageStore,
        new_ids: IdGenerator,
        instance_id: str,
    ) -> None:
        self._streams = streams
        self._settings = settings
        self._messages = messages
        self._ids = new_ids
        self._instance_id = instance_id
        self._places: dict[str, dict[str, Place]] = {}  # by connection, then conversation
        self._waiting: deque[Item] = deque()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._requests: dict[str, asyncio.Future[events.Event]] = {}
        self._numbers = itertools.count(1)
        self.tell: Callable[[Address, events.Event], None] = lambda address, event: None
        self.meter = AcceptMeter()

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._work())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for item in self._waiting:
            item.answer(_busy("The server stops"))
        self._waiting.clear()

    def takes(self, draft: Draft) -> bool:
        return self._settings.scope == "all" or draft.kind == Kind.SINGLE

    # -- taking sends ----------------------------------------------------------------------------------------

    def submit(self, draft: Draft, user_id: str, conn_id: str, answer: Answer) -> None:
        """As `MessageStore.submit`; the answer may also be that it was accepted. Then `tell` is called once it
        is saved, or refused for good."""
        place = self._place(conn_id, draft)
        item = Item(draft, Address(self._instance_id, user_id, conn_id), answer, place, time.monotonic())
        if len(place.unsaved) >= UNSAVED_MAX or len(self._waiting) >= WAITING_MAX:
            raise _busy("Too many sends are accepted and not saved")
        if place.waiting:
            self._queue(item)
        elif place.direct:  # what is on that way already must not be overtaken
            self._send_directly(item)
        elif self._streams.link.is_broken:
            self._do_without(item)
        else:
            self._queue(item)

    def _place(self, conn_id: str, draft: Draft) -> Place:
        places = self._places.setdefault(conn_id, {})
        place = places.get(draft.conversation_id)
        if place is None:
            if len(places) >= UNSAVED_MAX:
                self._places[conn_id] = places = {name: place for name, place in places.items() if _is_used(place)}
            place = places[draft.conversation_id] = Place(unsaved={})
        return place

    def _queue(self, item: Item) -> None:
        item.place.waiting += 1
        self._waiting.append(item)
        self._wake.set()

    async def _work(self) -> None:
        """One batch at a time: the order of calls is the order in the stream."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                batch = [self._waiting.popleft() for _ in range(min(BATCH_MAX, len(self._waiting)))]
                await self._accept(batch)

    async def _accept(self, batch: list[Item]) -> None:
        moment = now_ms()
        entries = []
        for item, server_msg_id in zip(batch, self._ids.take(len(batch)), strict=True):
            item.draft.server_msg_id = server_msg_id
            entry = Entry("", item.draft, moment, producer=self._instance_id, address=item.address)
            entries.append((entry, item.address))
        started = time.monotonic()
        try:
            fates = await self._streams.accept(entries)
        except BusDown:
            for item in batch:
                item.place.waiting -= 1
                self._do_without(item)
            return
        self.meter.write.observe(time.monotonic() - started)
        for item, fate in zip(batch, fates, strict=True):
            item.place.waiting -= 1
            try:
                self._decide(item, fate)
            except Exception:
                log.exception("accepting_failed", client_msg_id=item.draft.client_msg_id)

    def _decide(self, item: Item, fate: Fate) -> None:
        self.meter.fates.add(fate.state)
        draft = item.draft
        if fate.state == "accepted":
            draft.server_msg_id = fate.server_msg_id
            item.place.unsaved[draft.client_msg_id] = draft
            item.answer(events.Accepted(draft.client_msg_id, fate.server_msg_id, draft.conversation_id))
            self.meter.ack.observe(time.monotonic() - item.since)
        elif fate.state == "saved":  # the database has the row, and all that there is to say about it
            draft.server_msg_id = None
            draft.is_retry = True
            self._send_directly(item)
        elif fate.state == "refused":
            item.answer(NexoError(fate.refusal))
        elif fate.state == "reused":
            item.answer(NexoError("client_msg_id_reused"))
        elif fate.state == "direct" and not item.place.unsaved:
            self._send_directly(item)
        else:
            item.answer(_busy("Too many messages wait to be saved"))

    # -- the other way ---------------------------------------------------------------------------------------

    def _do_without(self, item: Item) -> None:
        """Redis cannot be reached: what this connection sent before, and has only been accepted, goes first. It is
        stored under the same id, so whoever finds it in the stream later sees that it is done."""
        self.meter.fates.add("without")
        if not self._settings.fail_open:
            item.answer(_busy("Sends cannot be accepted at present"))
            return
        place = item.place
        for client_msg_id, draft in list(place.unsaved.items()):
            del place.unsaved[client_msg_id]
            earlier = item._replace(draft=draft, answer=self._telling(item.address, draft, place))
            self._send_directly(earlier)
        self._send_directly(item)

    def _telling(self, address: Address, draft: Draft, place: Place) -> Answer:
        def answer(outcome: Outcome) -> None:
            if isinstance(outcome, NexoError) and outcome.row.retry:
                place.unsaved[draft.client_msg_id] = draft  # it is still in the stream, as far as anybody knows
            else:
                self.tell(address, outcome_event(draft, outcome))

        return answer

    def _send_directly(self, item: Item) -> None:
        place = item.place
        place.direct += 1

        def answer(outcome: Sent | NexoError) -> None:
            place.direct -= 1
            item.answer(outcome)

        try:
            self._messages.submit(item.draft, answer)
        except NexoError as error:
            place.direct -= 1
            item.answer(error)

    # -- what became of them ---------------------------------------------------------------------------------

    def settled(self, conn_id: str, event: events.Event) -> None:
        """A connection or request of this instance is told of a send that was accepted."""
        if isinstance(event, events.Saved):
            client_msg_id = event.message.client_msg_id
        elif isinstance(event, events.Failed):
            client_msg_id = event.client_msg_id
        else:
            return
        for place in self._places.get(conn_id, {}).values():
            place.unsaved.pop(client_msg_id or "", None)
        request = self._requests.get(conn_id)
        if request is not None and not request.done():
            request.set_result(event)

    def gone(self, conn_id: str) -> None:
        self._places.pop(conn_id, None)

    async def send(self, draft: Draft, timeout_s: float) -> Sent | events.Saved | events.Accepted:
        loop = asyncio.get_running_loop()
        conn_id = f"{HTTP}{next(self._numbers)}"
        first: asyncio.Future[Outcome] = loop.create_future()
        self._requests[conn_id] = last = loop.create_future()
        try:
            self.submit(draft, draft.sender_id, conn_id, first.set_result)
            outcome = await asyncio.shield(first)
            if isinstance(outcome, NexoError):
                raise outcome
            if isinstance(outcome, Sent):
                return outcome
            try:
                event = await asyncio.wait_for(last, timeout_s)
            except TimeoutError:
                return outcome
            if isinstance(event, events.Failed):
                raise event.error
            assert isinstance(event, events.Saved)
            return event
        finally:
            del self._requests[conn_id]
            self.gone(conn_id)


def _is_used(place: Place) -> bool:
    return bool(place.waiting or place.direct or place.unsaved)


def _busy(detail: str) -> NexoError:
    return NexoError("server_busy", detail, retry_after_ms=1000)


def outcome_event(draft: Draft, outcome: Outcome) -> events.Event:
    """What the sender is told, once it is certain."""
    if isinstance(outcome, NexoError):
        return events.Failed(outcome, draft.client_msg_id)
    if isinstance(outcome, events.Accepted):
        return outcome
    return events.Saved(outcome.message, outcome.content_changed)
