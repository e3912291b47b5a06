"""Accepts sends into the stream of their shard, in order, and acknowledges them before they are saved.

A send that cannot be accepted is saved directly, or refused. No send overtakes an earlier one of the same connection to
the same conversation, whether each of them is accepted or saved directly.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections import deque
from collections.abc import Callable, Iterable

import structlog
from msgspec.structs import replace

from nexo.background import Background, Running
from nexo.bus.redis_client import BusDown, NoGroup
from nexo.config.tree import TwoPhaseConfig
from nexo.core import events
from nexo.core.model import Draft, Sent
from nexo.errors import ERRORS, NexoError
from nexo.ids import IdGenerator, now_ms
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.two_phase import AcceptMeter
from nexo.ports import Address, MessageStore, Origin, Outcome
from nexo.two_phase.accepted_ids import AcceptedIds
from nexo.two_phase.entries import StreamEntry
from nexo.two_phase.pending_sends import PendingSends, SendLane
from nexo.two_phase.permissions import SendPermissions
from nexo.two_phase.send_items import Item, LookUp, RequestOrigin, busy, outcome_event
from nexo.two_phase.share import TwoPhaseShare
from nexo.two_phase.streams import Claim, Fate, Run, Streams

log = structlog.get_logger()

BATCH_MAX = 256
WAITING_MAX = 20_000
LOOK_S = 1.0  # how often to look for accepted sends whose outcome is overdue
HTTP = "http-"  # prefix of the conn_id of an HTTP request that waits for its message to be saved


class Acceptor:
    def __init__(
        self,
        streams: Streams,
        settings: TwoPhaseConfig,
        messages: MessageStore,
        new_ids: IdGenerator,
        instance_id: str,
        deliver: Callable[[str, str, events.Event], None],
        background: Background,
    ) -> None:
        """`deliver` pushes an event to a connection of this instance, if it is still open."""
        self._background, self._streams, self._settings = background, streams, settings
        self.share = TwoPhaseShare(settings)
        self._messages = messages
        self._ids = new_ids
        self._instance_id = instance_id
        self._places = PendingSends(settings.max_backlog)
        self.reported_ids = AcceptedIds(settings.max_backlog)
        self._waiting: deque[Item] = deque()
        self._wake = asyncio.Event()
        self._services: list[Running] = []
        self._requests: dict[str, asyncio.Future[events.Event]] = {}
        self._numbers = itertools.count(1)
        self._permissions = SendPermissions(messages.may_send)
        self._stalled: frozenset[int] = frozenset()  # shards that no worker saves at present
        self._deliver = deliver
        self.flush: Callable[[], None] = lambda: None  # writes the frames of this turn of the event loop
        self.meter = AcceptMeter()
        self.observe: Callable[[Draft], None] = lambda draft: None

    def start(self) -> None:
        self._services = [
            self._background.serve("acceptor", self._work),
            self._background.serve("unsaved_watch", self._check_unsaved),
        ]

    async def stop(self) -> None:
        for service in self._services:
            await service.stop()
        await self._permissions.stop()
        while self._waiting:
            self._leave(self._waiting.popleft(), busy("The server stops"))

    def takes(self, draft: Draft, conn_id: str = "") -> bool:
        if self.share.takes(draft) or self._places.is_open(conn_id, draft.conversation_id):
            return True
        return self.knows(draft)  # switched off meanwhile: it is saved under the id that was reported

    def knows(self, draft: Draft) -> bool:
        return self.reported_ids.knows(draft)

    def samples(self) -> Iterable[Sample]:
        yield from self.meter.samples()
        yield f.QUEUE(len(self._waiting), "accepting")
        yield f.QUEUE_LIMIT(WAITING_MAX, "accepting")
        yield f.QUEUE(self._places.unsaved, "unsaved")
        yield f.QUEUE_LIMIT(self._settings.max_backlog, "unsaved")
        yield f.QUEUE(len(self.reported_ids), "accepted_ids")
        yield f.QUEUE_LIMIT(self._settings.max_backlog, "accepted_ids")

    # -- taking sends ----------------------------------------------------------------------------------------

    def submit(self, draft: Draft, conn_id: str, origin: Origin) -> None:
        """Submit as `MessageStore.submit`; the outcome may also be `Accepted`. Then the connection gets an event once
        the message is saved or finally refused."""
        if len(self._waiting) >= WAITING_MAX or self._places.is_full(conn_id, draft.conversation_id):
            raise busy("Too many sends are accepted and not saved")
        place = self._places.open(Address(self._instance_id, draft.sender_id, conn_id), draft.conversation_id)
        item = Item(draft, place, time.monotonic(), self.answer, origin)
        self.reported_ids.adopt(draft)
        try:
            if place.waiting:
                self._queue(item)
            elif place.direct and (self._streams.link.is_broken or draft.server_msg_id is not None):
                self._send_directly(item)  # must not overtake sends that are being saved directly
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
        """Accept one batch at a time: the order of calls is the order in the stream."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                batch = [self._waiting.popleft() for _ in range(min(BATCH_MAX, len(self._waiting)))]
                try:
                    runs, behind = self._sort(batch)
                    await self._leave_claimed(behind)
                    await self._accept(runs)
                except Exception:
                    log.exception("accepting_failed")
                    self._fail(batch)
                except asyncio.CancelledError:
                    self._fail(batch)
                    raise

    def _fail(self, batch: list[Item]) -> None:
        """Answer every send of the batch that has no answer yet."""
        for item in batch:
            if not item.has_left:
                self._leave(item, NexoError("internal_error"))

    def _sort(self, batch: list[Item]) -> tuple[list[list[Item]], list[Item]]:
        """Returns the sends to be accepted by connection and conversation, and those that are behind sends which are
        being saved directly, all in order. Sends behind one that has to be repeated are refused."""
        runs: dict[int, list[Item]] = {}
        behind: list[Item] = []
        for item in batch:
            place = item.place
            if self._leave_refused(item):
                continue
            if place.direct:
                behind.append(item)
            else:
                place.refusing = ""
                runs.setdefault(id(place), []).append(item)
        return list(runs.values()), behind

    def _leave_refused(self, item: Item) -> bool:
        """Refuse a send behind one that has to be repeated. Returns whether it is one."""
        if not item.place.refusing or item.place.refusing == item.draft.client_msg_id:
            return False
        self._leave(item, busy("An earlier message has to be repeated first"))
        return True

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
            fates = await self._streams.accept(wanted, self._stalled)
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
        self.flush()  # senders wait for it, and the end of this turn of the event loop is later

    def _run(self, items: list[Item]) -> Run:
        moment = now_ms()
        place = items[0].place
        new = [item.draft for item in items if item.draft.server_msg_id is None]
        for draft, server_msg_id in zip(new, self._ids.take(len(new)), strict=True):
            draft.server_msg_id = server_msg_id
            draft.accepted_at = moment
        entries = [
            StreamEntry("", item.draft, moment, producer=self._instance_id, address=place.address) for item in items
        ]
        earlier = next(reversed(place.unsaved.values())) if place.unsaved else None
        return Run(entries, place.address, earlier)

    def _decide(self, item: Item, fate: Fate) -> None:
        self.meter.fates.add(fate.state)
        draft = item.draft
        if fate.state == "known" and self._shard_of(item.place) in self._stalled:
            draft.server_msg_id = fate.server_msg_id
            self._leave_stalled(item)
        elif fate.state in ("accepted", "known"):
            draft.server_msg_id = fate.server_msg_id
            self._places.accepted(item.place, draft, time.monotonic())
            self.reported_ids.note(draft, time.monotonic())
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
            self._leave(item, busy("Too many messages wait to be saved"))

    def _leave(self, item: Item, outcome: Outcome) -> None:
        self._take_out(item)
        self.answer(item, outcome)

    def _take_out(self, item: Item) -> None:
        item.place.waiting -= 1
        item.has_left = True

    def answer(self, item: Item, outcome: Outcome) -> None:
        place = item.place
        if isinstance(outcome, NexoError) and outcome.row.retry and place.waiting and not place.refusing:
            # it will be repeated: sends that wait behind it must not be accepted before it
            place.refusing = item.draft.client_msg_id
        try:
            if item.origin is not None:
                item.origin.decided(outcome)
            else:
                self._settle_repeat(item, outcome)
        except Exception:
            log.exception("answer_failed", client_msg_id=item.draft.client_msg_id)
        self._places.tidy(place)

    # -- permission ------------------------------------------------------------------------------------------

    async def _without_refused(self, runs: list[list[Item]]) -> list[list[Item]]:
        """Returns the runs without those whose sender is refused: these are sent to the database, which answers at
        once. Only a run without unsaved sends before it can be sent there; if the answer is unknown, it is accepted."""
        now = time.monotonic()
        unknown = {
            (items[0].draft.sender_id, items[0].draft.conversation_id): items[0].draft
            for items in runs
            if not items[0].place.unsaved and not self._permissions.is_allowed(items[0].draft, now)
        }
        refused = await self._permissions.find_refused(unknown, now) if unknown else set()
        left = []
        direct: list[Item] = []
        for items in runs:
            draft = items[0].draft
            if not items[0].place.unsaved and (draft.rejected or (draft.sender_id, draft.conversation_id) in refused):
                direct += items
            else:
                left.append(items)
        await self._leave_claimed(direct)
        return left

    # -- saving directly -------------------------------------------------------------------------------------

    def _do_without(self, item: Item) -> None:
        """Save directly, or refuse, while Redis cannot be reached."""
        self.meter.fates.add("without")
        if not self._settings.fail_open:
            raise busy("Sends cannot be accepted at present")
        self._send_directly(item)

    def _send_directly(self, item: Item) -> None:
        """Save in the database, after the accepted and unsaved sends before it. Those keep their ids, so the worker
        that finds them in the stream later sees that they are saved."""
        self._flush(item.place)
        self._put(item)

    def _flush(self, place: SendLane) -> None:
        earlier = deque(self._places.take_unsaved(place))
        try:
            while earlier:
                self._put(self._repeat(place, earlier[0]))
                earlier.popleft()
        finally:
            for draft in earlier:
                self._places.accepted(place, draft, time.monotonic())

    def _put(self, item: Item) -> None:
        self._messages.submit(item.draft, item)
        item.place.direct += 1

    def _leave_directly(self, item: Item) -> None:
        self._leave_by(self._send_directly, item)

    def _leave_without(self, item: Item) -> None:
        self._leave_by(self._do_without, item)

    def _leave_by(self, way: Callable[[Item], None], item: Item) -> None:
        self._take_out(item)
        try:
            way(item)
        except NexoError as error:
            self.answer(item, error)

    async def _leave_claimed(self, items: list[Item]) -> None:
        """Save directly, in order, and under its id what was accepted before on another connection."""
        new = [item.draft for item in items if item.draft.server_msg_id is None]
        claims: dict[int, Claim | None] = {}
        if new and not self._streams.link.is_broken:
            with contextlib.suppress(BusDown):
                claims = dict(zip(map(id, new), await self._streams.claims(new), strict=True))
        for item in items:
            draft = item.draft
            claim = claims.get(id(draft))
            if self._leave_refused(item):
                continue
            if claim is not None and claim.request_hash != draft.request_hash:
                self._leave(item, NexoError("client_msg_id_reused"))
                continue
            if claim is not None:
                draft.server_msg_id = claim.server_msg_id
            self._leave_directly(item)

    def _leave_looking(self, item: Item) -> None:
        """Answer with the row of the database: it is saved, so nothing can overtake it any more."""
        self._take_out(item)
        draft = replace(item.draft, server_msg_id=None, is_retry=True)
        try:
            self._messages.submit(draft, LookUp(item))
        except NexoError as error:
            self.answer(item, error)

    # -- accepted sends that may be lost ---------------------------------------------------------------------

    def _repeat(self, place: SendLane, draft: Draft) -> Item:
        """Returns an accepted send to be accepted once more."""
        return Item(draft, place, time.monotonic(), self.answer, None)

    def _settle_repeat(self, item: Item, outcome: Outcome) -> None:
        """Report the outcome of a repeated send once it is certain; its sender waits for no other answer."""
        place, draft = item.place, item.draft
        if isinstance(outcome, NexoError) and outcome.name == "server_busy":
            self._places.accepted(place, draft, time.monotonic())  # it is in the stream, as far as is known
        elif not isinstance(outcome, events.Accepted):
            self.settled(place.address.user_id, place.address.conn_id, outcome_event(draft, outcome))

    def _restore(self, items: list[Item]) -> None:
        """Accept again, before these sends, what Redis has lost of this connection's accepted sends."""
        place = items[0].place
        again = [self._repeat(place, draft) for draft in self._places.take_unsaved(place)]
        known = {item.draft.client_msg_id for item in again}
        left = []
        for item in items:
            if item.origin is None and item.draft.client_msg_id in known:  # restored already
                self._take_out(item)
            else:
                left.append(item)
        self.meter.fates.add("restored", len(again))
        place.waiting += len(again)
        self._waiting.extendleft(reversed(again + left))

    async def _check_unsaved(self) -> None:
        """Repeat accepted sends whose outcome is overdue: the outcome may have been lost, or all data of Redis."""
        while True:
            await asyncio.sleep(LOOK_S)
            for place in list(self._places.overdue(time.monotonic())):
                if not self._streams.link.is_broken:
                    room = min(BATCH_MAX, WAITING_MAX - len(self._waiting))
                    for draft in list(itertools.islice(place.unsaved.values(), max(1, room))):
                        self._queue(self._repeat(place, draft))
                elif self._settings.fail_open:
                    with contextlib.suppress(NexoError):
                        self._flush(place)

    def stop_accepting(self, stalled: frozenset[int]) -> None:
        """Accept nothing for shards that no worker saves, and save directly what connections of this instance have
        unsaved in them. Called again while that lasts."""
        self._stalled = stalled
        if not stalled:
            return
        for place in self._places.with_unsaved():
            if not place.waiting and not place.direct and self._shard_of(place) in stalled:
                with contextlib.suppress(NexoError):
                    self._flush(place)

    def _leave_stalled(self, item: Item) -> None:
        if item.origin is None and item.draft.client_msg_id in item.place.unsaved:  # it is among the flushed ones
            self._take_out(item)
            with contextlib.suppress(NexoError):
                self._flush(item.place)
        else:
            self._leave_directly(item)

    def _shard_of(self, place: SendLane) -> int:
        return self._streams.shard_of(place.conversation_id)

    # -- outcomes --------------------------------------------------------------------------------------------

    def settled(self, user_id: str, conn_id: str, event: events.Event) -> None:
        """Take the outcome of a send that this instance accepted, and hand it to its connection or HTTP request."""
        self._note_outcome(user_id, conn_id, event)
        self._deliver(user_id, conn_id, event)

    def _note_outcome(self, user_id: str, conn_id: str, event: events.Event) -> None:
        if isinstance(event, events.Saved):
            client_msg_id = event.message.client_msg_id
        elif isinstance(event, events.Failed):
            client_msg_id = event.client_msg_id
        else:
            return
        self.reported_ids.settle(user_id, client_msg_id or "")
        place = self._places.settled(conn_id, client_msg_id or "", time.monotonic())
        if place is not None:
            key = (place.address.user_id, place.conversation_id)
            if isinstance(event, events.Saved):
                self._permissions.allow(key, time.monotonic())
            else:
                self._permissions.forget(key)
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
        is_pending = False
        try:
            self.submit(draft, conn_id, RequestOrigin(first))
            outcome = await asyncio.shield(first)
            if isinstance(outcome, NexoError):
                raise outcome
            if isinstance(outcome, Sent):
                return outcome
            try:
                event = await asyncio.wait_for(last, timeout_s)
            except TimeoutError:
                is_pending = True  # it is checked like that of any connection until it is saved
                return outcome
            if isinstance(event, events.Failed):
                raise event.error
            assert isinstance(event, events.Saved)
            return event
        finally:
            del self._requests[conn_id]
            if not is_pending:
                self.gone(conn_id)
