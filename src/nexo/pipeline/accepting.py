"""Accepting sends: into the stream of their shard, in the order in which they came, acknowledged before they are
saved. What cannot go that way is saved directly, or refused; nothing overtakes what the same connection sent
to the same conversation before, whichever way each of them goes.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable

import structlog
from msgspec import Struct
from msgspec.structs import replace

from nexo.bus.redis_link import BusDown, NoGroup
from nexo.config.tree import TwoPhase
from nexo.core import events
from nexo.core.model import Draft, Kind, Sent
from nexo.errors import ERRORS, NexoError
from nexo.ids import IdGenerator, now_ms
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.pipeline import AcceptMeter
from nexo.pipeline.entries import Entry
from nexo.pipeline.places import Place, Places
from nexo.pipeline.streams import Fate, Run, Streams
from nexo.ports import Address, MessageStore, Outcome

log = structlog.get_logger()

Answer = Callable[[Outcome], None]

BATCH_MAX = 256
WAITING_MAX = 20_000
LOOK_S = 1.0  # for accepted sends that nobody heard of for a while
ASK_S = 0.1  # for permission; whoever cannot say in time is not waited for: the lock decides when it is saved
BLIND_S = 5.0  # after that it is not asked again for a while
ALLOWED_S = 60.0  # a permission is good for so long
ALLOWED_MAX = 50_000
HTTP = "http-"  # begins the name of a request that waits for its message to be saved


class Item(Struct, eq=False):
    draft: Draft
    answer: Answer
    place: Place
    since: float
    is_repeat: bool = False  # accepted before: the sender knows of that
    has_left: bool = False  # the queue


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
        self._places = Places(settings.max_backlog)
        self._waiting: deque[Item] = deque()
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._requests: dict[str, asyncio.Future[events.Event]] = {}
        self._numbers = itertools.count(1)
        self._allowed: OrderedDict[tuple[str, str], float] = OrderedDict()
        self._asking: asyncio.Task[None] | None = None
        self._blind_until = 0.0
        self.tell: Callable[[Address, events.Event], None] = lambda address, event: None
        self.publish: Callable[[Sent, object | None], None] = lambda sent, origin: None
        self.flush: Callable[[], None] = lambda: None
        self.meter = AcceptMeter()

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._work()), loop.create_task(self._look_after_unsaved())]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._asking is not None:
            self._asking.cancel()
            self._tasks.append(self._asking)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        while self._waiting:
            self._leave(self._waiting.popleft(), _busy("The server stops"))

    def takes(self, draft: Draft) -> bool:
        return self._settings.scope == "all" or draft.kind == Kind.SINGLE

    def samples(self) -> Iterable[Sample]:
        yield from self.meter.samples()
        yield f.QUEUE(len(self._waiting), "accepting")
        yield f.QUEUE_LIMIT(WAITING_MAX, "accepting")
        yield f.QUEUE(self._places.unsaved, "unsaved")
        yield f.QUEUE_LIMIT(self._settings.max_backlog, "unsaved")

    # -- taking sends ----------------------------------------------------------------------------------------

    def submit(self, draft: Draft, user_id: str, conn_id: str, answer: Answer) -> None:
        """As `MessageStore.submit`; the answer may also be that it was accepted. Then `tell` is called once it
        is saved, or refused for good."""
        if len(self._waiting) >= WAITING_MAX or self._places.is_full(conn_id, draft.conversation_id):
            raise _busy("Too many sends are accepted and not saved")
        place = self._places.open(Address(self._instance_id, user_id, conn_id), draft.conversation_id)
        item = Item(draft, answer, place, time.monotonic())
        try:
            if place.waiting:
                self._queue(item)
            elif place.direct:  # what is on that way already must not be overtaken
                self._send_directly(item)
            elif self._streams.link.is_broken:
                self._do_without(item)
            else:
                self._queue(item)
        except NexoError:
            self._places.tidy(place)
            raise

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
                try:
                    await self._accept(self._sort(batch))
                except Exception:
                    log.exception("accepting_failed")
                    self._fail(batch)
                except asyncio.CancelledError:
                    self._fail(batch)
                    raise

    def _fail(self, batch: list[Item]) -> None:
        """Nobody who waits for an answer is left alone."""
        for item in batch:
            if not item.has_left:
                self._leave(item, NexoError("internal_error"))

    def _sort(self, batch: list[Item]) -> list[list[Item]]:
        """By place, in order. What has to go another way does so now."""
        runs: dict[int, list[Item]] = {}
        for item in batch:
            place = item.place
            if place.refusing and place.refusing != item.draft.client_msg_id:
                self._leave(item, _busy("An earlier message has to come again first"))
            elif place.direct:
                self._leave_directly(item)
            else:
                place.refusing = ""
                runs.setdefault(id(place), []).append(item)
        return list(runs.values())

    async def _accept(self, runs: list[list[Item]]) -> None:
        runs = await self._without_refused(runs)
        if not runs:
            return
        started = time.monotonic()
        try:
            wanted = [self._run(items) for items in runs]
        except NexoError as error:  # there are no ids for a moment
            for items in runs:
                for item in items:
                    self._leave(item, error)
            return
        try:
            fates = await self._streams.accept(wanted)
        except (BusDown, NoGroup):
            for items in runs:
                for item in items:
                    self._leave_without(item)
            return
        self.meter.write.observe(time.monotonic() - started)
        for items, fates_of_run in zip(runs, fates, strict=True):
            if fates_of_run[0].state == "lost":
                self._restore(items)
                continue
            for item, fate in zip(items, fates_of_run, strict=True):
                self._decide(item, fate)
        self.flush()  # it is what senders wait for; at the end of the turn comes whatever else there is to do

    def _run(self, items: list[Item]) -> Run:
        moment = now_ms()
        place = items[0].place
        new = [item.draft for item in items if item.draft.server_msg_id is None]
        for draft, server_msg_id in zip(new, self._ids.take(len(new)), strict=True):
            draft.server_msg_id = server_msg_id
        entries = [Entry("", item.draft, moment, producer=self._instance_id, address=place.address) for item in items]
        earlier = next(reversed(place.unsaved.values())) if place.unsaved else None
        return Run(entries, place.address, earlier)

    def _decide(self, item: Item, fate: Fate) -> None:
        self.meter.fates.add(fate.state)
        draft = item.draft
        if fate.state in ("accepted", "known"):
            draft.server_msg_id = fate.server_msg_id
            self._places.accepted(item.place, draft, time.monotonic())
            self._leave(item, events.Accepted(draft.client_msg_id, fate.server_msg_id, draft.conversation_id))
            self.meter.ack.observe(time.monotonic() - item.since)
        elif fate.state == "saved":
            self._leave_looking(item)
        elif fate.state == "refused":
            self._leave(item, NexoError(fate.refusal if fate.refusal in ERRORS else "internal_error"))
        elif fate.state == "reused":
            self._leave(item, NexoError("client_msg_id_reused"))
        elif fate.state == "direct" and not item.place.unsaved:
            self._leave_directly(item)
        else:
            self._leave(item, _busy("Too many messages wait to be saved"))

    def _leave(self, item: Item, outcome: Outcome) -> None:
        self._take_out(item)
        self._answer(item, outcome)

    def _take_out(self, item: Item) -> None:
        item.place.waiting -= 1
        item.has_left = True

    def _answer(self, item: Item, outcome: Outcome) -> None:
        place = item.place
        if isinstance(outcome, NexoError) and outcome.row.retry and place.waiting and not place.refusing:
            # it will come again: what was sent behind it, and waits, must not be there before it
            place.refusing = item.draft.client_msg_id
        try:
            item.answer(outcome)
        except Exception:
            log.exception("answer_failed", client_msg_id=item.draft.client_msg_id)
        self._places.tidy(place)

    # -- permission ------------------------------------------------------------------------------------------

    async def _without_refused(self, runs: list[list[Item]]) -> list[list[Item]]:
        """Who may not send learns it at once, from the database itself. Only a run that has nothing before it can
        go that way; and whoever is not known to be refused is accepted: the lock decides."""
        now = time.monotonic()
        unknown = {
            (items[0].draft.sender_id, items[0].draft.conversation_id): items[0].draft
            for items in runs
            if not items[0].place.unsaved and not self._is_allowed(items[0].draft, now)
        }
        refused = await self._ask(unknown, now) if unknown else set()
        left = []
        for items in runs:
            draft = items[0].draft
            if not items[0].place.unsaved and (draft.rejected or (draft.sender_id, draft.conversation_id) in refused):
                for item in items:
                    self._leave_directly(item)
            else:
                left.append(items)
        return left

    def _is_allowed(self, draft: Draft, now: float) -> bool:
        return self._allowed.get((draft.sender_id, draft.conversation_id), -ALLOWED_S) + ALLOWED_S > now

    async def _ask(self, drafts: dict[tuple[str, str], Draft], now: float) -> set[tuple[str, str]]:
        if now < self._blind_until or (self._asking is not None and not self._asking.done()):
            return set()
        refused: set[tuple[str, str]] = set()

        async def ask() -> None:
            try:
                answers = await self._messages.may_send(list(drafts.values()))
            except NexoError:
                return
            except Exception:
                log.exception("permission_unknown")
                return
            for key, answer in zip(drafts, answers, strict=True):
                if answer.is_allowed:
                    self._allow(key, now)
                elif answer.is_allowed is False:
                    refused.add(key)

        self._asking = asyncio.get_running_loop().create_task(ask())
        _, late = await asyncio.wait([self._asking], timeout=ASK_S)
        if late:
            self._blind_until = time.monotonic() + BLIND_S
        return set(refused)

    def _allow(self, key: tuple[str, str], now: float) -> None:
        self._allowed[key] = now
        self._allowed.move_to_end(key)
        if len(self._allowed) > ALLOWED_MAX:
            self._allowed.popitem(last=False)

    # -- other ways ------------------------------------------------------------------------------------------

    def _do_without(self, item: Item) -> None:
        """Redis cannot be reached."""
        self.meter.fates.add("without")
        if not self._settings.fail_open:
            raise _busy("Sends cannot be accepted at present")
        self._send_directly(item)

    def _send_directly(self, item: Item) -> None:
        """Into the database. What this connection sent before, and has only been accepted, goes first: it is stored
        under the same id, so whoever finds it in the stream later sees that it is done."""
        self._flush(item.place)
        self._put(item)

    def _flush(self, place: Place) -> None:
        earlier = deque(self._places.take_unsaved(place))
        try:
            while earlier:
                self._put(self._repeat(place, earlier[0]))
                earlier.popleft()
        finally:
            for draft in earlier:
                self._places.accepted(place, draft, time.monotonic())

    def _put(self, item: Item) -> None:
        place = item.place

        def answer(outcome: Sent | NexoError) -> None:
            place.direct -= 1
            self._answer(item, outcome)

        self._messages.submit(item.draft, answer)
        place.direct += 1

    def _leave_directly(self, item: Item) -> None:
        self._leave_by(self._send_directly, item)

    def _leave_without(self, item: Item) -> None:
        self._leave_by(self._do_without, item)

    def _leave_by(self, way: Callable[[Item], None], item: Item) -> None:
        self._take_out(item)
        try:
            way(item)
        except NexoError as error:
            self._answer(item, error)

    def _leave_looking(self, item: Item) -> None:
        """The database has the row, and all that there is to say about it: nothing can overtake it any more."""
        self._take_out(item)
        draft = replace(item.draft, server_msg_id=None, is_retry=True)
        try:
            self._messages.submit(draft, lambda outcome: self._answer(item, outcome))
        except NexoError as error:
            self._answer(item, error)

    # -- what was accepted and may be lost -------------------------------------------------------------------

    def _repeat(self, place: Place, draft: Draft) -> Item:
        """For what the sender takes for accepted; nobody waits for the answer, but everybody wants to know the end."""

        def answer(outcome: Outcome) -> None:
            if isinstance(outcome, NexoError) and outcome.name == "server_busy":
                self._places.accepted(place, draft, time.monotonic())  # as far as anybody knows, it is in the stream
            elif not isinstance(outcome, events.Accepted):
                self.tell(place.address, outcome_event(draft, outcome))
                if isinstance(outcome, Sent):
                    self.publish(outcome, place.address)

        return Item(draft, answer, place, time.monotonic(), is_repeat=True)

    def _restore(self, items: list[Item]) -> None:
        """Redis has lost what this connection has accepted there: all of it once more, before these."""
        place = items[0].place
        again = [self._repeat(place, draft) for draft in self._places.take_unsaved(place)]
        known = {item.draft.client_msg_id for item in again}
        left = []
        for item in items:
            if item.is_repeat and item.draft.client_msg_id in known:  # a look at what is restored anyway
                self._take_out(item)
            else:
                left.append(item)
        self.meter.fates.add("restored", len(again))
        place.waiting += len(again)
        self._waiting.extendleft(reversed(again + left))

    async def _look_after_unsaved(self) -> None:
        """Whoever was told `accepted` and hears nothing more: is it still there? The answer may have been lost, or
        all that Redis held."""
        while True:
            await asyncio.sleep(LOOK_S)
            for place in list(self._places.overdue(time.monotonic())):
                if not self._streams.link.is_broken:
                    self._queue(self._repeat(place, next(iter(place.unsaved.values()))))
                elif self._settings.fail_open:
                    with contextlib.suppress(NexoError):
                        self._flush(place)

    # -- what became of them ---------------------------------------------------------------------------------

    def settled(self, conn_id: str, event: events.Event) -> None:
        """A connection or request of this instance is told of a send that was accepted."""
        if isinstance(event, events.Saved):
            client_msg_id = event.message.client_msg_id
        elif isinstance(event, events.Failed):
            client_msg_id = event.client_msg_id
        else:
            return
        place = self._places.settled(conn_id, client_msg_id or "", time.monotonic())
        if place is not None:
            key = (place.address.user_id, place.conversation_id)
            if isinstance(event, events.Saved):
                self._allow(key, time.monotonic())
            else:
                self._allowed.pop(key, None)
        request = self._requests.get(conn_id)
        if request is not None and not request.done():
            request.set_result(event)

    def gone(self, conn_id: str) -> None:
        self._places.gone(conn_id)

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


def _busy(detail: str) -> NexoError:
    return NexoError("server_busy", detail, retry_after_ms=1000)


def outcome_event(draft: Draft, outcome: Outcome) -> events.Event:
    """What the sender is told, once it is certain."""
    if isinstance(outcome, NexoError):
        return events.Failed(outcome, draft.client_msg_id)
    if isinstance(outcome, events.Accepted):
        return outcome
    return events.Saved(outcome.message, outcome.content_changed)
